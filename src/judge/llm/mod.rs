//! LLM judges: a chat model that is asked for a verdict.
//!
//! [`LlmSpec`] is the configuration, [`Judging`] the judge without a model server (what it
//! asks, how it reads the reply, what verdict follows: pure functions), and [`LlmJudge`] the
//! two put together with a client. What a reply means is decided in [`reply`] alone.

mod example;
mod fixed;
mod judging;
pub mod logprobs;
mod model_name;
mod prompt;
pub mod reply;
mod schema;
mod seat;
mod shape;
mod spec;
mod verdict;

pub use example::{Example, Examples};
pub use judging::{Form, Judging, Prompt};
pub use prompt::TEMPLATE_VARIABLES;
pub use reply::PARSER_VERSION;
pub use seat::LlmJudge;
pub use shape::{Answer, Choice, Place, ReadFailure, Reading, Shape};
pub use spec::{Format, LlmSpec, Logprobs, Mode, Question};
