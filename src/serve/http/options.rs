//! Where a server listens, who may ask, and how much.

use std::net::SocketAddr;
use std::time::Duration;

use crate::serve::access::{Tokens, is_host_name, is_loopback};

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Who may ask; none is for this machine alone.
    pub tokens: Tokens,
    /// Names of hosts, beside `localhost` and addresses, under which it is reached.
    pub hosts: Vec<String>,
    /// How much at a time.
    pub limits: Limits,
    /// What the reward routes say.
    pub reward: RewardOptions,
}

/// How much at a time, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one request's body, and of one line of a batch.
    pub body_bytes: usize,
    /// Bytes of a whole batch; it lies on disk, not in memory.
    pub batch_bytes: u64,
    /// Cases in judgement at a time.
    pub concurrency: usize,
    /// Requests that may wait beyond those; one more is answered 429.
    pub queue: usize,
    /// Connections at a time; further ones wait to be accepted.
    pub connections: usize,
    /// The time for one case from its request on; judges that have not answered by then end
    /// as `timeout`.
    pub case_time: Duration,
    /// The time for a request's headers, and the longest pause within its body.
    pub read_time: Duration,
    /// The time that requests in hand have to end once the server is stopped.
    pub drain_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 1024 * 1024,
            batch_bytes: 256 * 1024 * 1024,
            concurrency: 16,
            queue: 256,
            connections: 1024,
            case_time: Duration::from_secs(120),
            read_time: Duration::from_secs(15),
            drain_time: Duration::from_secs(30),
        }
    }
}

/// Which number a reward is. There is none for what was not decided, in any of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RewardAs {
    /// The panel's score, and 0 where a required judge or criterion rejects: what can't be
    /// outvoted must not be paid for.
    #[default]
    Gated,
    /// The panel's score, whatever the decision.
    Score,
    /// 1 for accepted, 0 for rejected.
    Decision,
}

/// What the reward routes say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RewardOptions {
    /// Which number a reward is.
    pub reward: RewardAs,
    /// What `/verify` puts beside `mask_sample: true`, for hosts whose types ask for a number;
    /// without it the reward is null.
    pub masked: Option<f64>,
    /// Whether `/get_reward` puts null for what was not decided, instead of answering 503.
    pub null_rewards: bool,
}

/// Why a server can't be set up so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// Others could reach it, and anybody may ask.
    #[error(
        "`{address}` can be reached from other machines and there is no token: name a file of tokens with `--token-file`, set `VENIRE_TOKEN`, or listen on 127.0.0.1"
    )]
    NoToken {
        /// The address.
        address: SocketAddr,
    },
    /// A limit of 0 lets nothing through.
    #[error("a limit of 0 for {what} lets nothing through: expected at least 1")]
    Zero {
        /// What is limited.
        what: &'static str,
    },
    /// No name of a host.
    #[error("`{name}` is no name of a host: expected such as `venire.example.org`, without a port")]
    Host {
        /// What was given.
        name: String,
    },
}

impl Options {
    /// On an address, with no token and the usual limits.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            tokens: Tokens::default(),
            hosts: Vec::new(),
            limits: Limits::default(),
            reward: RewardOptions::default(),
        }
    }

    /// Refuses what would be open to others or let nothing through.
    ///
    /// # Errors
    /// See [`OptionsError`].
    pub fn check(&self) -> Result<(), OptionsError> {
        if self.tokens.is_empty() && !is_loopback(self.listen.ip()) {
            return Err(OptionsError::NoToken { address: self.listen });
        }
        let Limits { body_bytes, concurrency, connections, .. } = self.limits;
        for (what, limit) in [
            ("bytes of a body", body_bytes),
            ("concurrency", concurrency),
            ("connections", connections),
        ] {
            if limit == 0 {
                return Err(OptionsError::Zero { what });
            }
        }
        match self.hosts.iter().find(|name| !is_host_name(name)) {
            Some(name) => Err(OptionsError::Host { name: name.clone() }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_but_this_machine_s_own_goes_without_a_token() {
        let options = |text: &str| Options::new(text.parse().unwrap());
        for own in ["127.0.0.1:80", "127.9.9.9:0", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
            assert_eq!(options(own).check(), Ok(()), "{own}");
        }
        for open in ["0.0.0.0:80", "10.0.0.1:80", "[::]:80", "[::ffff:10.0.0.1]:80"] {
            let mut options = options(open);
            assert!(matches!(options.check(), Err(OptionsError::NoToken { .. })), "{open}");
            options.tokens.add("0123456789abcdef", "test").unwrap();
            assert_eq!(options.check(), Ok(()), "{open}");
        }
    }

    #[test]
    fn limits_of_nothing_and_hosts_that_are_none_are_refused() {
        let mut options = Options::new("127.0.0.1:0".parse().unwrap());
        options.limits.concurrency = 0;
        assert!(matches!(options.check(), Err(OptionsError::Zero { what: "concurrency" })));
        options.limits.concurrency = 1;
        for name in ["", "http://x", "a b", "x:80", "*"] {
            options.hosts = vec![name.to_owned()];
            assert!(matches!(options.check(), Err(OptionsError::Host { .. })), "{name}");
        }
    }
}
