//! The loop controller: `x[n+1] = f(x[n], e[n])` that provably stops, never loses the best
//! output, and says truly why it stopped.
//!
//! The core is [`decide`], a pure function without I/O, clock or randomness; time and spending
//! come in with events. Drivers execute its commands. The same core serves `venire loop` and
//! `venire replay`.

pub mod agent;
pub mod condition;
mod decide;
pub mod dispute;
pub mod driver;
mod entry;
mod event;
pub mod feedback;
mod history;
mod journal;
mod judgement;
mod kept;
pub mod labels;
pub mod lint;
pub mod log;
mod noise;
mod outcome;
pub mod policy;
mod prices;
pub mod replay;
pub mod result;
pub mod review;
pub mod setup;
pub mod spec;
pub mod starts;
mod state;
pub mod watch;

#[cfg(test)]
mod tests;

pub use self::decide::decide;
pub use self::event::{
    About, AgentFault, Answer, Base, Budget, Command, Directive, Event, Round, Spent, What,
};
pub use self::history::{Output, Record, RecordStatus};
pub use self::judgement::{CriterionMark, Judgement};
pub use self::outcome::{Class, Confirmation, Outcome, Reason};
pub use self::policy::Policy;
pub use self::setup::Setup;
pub use self::spec::LoopSpec;
pub use self::starts::Starts;
pub use self::state::State;
