//! The program as its users meet it. One binary, so that everything is linked once.

mod bad_input;
mod durability;
#[expect(dead_code, reason = "the provider's tests use the rest")]
#[path = "../support/mock/mod.rs"]
mod mock;
mod verbs;
mod workbench;
