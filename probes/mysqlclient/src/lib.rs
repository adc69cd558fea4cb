//! What all connections on libmysqlclient need: the library once, each thread attached to it, and TLS.

mod thread;
mod tls;

pub use thread::attach_thread;
pub use tls::SslMode;
pub use tls::Tls;
pub use tls::ZeroByte;
