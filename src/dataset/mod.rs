//! dataset.
