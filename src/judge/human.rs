//! human.
