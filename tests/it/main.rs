//! The program as its users meet it. One binary, so that everything is linked once.

mod bad_input;
mod verbs;
mod workbench;
