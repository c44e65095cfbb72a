//! Feedback: the next prompt, from the task, the version to go on from and what the judges
//! found.
//!
//! Pure. The same history gives the same prompt. Rubric weights and judge prompts never reach
//! the agent; the task and the version to go on from are never cut.

mod words;

use std::collections::BTreeSet;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::words::{CHINESE, ENGLISH, Words};
use super::event::{Base, Directive};
use super::judgement::CriterionMark;
use crate::config::Problem;
use crate::ruling::Finding;
use crate::score::Score;
use crate::text::{excerpt, truncate, truncate_at_word};

/// Characters of a finding that was told before.
const AGAIN: usize = 100;

/// Characters of the summary of an earlier output.
const SUMMARY: usize = 200;

/// The section `[feedback]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FeedbackSpec {
    /// The form.
    pub kind: FeedbackKind,
    /// A MiniJinja template, for `kind = "template"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<PathBuf>,
    /// The language of headings and instructions.
    pub lang: Lang,
    /// Whether the agent may dispute a finding, once each, by a last line `DISPUTE 1: why`. Not
    /// with a template.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disputes: bool,
    /// Tokens of a prompt, estimated. Earlier tries are left out first, then findings; the
    /// task and the version to go on from never.
    pub max_feedback_tokens: u64,
}

impl Default for FeedbackSpec {
    fn default() -> Self {
        Self {
            kind: FeedbackKind::Detailed,
            template: None,
            lang: Lang::En,
            disputes: false,
            max_feedback_tokens: 8_000,
        }
    }
}

/// The form of feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FeedbackKind {
    /// The version to go on from, its scores, all findings, earlier tries.
    #[default]
    Detailed,
    /// The version to go on from, and what changed since the one before.
    Diff,
    /// A template file.
    Template,
}

/// The language of headings and instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

/// One version of the output, for the prompt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Version {
    /// Its number.
    pub generation: u32,
    /// The output.
    pub output: String,
    /// Its score; `None` where it was not judged.
    pub score: Option<Score>,
}

/// What a prompt is made of.
#[derive(Clone, Debug, Serialize)]
pub struct Material {
    /// What was asked.
    pub task: String,
    /// The version to go on from; `None` for the first output and after a new start.
    pub current: Option<Version>,
    /// Another version to compare with: the best one where it is not the current, else the
    /// one before.
    pub other: Option<Version>,
    /// The best score so far.
    pub best: Option<Score>,
    /// What the judges found in the current version.
    pub findings: Vec<Finding>,
    /// The required judges and criteria that rejected the current version, whatever its score.
    pub rejected_by: Vec<String>,
    /// The criteria of the current version.
    pub criteria: Vec<CriterionMark>,
    /// Findings that stood in earlier prompts.
    pub told: BTreeSet<String>,
    /// Findings that the agent has disputed.
    pub disputed: BTreeSet<String>,
    /// Earlier outputs, the oldest first.
    pub earlier: Vec<Version>,
    /// How the output is to be asked for.
    pub directive: Directive,
}

/// Why a prompt can't be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FeedbackError {
    /// The template file can't be read.
    #[error("failed to read the feedback template `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The template is not right.
    #[error("the feedback template: {0}")]
    Template(String),
}

/// Makes prompts.
#[derive(Debug)]
pub struct Feedback {
    spec: FeedbackSpec,
    template: Option<String>,
}

impl FeedbackSpec {
    /// What no single key's type can check.
    ///
    /// # Errors
    /// A template without its kind, or the other way round.
    pub fn check(&self) -> Result<(), Problem> {
        match (self.kind, &self.template) {
            (FeedbackKind::Template, None) => {
                Err(Problem::new("template", "expected a file, since `kind` is `template`"))
            }
            (FeedbackKind::Detailed | FeedbackKind::Diff, Some(_)) => {
                Err(Problem::new("template", "has no effect without `kind = \"template\"`"))
            }
            (FeedbackKind::Template, _) if self.disputes => {
                Err(Problem::new("disputes", "has no effect on a template: it numbers no findings"))
            }
            _ if self.max_feedback_tokens == 0 => {
                Err(Problem::new("max_feedback_tokens", "expected 1 or more, found 0"))
            }
            _ => Ok(()),
        }
    }

