//! Calls the agent: within the budgets, and written down on both sides of the call.

use std::sync::Arc;

use super::{Driver, LoopError, Notice};
use crate::control::agent::{Made, Request};
use crate::control::dispute::{self, Dispute};
use crate::control::event::{AgentFault, Budget, Command, Directive, What};
use crate::control::feedback::{Material, Version};
use crate::control::history::Output;
use crate::control::log::Entry;
use crate::control::result::known_cost;
use crate::provider::{Ledger, LedgerTotals, Reservation, WorstCase};
use crate::verdict::Usage;

/// A call that does not fit into a budget: which one, and the numbers.
pub(super) struct NoRoom {
    budget: Budget,
    why: String,
}

impl Driver<'_> {
    pub(super) async fn generate(
        &mut self,
        directive: Directive,
    ) -> Result<Option<Command>, LoopError> {
        self.pause(directive.wait_ms).await;
        if self.options.cancel.is_cancelled() {
            return Ok(Some(Command::Generate(directive)));
        }
        let material = self.material(&directive)?;
        let prompt = self.setup.feedback.prompt(&material)?;
        // Held until the output is there, so that it can be judged and confirmed.
        let mut held = match self.set_aside(&prompt, material.current.as_ref()).await {
            Ok(held) => held,
            Err(NoRoom { budget, why }) => {
                self.warn(&why);
                let entry = generated(&directive, Some(why)).refused(budget);
                return self.write(entry.0, What::Refused(budget));
            }
        };
        let hash = self.journal.log().keep(&prompt)?;
        self.journal
            .append(Entry::GenerateIntended { directive: directive.clone(), prompt: hash })?;
        let snapshot = directive.base_generation.and_then(|g| self.snapshots.get(&g).cloned());
        let request = Request {
            prompt: &prompt,
            generation: directive.generation,
            call: directive.call,
            start: self.part.start,
            snapshot: snapshot.as_deref(),
            temperature_factor: directive.temperature_factor,
        };
        let mut context = self.context(format!("{}/call/{}", self.run, directive.call));
        // The call has its own books, so that it waits for nobody once its room is set aside.
        context.ledger = Arc::new(Ledger::default());
        let made = self.setup.agent.generate(&request, &context).await;
        settle(&context.ledger.totals(), &mut held);
        match made {
            Ok(made) => self.made(&directive, &material, made, held),
            Err(_) if self.options.cancel.is_cancelled() => Ok(Some(Command::Generate(directive))),
            Err(error) => {
                self.watcher
                    .notice(&Notice::AgentFailed { call: directive.call, detail: &error.detail });
                // A failed call is paid for all the same.
                let (usage, micro_dollars) = (error.usage, error.micro_dollars);
                if usage != Usage::default() || micro_dollars.is_some() {
                    self.book(&usage, micro_dollars, &mut held);
                    self.count("agent", &usage, micro_dollars.map(|micro| micro as f64 / 1e6));
                }
                let fault = error.fault();
                let entry = generated(&directive, Some(error.detail))
                    .fault(fault)
                    .took(usage, micro_dollars);
                self.write(entry.0, What::AgentFailed(fault))
            }
        }
    }

    pub(super) fn made(
        &mut self,
        directive: &Directive,
        material: &Material,
        made: Made,
        mut held: Reservation,
    ) -> Result<Option<Command>, LoopError> {
        if !made.booked {
            self.book(&made.usage, made.micro_dollars, &mut held);
        }
        drop(held);
        self.count("agent", &made.usage, made.micro_dollars.map(|micro| micro as f64 / 1e6));
        let (text, disputes) = self.disputes_in(&made, material);
        let hash = self.journal.log().keep(&text)?;
        let change = directive
            .max_change
            .and(material.current.as_ref())
            .map(|base| 1.0 - crate::text::similarity(&base.output, &text));
        self.tell(Some(directive));
        self.remember(made.snapshot.clone());
        let entry = Entry::Generated {
            call: directive.call,
            output: Some(hash),
            snapshot: made.snapshot,
            change,
            disputes: disputes.clone(),
            fault: None,
            refused: None,
            detail: None,
            usage: made.usage,
            micro_dollars: made.micro_dollars,
        };
        let output = self.disputing(disputes, Output { change, ..Output::of(&text) });
        self.write(entry, What::Generated(output))
    }

    /// What an agent made, without what it disputes, and that.
    fn disputes_in(&self, made: &Made, material: &Material) -> (String, Vec<Dispute>) {
        if !self.setup.disputes {
            return (made.text.clone(), Vec::new());
        }
        let said = made.words.as_ref().unwrap_or(&made.text);
        let (rest, mut disputes) = dispute::take(said, &material.findings);
        disputes.retain(|own| !self.rebutted.contains(&own.finding));
        let text = match (&made.words, &material.current) {
            (Some(_), _) => made.text.clone(),
            // Nothing but a dispute: the version stands as it is.
            (None, Some(base)) if rest.trim().is_empty() => base.output.clone(),
            (None, _) => rest,
        };
        (text, disputes)
    }

    /// Takes note of what is disputed beside an output.
    pub(super) fn disputing(&mut self, disputes: Vec<Dispute>, mut output: Output) -> Output {
        output.disputes = disputes.iter().map(Dispute::key).collect();
        self.rebutted.extend(disputes.iter().map(|own| own.finding.clone()));
        self.disputes = disputes;
        output
    }

    /// Books what a program took; of one that calls a model and tells no price, the dollars
    /// are not known.
    fn book(&self, usage: &Usage, micro_dollars: Option<u64>, held: &mut Reservation) {
        let is_free = known_cost(usage, None).is_some();
        held.spend(usage, micro_dollars.or(is_free.then_some(0)));
    }

    /// Sets aside what the agent's call takes, as far as that is known before, and what judging
    /// and confirming its output takes at most. In one piece: two would let parallel starts
    /// wait for each other's halves.
    async fn set_aside(
        &self,
        prompt: &str,
        current: Option<&Version>,
    ) -> Result<Reservation, NoRoom> {
        let output = current.map_or(prompt, |version| version.output.as_str());
        let (call, judging) = self.setup.worst_case(prompt, output);
        let worst = WorstCase {
            micro_dollars: call.micro_dollars.zip(judging.micro_dollars).map(|(a, b)| a + b),
            tokens_in: call.tokens_in + judging.tokens_in,
            tokens_out: call.tokens_out + judging.tokens_out,
        };
        self.ledger.reserve_in_turn(worst).await.map_err(|error| {
            let budget = self.short_of_beside(worst);
            let key = match budget {
                Budget::Tokens => "tokens",
                Budget::Money => "usd",
            };
            let tokens = |of: WorstCase| of.tokens_in + of.tokens_out;
            let why = format!(
                "another output does not fit into the budget: {} ({} tokens for the agent, {} set aside for its judging); `budget.{key}` sets the limit",
                error.message,
                tokens(call),
                tokens(judging)
            );
            NoRoom { budget, why }
        })
    }

    pub(super) fn short_of(&self) -> Budget {
        self.short_of_beside(WorstCase::default())
    }

    /// The budget that is the shorter one for another call.
    pub(super) fn short_of_beside(&self, worst: WorstCase) -> Budget {
        let (limits, totals) = (self.ledger.limits(), self.ledger.totals());
        let share = |used: u64, limit: Option<u64>| {
            limit.map_or(0.0, |limit| used as f64 / limit.max(1) as f64)
        };
        let tokens =
            totals.tokens_at_most() + totals.tokens_reserved + worst.tokens_in + worst.tokens_out;
        let money = totals.micro_dollars_at_most()
            + totals.micro_dollars_reserved
            + worst.micro_dollars.unwrap_or(0);
        if share(money, limits.micro_dollars) > share(tokens, limits.tokens) {
            Budget::Money
        } else {
            Budget::Tokens
        }
    }
}

