//! The split: what is fitted on, and what certifies.
//!
//! Whole groups go to one part, groups that share a text with them, and the assignment
//! depends on nothing but the seed and the names, never on the order of a file. Groups with a
//! bad case are dealt out apart from the others, so that each part has its share of them.

use serde::{Deserialize, Serialize};

use super::error::CalibrationError;
use super::grouping::{Groups, Items};
use super::labelled::LabelledCase;

/// Of no seed that a user may choose.
const SEAL: u64 = 0x5ea1_5ea1_5ea1_5ea1;

/// A part of the labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Maps, weights and fitted thresholds come from here alone.
    Fit,
    /// Error rates and the certificate come from here alone.
    Certify,
}

/// How labels are split.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SplitPlan {
    /// Everything is described and nothing certified.
    None,
    /// This share of the groups is for fitting.
    Share(f64),
    /// By the field `split` of the cases.
    Data,
    /// The sealed part certifies, this share of the groups; all others fit.
    Sealed(f64),
}

impl Default for SplitPlan {
    /// A quarter to fit: maps need few labels, and a certificate needs bad cases.
    fn default() -> Self {
        Self::Share(0.25)
    }
}

/// Cases, groups and bad cases of one part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PartCounts {
    /// Cases.
    pub cases: u64,
    /// Groups.
    pub groups: u64,
    /// Truly good cases.
    pub good: u64,
    /// Truly bad cases.
    pub bad: u64,
    /// Groups with a bad case.
    pub groups_with_bad: u64,
    /// Hash of the ids, labels and groups of the part.
    pub hash: String,
}

/// The split as it is reported and kept in a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SplitReport {
    /// `none`, `share`, `data` or `sealed`.
    pub kind: String,
    /// Share of the groups that fit, for `share`.
    pub fit_share: Option<f64>,
    /// The seed.
    pub seed: u64,
    /// What a group is.
    pub group: String,
    /// Groups.
    pub groups: u64,
    /// Whether some group has several cases.
    pub clustered: bool,
    /// The fit part; `None` without a split.
    pub fit: Option<PartCounts>,
    /// The certify part; `None` without a split.
    pub certify: Option<PartCounts>,
}

/// A part a case.
#[derive(Clone, Debug)]
pub struct Split {
    /// The part of each case; `None` throughout without a split.
    pub parts: Vec<Option<Part>>,
    /// What is said about it.
    pub report: SplitReport,
}

impl Split {
    /// Splits the cases.
    ///
    /// # Errors
    /// For a share outside (0,1), `data` without a file of cases or with an unknown split,
    /// and a group or text in both parts.
    pub fn make(
        plan: SplitPlan,
        seed: u64,
        cases: &[LabelledCase],
        groups: &Groups,
        items: &Items,
        group: &str,
    ) -> Result<Self, CalibrationError> {
        let parts = match plan {
            SplitPlan::None => vec![None; cases.len()],
            SplitPlan::Share(share) => by_share(share, seed, cases, groups, items)?,
            SplitPlan::Data => by_data(cases, items)?,
            SplitPlan::Sealed(share) => {
                let sealed = sealed_cases(share, groups, items);
                let part = |sealed| if sealed { Part::Certify } else { Part::Fit };
                sealed.into_iter().map(|own| Some(part(own))).collect()
            }
        };
        check_disjoint(cases, groups, items, &parts)?;
        let counts = |part| count(part, &parts, cases, groups);
        let split = plan != SplitPlan::None;
        let report = SplitReport {
            kind: match plan {
                SplitPlan::None => "none",
                SplitPlan::Share(_) => "share",
                SplitPlan::Data => "data",
                SplitPlan::Sealed(_) => "sealed",
            }
            .to_owned(),
            fit_share: match plan {
                SplitPlan::Share(share) => Some(share),
                SplitPlan::None | SplitPlan::Data | SplitPlan::Sealed(_) => None,
            },
            seed,
            group: group.to_owned(),
            groups: groups.len() as u64,
            clustered: groups.clustered(),
            fit: split.then(|| counts(Part::Fit)),
            certify: split.then(|| counts(Part::Certify)),
        };
        Ok(Self { parts, report })
    }