    /// The builder; `base` is the folder that a template's path starts from.
    ///
    /// # Errors
    /// A template that can't be read or parsed.
    pub fn build(&self, base: &std::path::Path) -> Result<Feedback, FeedbackError> {
        let template = match &self.template {
            None => None,
            Some(path) => {
                let path = base.join(path);
                crate::inputs::note(&path);
                let text = std::fs::read_to_string(&path)
                    .map_err(|source| FeedbackError::Read { path, source })?;
                engine().template_from_str(&text).map_err(|e| template_error(&e))?;
                Some(text)
            }
        };
        Ok(Feedback { spec: self.clone(), template })
    }
}

fn engine() -> minijinja::Environment<'static> {
    let mut engine = minijinja::Environment::new();
    engine.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    engine
}

fn template_error(error: &minijinja::Error) -> FeedbackError {
    FeedbackError::Template(error.to_string())
}

impl Feedback {
    /// The prompt.
    ///
    /// # Errors
    /// A template that names what there is not.
    pub fn prompt(&self, material: &Material) -> Result<String, FeedbackError> {
        if let Some(template) = &self.template {
            // The output is a value and never a template itself.
            return engine()
                .render_str(template, minijinja::value::Serde(material))
                .map_err(|e| template_error(&e));
        }
        let words = match self.spec.lang {
            Lang::En => &ENGLISH,
            Lang::Zh => &CHINESE,
        };
        let disputes = self.spec.disputes;
        let composer = Composer { words, material, kind: self.spec.kind, disputes };
        // Everything, then fewer earlier tries, then fewer findings.
        let (mut earlier, mut findings) = (material.earlier.len(), material.findings.len());
        loop {
            let prompt = composer.compose(earlier, findings);
            let fits = super::agent::estimated_tokens(&prompt) <= self.spec.max_feedback_tokens;
            if fits || (earlier == 0 && findings == 0) {
                return Ok(prompt);
            }
            if earlier > 0 {
                earlier -= 1;
            } else {
                findings -= 1;
            }
        }
    }
}

struct Composer<'a> {
    words: &'a Words,
    material: &'a Material,
    kind: FeedbackKind,
    disputes: bool,
}