/// Books what a model's client has booked for a call.
fn settle(own: &LedgerTotals, held: &mut Reservation) {
    if own.calls_answered > 0 {
        held.spend(&own.usage, (own.calls_unpriced == 0).then_some(own.micro_dollars));
    }
    if own.calls_unknown > 0 {
        held.lose();
    }
}

/// A call that gave no output, as an entry.
struct NoOutput(Entry);

fn generated(directive: &Directive, detail: Option<String>) -> NoOutput {
    NoOutput(Entry::Generated {
        call: directive.call,
        output: None,
        snapshot: None,
        change: None,
        disputes: Vec::new(),
        fault: None,
        refused: None,
        detail,
        usage: Usage::default(),
        micro_dollars: None,
    })
}

impl NoOutput {
    fn refused(mut self, budget: Budget) -> Self {
        if let Entry::Generated { refused, .. } = &mut self.0 {
            *refused = Some(budget);
        }
        self
    }

    fn took(mut self, own: Usage, dollars: Option<u64>) -> Self {
        if let Entry::Generated { usage, micro_dollars, .. } = &mut self.0 {
            (*usage, *micro_dollars) = (own, dollars);
        }
        self
    }

    fn fault(mut self, what: AgentFault) -> Self {
        if let Entry::Generated { fault, .. } = &mut self.0 {
            *fault = Some(what);
        }
        self
    }
}