    /// Positions of the cases of a part; all of them without a split.
    #[must_use]
    pub fn rows(&self, part: Part) -> Vec<usize> {
        (0..self.parts.len()).filter(|&i| self.parts[i].is_none_or(|own| own == part)).collect()
    }
}

fn seeded_hash(seed: u64, name: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes()).update(name.as_bytes());
    *hasher.finalize().as_bytes()
}

/// Which cases are of the sealed part: this share of the groups, chosen by a hash of a group's
/// name alone, so that no seed moves them and labels that come later leave them where they are.
/// Groups that share a text are sealed together.
#[must_use]
pub fn sealed_cases(share: f64, groups: &Groups, items: &Items) -> Vec<bool> {
    let blocks = join_by_content(groups, items);
    let mut names: Vec<Option<&str>> = vec![None; groups.len()];
    for (group, name) in groups.names.iter().enumerate() {
        let held = &mut names[blocks[group]];
        *held = Some(held.map_or(name.as_str(), |own| own.min(name.as_str())));
    }
    let sealed = |group: usize| {
        let name = names[blocks[group]].unwrap_or_default();
        let hash = seeded_hash(SEAL, name);
        let mut first = [0; 8];
        first.copy_from_slice(&hash[..8]);
        // The 53 bits that a number between 0 and 1 holds.
        ((u64::from_le_bytes(first) >> 11) as f64) / ((1_u64 << 53) as f64) < share
    };
    groups.of_case.iter().map(|group| sealed(*group)).collect()
}

/// Orders names by chance: the same for the same seed, whatever their order in a file.
pub(crate) fn shuffled<'a>(seed: u64, names: impl Iterator<Item = &'a str>) -> Vec<usize> {
    let mut keyed: Vec<([u8; 32], usize)> =
        names.enumerate().map(|(i, name)| (seeded_hash(seed, name), i)).collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, i)| i).collect()
}

fn by_share(
    share: f64,
    seed: u64,
    cases: &[LabelledCase],
    groups: &Groups,
    items: &Items,
) -> Result<Vec<Option<Part>>, CalibrationError> {
    if !(share > 0.0 && share < 1.0) {
        return Err(CalibrationError::OutOfRange {
            option: "--split",
            value: share,
            expected: "a share between 0 and 1",
        });
    }
    let blocks = join_by_content(groups, items);
    let mut names: Vec<&str> = vec![""; groups.len()];
    let mut has_bad = vec![false; groups.len()];
    let mut used = vec![false; groups.len()];
    for (i, case) in cases.iter().enumerate() {
        let block = blocks[groups.of_case[i]];
        let name = groups.names[groups.of_case[i]].as_str();
        // A block of groups is named by the first name in the alphabet, not in the file.
        if !used[block] || name < names[block] {
            names[block] = name;
        }
        used[block] = true;
        has_bad[block] |= !case.good;
    }
    let mut fits = vec![false; groups.len()];
    for bad in [true, false] {
        let stratum: Vec<usize> =
            (0..groups.len()).filter(|&b| used[b] && has_bad[b] == bad).collect();
        let take = (share * stratum.len() as f64).round() as usize;
        for place in shuffled(seed, stratum.iter().map(|&b| names[b])).into_iter().take(take) {
            fits[stratum[place]] = true;
        }
    }
    let part = |i: usize| if fits[blocks[groups.of_case[i]]] { Part::Fit } else { Part::Certify };
    Ok((0..cases.len()).map(|i| Some(part(i))).collect())
}

