//! Initializes libmysqlclient, attaches threads to it, reads option files in its place, and sets
//! TLS and the rules by which a password leaves this process.

mod guard;
mod option_file;
mod private_file;
mod set;
mod thread;
mod tls;

pub use option_file::OptionFile;
pub use private_file::Refusal;
pub use private_file::read_private;
pub use set::set_text;
pub use set::set_value;
pub use thread::attach_thread;
pub use tls::SslMode;
pub use tls::Tls;
pub use tls::TlsOptions;
