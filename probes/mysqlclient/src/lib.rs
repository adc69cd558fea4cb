//! Initializes libmysqlclient, attaches threads to it, reads option files in its place, and sets
//! TLS and the rules by which a password leaves this process.

mod account;
mod destination;
mod library;
mod option_file;
mod private_file;
mod tls;

pub use account::Account;
pub use account::AccountOptions;
pub use destination::Destination;
pub use destination::NoDestination;
pub use library::attach_thread;
pub use library::set_value;
pub use option_file::OptionFile;
pub use private_file::Refusal;
pub use tls::SslMode;
pub use tls::Tls;
pub use tls::TlsOptions;
