//! The engine with a driver that needs no server.
