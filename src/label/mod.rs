//! Labelling: which case a person looks at next, and where what they say is kept.
//!
//! The most informative cases come first, what the judges said is not shown before a case is
//! labelled, and a label is on disk before it is counted. Labels of cases that were chosen
//! because they are hard are no random sample of the data: rates estimated from them alone
//! are not those of the data, and [`Order::Random`] is for those.

mod book;
mod queue;

pub use self::book::{Book, BookError};
pub use self::queue::{Choice, Entry, Options, Order, Queue, QueueError, Said};
