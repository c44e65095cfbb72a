//! rubric.
