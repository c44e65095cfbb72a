//! Rubrics: what is scored, with weights, descriptions and anchors for the levels.
//!
//! A rubric is read from a file or taken from the built-in ones, and is checked in full
//! before it is used. It turns scores by criterion into one overall score; it never asks
//! anyone, and never trusts an overall score that a judge made up itself.

mod builtin;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::{self, ConfigError, Problem, Problems};
use crate::score::{Scale, Score};

pub use builtin::BUILTIN_NAMES;

/// The share of the weight that must be scored for an overall score; below it the judge
/// abstains.
pub const LEAST_WEIGHT_SHARE: f64 = 0.5;

/// A natural language that prompts and rubrics are written in.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese, simplified.
    Zh,
}

impl Lang {
    /// The name in configuration and file names.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Zh => "zh",
        }
    }
}

impl fmt::Display for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is scored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rubric {
    /// Its name in configuration and reports.
    pub name: String,
    /// Changes when the rubric does; part of a judge's fingerprint.
    #[serde(default = "default_version")]
    pub version: String,
    /// What the rubric is for, shown to the judge.
    #[serde(default)]
    pub description: String,
    /// The language it is written in.
    #[serde(default)]
    pub lang: Lang,
    /// The scale that every criterion is scored on.
    #[serde(default = "default_scale")]
    pub scale: Scale,
    /// The criteria, in the order of every prompt and report.
    pub criteria: Vec<Criterion>,
}

/// One thing that is scored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// Its name; names that differ only in case, spaces, `_` and `-` are the same.
    pub name: String,
    /// Its share in the overall score, relative to the other weights; 0 is scored and shown,
    /// and does not count.
    #[serde(default = "default_weight")]
    pub weight: f64,
    /// What a good output does, shown to the judge.
    #[serde(default)]
    pub description: String,
    /// What levels of the scale mean: level to text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub anchors: BTreeMap<String, String>,
    /// The score, in [0,1], from which the criterion is passed.
    #[serde(default = "default_pass_mark")]
    pub pass_mark: f64,
    /// Whether an output that fails this criterion is rejected.
    #[serde(default)]
    pub required: bool,
}

fn default_version() -> String {
    "1".into()
}

fn default_scale() -> Scale {
    // The ends are constants in order, so the fallback is never taken.
    Scale::levels_between(1, 5).unwrap_or(Scale::UNIT)
}

fn default_weight() -> f64 {
    1.0
}

/// The pass mark of a criterion that names none.
#[must_use]
pub fn default_pass_mark() -> f64 {
    0.7
}

/// Why a rubric can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RubricError {
    /// Neither a built-in rubric nor the path of a file.
    #[error(
        "`{name}` is no built-in rubric ({}) and no rubric file (.toml, .yaml, .yml or .json){}",
        BUILTIN_NAMES.join(", "),
        suggestion.as_ref().map(|word| format!("; did you mean `{word}`?")).unwrap_or_default()
    )]
    Unknown {
        /// As written.
        name: String,
        /// The built-in rubric that was likely meant.
        suggestion: Option<String>,
    },
    /// The file can't be read or holds something that is not right.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A rubric written inside another configuration is not right.
    #[error(transparent)]
    Problem(#[from] Problem),
}

/// Too few criteria were scored for an overall score.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "only {:.0}% of the rubric's weight was scored: expected at least {:.0}%",
    share * 100.0,
    LEAST_WEIGHT_SHARE * 100.0
)]
pub struct TooLittleScored {
    /// The share of the weight that was scored.
    pub share: f64,
}

impl Rubric {
    /// The built-in rubric of that name, or the rubric file at that path, from `base`.
    ///
    /// # Errors
    /// When there is neither, or the file is not right.
    pub fn find(name_or_path: &str, lang: Lang, base: &Path) -> Result<Self, RubricError> {
        if let Some(text) = builtin::text(name_or_path, lang) {
            let path = PathBuf::from(format!("built-in/{name_or_path}.{lang}.toml"));
            return Self::from_toml(text, &path);
        }
        let path = Path::new(name_or_path);
        if path.extension().is_none() && path.components().count() < 2 {
            return Err(RubricError::Unknown {
                name: name_or_path.to_owned(),
                suggestion: config::nearest(name_or_path, BUILTIN_NAMES.iter().copied()),
            });
        }
        Self::read(&base.join(path))
    }

    /// Reads a rubric file: TOML, YAML or JSON by its extension.
    ///
    /// # Errors
    /// When it can't be read, or a key or value in it is not right.
    pub fn read(path: &Path) -> Result<Self, RubricError> {
        let file = config::read_file(path)?;
        Ok(Self::from_value_all(file.value.clone())
            .map_err(|problems| ConfigError::invalid(&file, problems))?)
    }

    fn from_toml(text: &str, path: &Path) -> Result<Self, RubricError> {
        let value: Value = toml::from_str(text).map_err(|e| ConfigError::Syntax {
            path: path.to_owned(),
            format: "TOML",
            message: e.to_string(),
        })?;
        Ok(Self::from_value_all(value)
            .map_err(|problems| ConfigError::Invalid { path: path.to_owned(), problems })?)
    }

    fn from_value_all(value: Value) -> Result<Self, Problems> {
        let rubric: Self = config::from_value_all(value)?;
        match rubric.problems() {
            problems if problems.is_empty() => Ok(rubric),
            problems => Err(problems.into()),
        }
    }

    /// A rubric from a value of a configuration file.
    ///
    /// # Errors
    /// When a key or value is not right.
    pub fn from_value(value: Value) -> Result<Self, Problem> {
        let rubric: Self = config::from_value(value)?;
        match rubric.problems().into_iter().next() {
            Some(problem) => Err(problem),
            None => Ok(rubric),
        }
    }

