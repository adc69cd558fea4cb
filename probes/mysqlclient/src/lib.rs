//! Initializes libmysqlclient, attaches threads to it, and sets up TLS of its connections.

mod thread;
mod tls;

pub use thread::attach_thread;
pub use thread::connect_first_alone;
pub use tls::SslMode;
pub use tls::Tls;
pub use tls::ZeroByte;
