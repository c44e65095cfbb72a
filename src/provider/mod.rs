//! Model servers: one request in, one normalised reply out.
//!
//! A wire format is two pure functions (request to bytes, bytes to reply); one [`Client`]
//! does the sending, with retry, pacing, circuit breaker, ledger and the store of replies.
//! Nothing here knows what a judge is.

mod breaker;
mod capability;
mod chat;
mod client;
mod context;
mod cost;
mod endpoint;
mod error;
mod failure;
mod flight;
mod key;
mod ledger;
mod pace;
mod place;
mod replies;
mod retry;
mod service;
mod transport;
mod wire;

pub use chat::{
    ChatReply, ChatRequest, FinishReason, Message, ResponseFormat, Role, TokenLogprobs,
};
pub use client::Client;
pub use context::{CallContext, Held, Holding};
pub use cost::{Price, price_table_date};
pub use endpoint::{Endpoint, EndpointSpec};
pub use error::{EndpointError, ProviderError};
pub use key::ReplyKey;
pub use ledger::{Ledger, LedgerLimits, LedgerTotals, Reservation, WorstCase};
pub use place::{Place, Places};
pub use replies::{Claim, KeepError, NoReplies, ReplyStore};
pub use service::{Provider, provider_names, providers};
pub(crate) use transport::{OUT_OF_FILES_HINT, is_loopback, is_out_of_files};