    /// Everything that is wrong with this rubric, in the order of its fields.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.name.trim().is_empty() {
            problems.push(Problem::new("name", "is empty: expected a name"));
        }
        if self.criteria.is_empty() {
            problems.push(Problem::new("criteria", "is empty: expected at least one criterion"));
            return problems;
        }
        for (i, criterion) in self.criteria.iter().enumerate() {
            let at = |field: &str| format!("criteria[{i}].{field}");
            if folded(&criterion.name).is_empty() {
                problems.push(Problem::new(at("name"), "is empty: expected a name"));
            } else if let Some(first) = self.criteria[..i]
                .iter()
                .find(|other| folded(&other.name) == folded(&criterion.name))
            {
                problems.push(Problem::new(
                    at("name"),
                    format!(
                        "`{}` is a second criterion named `{}`: expected distinct names",
                        criterion.name, first.name
                    ),
                ));
            }
            if let Err(reason) = config::check_weight(criterion.weight, true) {
                problems.push(Problem::new(at("weight"), reason));
            }
            if !(0.0..=1.0).contains(&criterion.pass_mark) {
                problems.push(Problem::new(
                    at("pass_mark"),
                    format!(
                        "`{}` is not a pass mark: expected a score in [0,1]",
                        criterion.pass_mark
                    ),
                ));
            }
            for level in criterion.anchors.keys() {
                let number = level.trim().parse::<f64>().ok();
                if number.is_none_or(|n| self.scale.score(n).is_err()) {
                    problems.push(Problem::new(
                        at("anchors"),
                        format!("`{level}` is not a level of the scale `{}`", self.scale),
                    ));
                }
            }
        }
        let total: f64 = self.criteria.iter().map(|c| c.weight).sum();
        if problems.is_empty() && !(total.is_finite() && total > 0.0) {
            problems.push(Problem::new(
                "criteria",
                format!("the weights sum to `{total}`: expected a sum above 0"),
            ));
        }
        problems
    }

    /// The same rubric on another scale. Anchors move to the level at the same position (3 on
    /// `1-5` to 0.5 on `unit`); one that would fall between two levels is left out, since no
    /// level means what it says.
    #[must_use]
    pub fn on_scale(mut self, scale: Scale) -> Self {
        let old = std::mem::replace(&mut self.scale, scale);
        for criterion in &mut self.criteria {
            criterion.anchors = std::mem::take(&mut criterion.anchors)
                .into_iter()
                .filter_map(|(level, text)| {
                    let position = old.score(level.trim().parse().ok()?).ok()?;
                    let value = (scale.value(position) * 1e9).round() / 1e9;
                    scale.score(value).is_ok().then(|| (value.to_string(), text))
                })
                .collect();
        }
        self
    }

    /// The overall score: sum of weight x score over the criteria scored, divided by the sum
    /// of their weights. `scores` is in the order of the criteria; `None` is a criterion left
    /// out, and so is one past the end.
    ///
    /// # Errors
    /// When less than [`LEAST_WEIGHT_SHARE`] of the weight was scored.
    pub fn overall(&self, scores: &[Option<Score>]) -> Result<Score, TooLittleScored> {
        let weights: Vec<f64> = self.criteria.iter().map(|c| c.weight).collect();
        weighted_mean(&weights, scores)
    }
}

/// The mean of the scores present, by weight; the share of the weight present must reach
/// [`LEAST_WEIGHT_SHARE`].
///
/// # Errors
/// When it does not, or there is no weight at all.
pub fn weighted_mean(weights: &[f64], scores: &[Option<Score>]) -> Result<Score, TooLittleScored> {
    let total: f64 = weights.iter().sum();
    let present = || weights.iter().zip(scores).filter_map(|(w, s)| s.map(|s| (*w, s)));
    let scored: f64 = present().map(|(w, _)| w).sum();
    let share = scored / total;
    // The slack lets exactly half pass whatever order the weights are summed in.
    if share.is_nan() || share < LEAST_WEIGHT_SHARE - 1e-9 {
        return Err(TooLittleScored { share: if share.is_nan() { 0.0 } else { share } });
    }
    let sum: f64 = present().map(|(w, s)| w * s.get()).sum();
    Score::from_arithmetic(sum / scored).map_err(|_| TooLittleScored { share })
}

impl Criterion {
    /// The anchors by level, lowest first. Keys that are no numbers, which a checked rubric
    /// does not have, are left out.
    #[must_use]
    pub fn anchors_by_level(&self) -> Vec<(f64, &str)> {
        let mut anchors: Vec<(f64, &str)> = self
            .anchors
            .iter()
            .filter_map(|(level, text)| Some((level.trim().parse().ok()?, text.as_str())))
            .collect();
        anchors.sort_by(|a, b| a.0.total_cmp(&b.0));
        anchors
    }

    /// Whether a score reaches the pass mark.
    #[must_use]
    pub fn passes(&self, score: Score) -> bool {
        // 4 on 1-5 must pass a mark of 0.75 whatever the rounding of the division.
        score.get() >= self.pass_mark - 1e-9
    }
}

/// A name without case, width, spaces, `_` and `-`: what names are compared by.
#[must_use]
pub fn folded(name: &str) -> String {
    name.chars()
        .map(narrow)
        .filter(|c| !c.is_whitespace() && !matches!(c, '_' | '-'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// The narrow form of a full-width ASCII character or ideographic space; others unchanged.
pub(crate) fn narrow(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        '\u{3000}' => ' ',
        other => other,
    }
}

#[cfg(test)]
mod tests;
