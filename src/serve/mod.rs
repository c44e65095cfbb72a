//! Ways in for other programs: what they call in place of the command line.

pub mod hook;
