//! Child processes for judges: started in a group of their own, limited, watched, and gone
//! when the measurement is over.
//!
//! The program under a judge is not trusted to end, to keep quiet, or to clean up after
//! itself. What is not promised: a wall against a program that attacks the kernel, or, with
//! `isolation = "none"`, any wall at all. `command` and `script` stand on this module.

mod capture;
mod group;
mod period;
pub(crate) mod plain;
mod program;
mod run;
mod sandbox;
mod wall;

pub use period::Period;
pub use sandbox::{Home, Isolation, SandboxSpec};

pub(crate) use capture::{Capture, drain};
#[cfg(feature = "cli")]
pub(crate) use group::end_all;
pub(crate) use program::{
    file_identity, find_program, folder_identity, missing_files, missing_warning, script_not_found,
};
pub(crate) use run::{Ending, Finished, Launch, Running, SpawnError, Until, is_inside, run, spawn};
pub(crate) use sandbox::Sandbox;

#[cfg(test)]
#[cfg(unix)]
mod tests;
