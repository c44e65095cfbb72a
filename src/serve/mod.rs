//! Ways in for other programs and for browsers: what they call in place of the command line.
//! They hold no logic that the library lacks.

#[cfg(any(feature = "server", feature = "mcp"))]
pub mod access;
pub mod hook;
#[cfg(feature = "server")]
pub mod http;
#[cfg(any(feature = "server", feature = "mcp"))]
mod lines;
#[cfg(feature = "mcp")]
pub mod mcp;

#[cfg(feature = "server")]
pub use self::http::{Options, Server, Service, router};
