//! What other programs talk to.

#[cfg(feature = "mcp")]
pub mod mcp;
