//! The address and the account of the server, for the recorder.

pub use loadprint_mysqlclient::Account;
pub use loadprint_mysqlclient::AccountOptions;
pub use loadprint_mysqlclient::OptionFile;
pub use loadprint_mysqlclient::SslMode;
pub use loadprint_mysqlclient::TlsOptions;