impl Composer<'_> {
    /// The prompt with the newest `earlier` tries and the first `findings` findings.
    fn compose(&self, earlier: usize, findings: usize) -> String {
        let Material { task, current, directive, .. } = self.material;
        let words = self.words;
        let mut sections: Vec<String> = Vec::new();
        let Some(current) = current else {
            // The first output needs nothing but the task.
            sections.push(task.clone());
            if directive.generation > 1 {
                sections.push(words.start_anew.to_owned());
            }
            sections.extend(directive.note.clone());
            return sections.join("\n\n");
        };
        sections.push(format!("# {}\n\n{task}", words.task));
        let which = if directive.base == Base::Best { words.best_version } else { words.version };
        sections.push(format!(
            "# {which} ({} {})\n\n{}",
            words.generation,
            current.generation,
            fenced(&current.output)
        ));
        if self.kind == FeedbackKind::Diff {
            sections.extend(self.comparison(current));
        }
        sections.push(self.scores(current));
        if self.kind == FeedbackKind::Detailed {
            sections.extend(self.failed_criteria());
        }
        sections.extend(self.findings(findings));
        if self.kind == FeedbackKind::Detailed {
            sections.extend(self.earlier(earlier));
        }
        let dispute = self.material.findings[..findings].iter().any(|own| self.may_dispute(own));
        let instructions = self.instructions(dispute).join("\n");
        sections.push(format!("# {}\n\n{instructions}", words.to_do));
        sections.join("\n\n")
    }

    fn scores(&self, current: &Version) -> String {
        let words = self.words;
        let number = |score: Option<Score>| {
            score.map_or_else(|| words.not_judged.to_owned(), |s| format!("{:.2}", s.get()))
        };
        let mut text = format!("{}: {}", words.score, number(current.score));
        if !self.material.rejected_by.is_empty() {
            let names = self.material.rejected_by.join(", ");
            text.push_str(&format!("; {}: {names}", words.rejected_by));
        }
        if let Some(best) = self.material.best
            && current.score != Some(best)
        {
            text.push_str(&format!("; {}: {:.2}", words.best, best.get()));
        }
        text
    }

    fn failed_criteria(&self) -> Option<String> {
        let lines: Vec<String> = self
            .material
            .criteria
            .iter()
            .filter(|criterion| criterion.passed == Some(false))
            .map(|criterion| match criterion.score {
                Some(score) => format!("- {}: {:.2}", criterion.name, score.get()),
                None => format!("- {}", criterion.name),
            })
            .collect();
        (!lines.is_empty()).then(|| format!("# {}\n\n{}", self.words.not_met, lines.join("\n")))
    }

    fn findings(&self, most: usize) -> Option<String> {
        let words = self.words;
        let lines: Vec<String> = self
            .material
            .findings
            .iter()
            .take(most)
            .enumerate()
            .map(|(i, finding)| {
                let told = self.material.told.contains(&finding.text);
                let text = if told {
                    format!("{} ({})", excerpt(&finding.text, AGAIN), words.again)
                } else {
                    finding.text.replace('\n', "\n  ")
                };
                let number =
                    if self.may_dispute(finding) { format!("[{}] ", i + 1) } else { String::new() };
                let mut line = format!("- {number}{}: {text}", finding.judges.join(", "));
                if !finding.contradicted_by.is_empty() {
                    let who = finding.contradicted_by.join(", ");
                    line.push_str(&format!(" [{} {who}]", words.contradicted));
                }
                line
            })
            .collect();
        (!lines.is_empty()).then(|| format!("# {}\n\n{}", words.found, lines.join("\n")))
    }

    fn may_dispute(&self, finding: &Finding) -> bool {
        self.disputes && !self.material.disputed.contains(&finding.text)
    }

    fn earlier(&self, most: usize) -> Option<String> {
        let all = &self.material.earlier;
        let lines: Vec<String> = all[all.len() - most.min(all.len())..]
            .iter()
            .map(|version| {
                let score = version.score.map_or_else(
                    || self.words.not_judged.to_owned(),
                    |s| format!("{:.2}", s.get()),
                );
                format!("- {} ({score}): {}", version.generation, summary(&version.output))
            })
            .collect();
        (!lines.is_empty()).then(|| format!("# {}\n\n{}", self.words.earlier, lines.join("\n")))
    }

    /// The other version as a patch where that is shorter than its text.
    fn comparison(&self, current: &Version) -> Option<String> {
        let words = self.words;
        let other = self.material.other.as_ref()?;
        let patch = similar::TextDiff::from_lines(&other.output, &current.output)
            .unified_diff()
            .context_radius(2)
            .header(
                &format!("{} {}", words.generation, other.generation),
                &format!("{} {}", words.generation, current.generation),
            )
            .to_string();
        let shown = if patch.len() < other.output.len() { patch } else { other.output.clone() };
        let change = other.score.zip(current.score).map(|(before, now)| now.get() - before.get());
        let mut text = format!("# {}\n\n{}", words.changed, fenced(&shown));
        if let Some(change) = change {
            let direction = match change {
                c if c > 0.0 => words.better,
                c if c < 0.0 => words.worse,
                _ => words.same,
            };
            text.push_str(&format!("\n\n{}: {change:+.2} ({direction})", words.score_change));
        }
        Some(text)
    }

    fn instructions(&self, dispute: bool) -> Vec<String> {
        let words = self.words;
        let directive = &self.material.directive;
        let mut lines = Vec::new();
        if directive.base == Base::Best {
            lines.push(words.back_to_best.to_owned());
        }
        lines.extend(directive.nudges.iter().filter_map(|r| words.nudge(*r)).map(str::to_owned));
        if let Some(phase) = directive.phase {
            lines.push(words.phases[usize::from(phase).min(words.phases.len() - 1)].to_owned());
        }
        if !directive.focus.is_empty() {
            lines.push(format!("{}: {}", words.focus, directive.focus.join(", ")));
        }
        if let Some(limit) = directive.max_change {
            lines.push(words.limit.replace("{percent}", &format!("{:.0}", limit * 100.0)));
        }
        if directive.overruled {
            lines.push(words.overruled.to_owned());
        }
        lines.extend(directive.note.clone());
        lines.push(words.instruction.to_owned());
        if dispute {
            lines.push(words.dispute.to_owned());
        }
        lines
    }
}

/// One line of an output: white space folded, cut between words and never inside a character.
fn summary(output: &str) -> String {
    // What is cut off need not be folded.
    let start = truncate(output.trim_start(), 4 * SUMMARY);
    let line = start.split_whitespace().collect::<Vec<_>>().join(" ");
    let short = truncate_at_word(&line, SUMMARY - 3);
    let cut = short.len() < line.len() || start.len() < output.trim_start().trim_end().len();
    if cut { format!("{}...", short.trim_end()) } else { line }
}

/// The text between fences longer than any in it.
fn fenced(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests;
