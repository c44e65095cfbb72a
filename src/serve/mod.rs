//! Servers on top of the library: other programs and people reach a panel, its runs and its
//! queues through them. They hold no logic that the library lacks.

#[cfg(feature = "server")]
pub mod http;

#[cfg(feature = "server")]
pub use self::http::{Options, Server, Service, router};