/// The block of each group: groups that share a text are one block.
fn join_by_content(groups: &Groups, items: &Items) -> Vec<usize> {
    fn root(parents: &mut [usize], mut i: usize) -> usize {
        while parents[i] != i {
            parents[i] = parents[parents[i]];
            i = parents[i];
        }
        i
    }
    let mut parents: Vec<usize> = (0..groups.len()).collect();
    let mut first: std::collections::HashMap<&str, usize> = std::collections::HashMap::new();
    for (i, facts) in items.facts.iter().enumerate() {
        let Some(content) = facts.as_ref().and_then(|facts| facts.content.as_deref()) else {
            continue;
        };
        let group = groups.of_case[i];
        let other = *first.entry(content).or_insert(group);
        let (a, b) = (root(&mut parents, group), root(&mut parents, other));
        parents[a.max(b)] = a.min(b);
    }
    (0..groups.len()).map(|group| root(&mut parents, group)).collect()
}

fn by_data(cases: &[LabelledCase], items: &Items) -> Result<Vec<Option<Part>>, CalibrationError> {
    if !items.present {
        return Err(CalibrationError::ItemsNeeded { option: "`--split data`" });
    }
    let part = |(i, case): (usize, &LabelledCase)| {
        let split = items.facts[i].as_ref().and_then(|facts| facts.split.clone());
        match split.as_deref().unwrap_or_default() {
            "fit" | "train" | "dev" | "validation" => Ok(Some(Part::Fit)),
            "certify" | "test" | "calibration" => Ok(Some(Part::Certify)),
            other => Err(CalibrationError::UnknownPart {
                case: items.name(i, &case.id),
                split: other.to_owned(),
            }),
        }
    };
    cases.iter().enumerate().map(part).collect()
}

fn check_disjoint(
    cases: &[LabelledCase],
    groups: &Groups,
    items: &Items,
    parts: &[Option<Part>],
) -> Result<(), CalibrationError> {
    let mut of_group: Vec<Option<usize>> = vec![None; groups.len()];
    let mut of_content: std::collections::HashMap<&str, usize> = std::collections::HashMap::new();
    let overlap = |a: usize, b: usize, why| {
        let (first, second) = if parts[a] == Some(Part::Fit) { (a, b) } else { (b, a) };
        Err(CalibrationError::PartsOverlap {
            first: items.name(first, &cases[first].id),
            second: items.name(second, &cases[second].id),
            why,
        })
    };
    for i in 0..cases.len() {
        let other = *of_group[groups.of_case[i]].get_or_insert(i);
        if parts[other] != parts[i] {
            return overlap(other, i, "are of one group");
        }
        if let Some(content) = items.facts[i].as_ref().and_then(|f| f.content.as_deref()) {
            let other = *of_content.entry(content).or_insert(i);
            if parts[other] != parts[i] {
                return overlap(other, i, "have the same content");
            }
        }
    }
    Ok(())
}

fn count(
    part: Part,
    parts: &[Option<Part>],
    cases: &[LabelledCase],
    groups: &Groups,
) -> PartCounts {
    let mut counts = PartCounts::default();
    let mut seen = vec![(false, false); groups.len()];
    let mut lines: Vec<String> = Vec::new();
    for (i, case) in cases.iter().enumerate().filter(|(i, _)| parts[*i] == Some(part)) {
        counts.cases += 1;
        counts.good += u64::from(case.good);
        counts.bad += u64::from(!case.good);
        let group = groups.of_case[i];
        seen[group] = (true, seen[group].1 || !case.good);
        lines.push(
            serde_json::json!([case.id, case.target, case.good, groups.names[group]]).to_string(),
        );
    }
    counts.groups = seen.iter().filter(|group| group.0).count() as u64;
    counts.groups_with_bad = seen.iter().filter(|group| group.1).count() as u64;
    // Sorted, so that the order of the file changes nothing.
    lines.sort_unstable();
    counts.hash = blake3::hash(lines.join("\n").as_bytes()).to_hex()[..32].to_owned();
    counts
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
