//! Calls the agent: within the budgets, and written down on both sides of the call.

use super::{Driver, LoopError, Notice, PLAN_MARGIN};
use crate::case::Case;
use crate::control::agent::{Made, Request};
use crate::control::event::{AgentFault, Budget, Command, Directive, What};
use crate::control::feedback::{Material, Version};
use crate::control::history::Output;
use crate::control::journal::book;
use crate::control::log::Entry;
use crate::provider::{Reservation, WorstCase};
use crate::verdict::{Status, Usage};

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
        // Kept back until the output is there, so that it can be judged and confirmed.
        let kept_back = match self.keep_back(&prompt, material.current.as_ref()) {
            Ok(kept_back) => kept_back,
            Err(budget) => {
                let entry = generated(&directive, None).refused(budget);
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
            snapshot: snapshot.as_deref(),
            temperature_factor: directive.temperature_factor,
        };
        let context = self.context(format!("{}/call/{}", self.run, directive.call));
        let made = self.setup.agent.generate(&request, &context).await;
        drop(kept_back);
        match made {
            Ok(made) => self.made(&directive, &material, made),
            Err(_) if self.options.cancel.is_cancelled() => Ok(Some(Command::Generate(directive))),
            Err(error) => {
                self.watcher
                    .notice(&Notice::AgentFailed { call: directive.call, detail: &error.detail });
                // A failed call is paid for all the same.
                let (usage, micro_dollars) = (error.usage, error.micro_dollars);
                if usage != Usage::default() || micro_dollars.is_some() {
                    book(&self.ledger, &usage, micro_dollars);
                    self.count("agent", &usage, micro_dollars.map(|micro| micro as f64 / 1e6));
                }
                if error.status == Status::Budget {
                    let budget = self.short_of();
                    let entry = generated(&directive, Some(error.detail)).refused(budget);
                    return self.write(entry.0, What::Refused(budget));
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
    ) -> Result<Option<Command>, LoopError> {
        if !made.booked {
            book(&self.ledger, &made.usage, made.micro_dollars);
        }
        self.count("agent", &made.usage, made.micro_dollars.map(|micro| micro as f64 / 1e6));
        let hash = self.journal.log().keep(&made.text)?;
        let change = directive
            .max_change
            .and(material.current.as_ref())
            .map(|base| 1.0 - crate::text::similarity(&base.output, &made.text));
        self.tell(Some(directive));
        self.remember(made.snapshot.clone());
        let entry = Entry::Generated {
            call: directive.call,
            output: Some(hash),
            snapshot: made.snapshot,
            change,
            fault: None,
            refused: None,
            detail: None,
            usage: made.usage,
            micro_dollars: made.micro_dollars,
        };
        self.write(entry, What::Generated(Output { change, ..Output::of(&made.text) }))
    }

    /// Sets aside what judging the next output will take, and makes sure that the agent's
    /// call fits beside it.
    pub(super) fn keep_back(
        &self,
        prompt: &str,
        current: Option<&Version>,
    ) -> Result<Option<Reservation>, Budget> {
        let case = Case::new(
            self.setup.task.clone(),
            current.map_or(prompt, |version| version.output.as_str()),
        );
        let rounds = u64::from(1 + self.setup.policy.confirm);
        let mut worst = WorstCase { micro_dollars: Some(0), ..WorstCase::default() };
        for seat in &self.setup.panel.seats {
            let plan = seat.judge.plan(&case);
            let times = rounds * u64::from(seat.samples);
            worst.tokens_in += plan.tokens_in * PLAN_MARGIN * times;
            worst.tokens_out += plan.tokens_out * times;
            let cost = plan.cost_usd.unwrap_or(0.0) * times as f64 * PLAN_MARGIN as f64;
            worst.micro_dollars = worst.micro_dollars.map(|sum| sum + (cost * 1e6).ceil() as u64);
        }
        let fits =
            |worst: WorstCase| self.ledger.reserve(worst).map_err(|_| self.short_of_beside(worst));
        let kept_back = fits(worst)?;
        if let Some(call) = self.setup.agent.worst_case(prompt) {
            fits(call)?;
        }
        Ok(Some(kept_back))
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
        let tokens = totals.tokens() + totals.tokens_reserved + worst.tokens_in + worst.tokens_out;
        let money =
            totals.micro_dollars + totals.micro_dollars_reserved + worst.micro_dollars.unwrap_or(0);
        if share(money, limits.micro_dollars) > share(tokens, limits.tokens) {
            Budget::Money
        } else {
            Budget::Tokens
        }
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
