//! The order in which a person sees cases.
//!
//! Informative are cases on which the judges disagree and those whose score is near the
//! threshold: there a label tells most about which judge is right and where the threshold
//! belongs (uncertainty sampling, Lewis and Gale 1994).

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::book::{Book, BookError};
use crate::case::Case;
use crate::dataset::{DatasetError, LabelValue, ReadOptions, Reader, Source};
use crate::ruling::{Decision, Ruling};
use crate::score::Scale;
use crate::store::{Store, StoreError};

/// In which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As in the data.
    #[default]
    Data,
    /// The most informative first, by a run's rulings.
    Informative,
    /// At random, by a seed: a sample from which rates can be estimated.
    Random(u64),
}

/// Levels of a scale that are shown as choices at most.
const MOST_CHOICES: usize = 20;

/// A label that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The label as it is kept.
    pub label: String,
    /// The key that stands for it: a digit.
    pub key: Option<String>,
}

/// How a queue is filled.
#[derive(Clone, Debug)]
pub struct Options {
    /// The order.
    pub order: Order,
    /// The scale of a label; `None` for words.
    pub scale: Option<Scale>,
    /// The words, where labels are words.
    pub choices: Vec<String>,
    /// Cases at most.
    pub most: usize,
}

/// Why there is no queue, or an answer is none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The data can't be read.
    #[error(transparent)]
    Data(#[from] DatasetError),
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The labels can't be kept.
    #[error(transparent)]
    Book(#[from] BookError),
    /// No case of the data was judged in the run.
    #[error("no case of `{data}` was judged in run `{run}`: name the run of these data")]
    OtherData {
        /// The data.
        data: String,
        /// The run.
        run: String,
    },
    /// The data hold no case.
    #[error("`{data}` holds no case")]
    Empty {
        /// The data.
        data: String,
    },
    /// The answer is no label.
    #[error("`{given}` is no label: expected {expected}")]
    NoLabel {
        /// What was given.
        given: String,
        /// What was expected.
        expected: String,
    },
    /// The case is not the one that is asked about.
    #[error("`{case}` is not in the queue: it may have been labelled on another page")]
    NotAsked {
        /// The case.
        case: String,
    },
}

/// What judges said about a case, where a run is known.
#[derive(Clone, Debug)]
pub struct Said {
    /// The ruling with its verdicts.
    pub ruling: Ruling,
}

/// A case in the queue.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The case.
    pub case: Case,
    /// Its place among the run's cases, where it was judged.
    position: Option<u64>,
}

impl Entry {
    /// The texts that a person needs, with their names. Which system wrote the output, and what
    /// else the data hold, could tell what others think of it.
    #[must_use]
    pub fn texts(&self) -> Vec<(&'static str, String)> {
        let shown = ["input", "context", "expected", "baseline", "output"];
        let fields = self.case.fields();
        let texts = shown.into_iter().filter_map(|name| {
            let text = fields.iter().find(|(own, _)| *own == name)?.1.as_deref();
            match (text, name) {
                (Some(""), _) => Some((name, "(empty)".to_owned())),
                (Some(text), _) => Some((name, text.to_owned())),
                (None, "output") => Some((name, "(none recorded)".to_owned())),
                (None, _) => None,
            }
        });
        texts.collect()
    }
}

/// Cases in the order in which a person sees them, and the book that their labels go to.
#[derive(Debug)]
pub struct Queue {
    options: Options,
    waiting: VecDeque<Entry>,
    book: Book,
    run: Option<(Store, i64)>,
    /// Cases in the queue that were labelled before it was filled, or since.
    labelled: usize,
    total: usize,
    last: Option<(Entry, LabelValue)>,
}

/// How much a label of a judged case would tell, in [0,1]: the spread of the votes, or how
/// near the score is to the threshold, whichever is more; 1 where nothing was decided.
#[must_use]
pub(super) fn informativeness(ruling: &Ruling) -> f64 {
    if ruling.decision == Decision::Undecided {
        return 1.0;
    }
    let spread = ruling.spread.unwrap_or(0.0);
    let near = ruling.score.map_or(0.0, |score| 1.0 - (score.get() - ruling.threshold).abs());
    spread.max(near).clamp(0.0, 1.0)
}

/// The keys of cases in an order, the first to be seen first.
type Keyed = BTreeMap<(u64, u64), Entry>;

impl Queue {
    /// Fills a queue with the cases of a source that the book's rater has not labelled;
    /// `run` names a run of these data in a store.
    ///
    /// # Errors
    /// See [`QueueError`].
    pub fn fill(
        source: &Source,
        reading: &ReadOptions,
        run: Option<(Store, &str)>,
        book: Book,
        options: Options,
    ) -> Result<Self, QueueError> {
        let mut judged: HashMap<String, (u64, f64)> = HashMap::new();
        let mut named = None;
        if let Some((store, id)) = run {
            let record = store.run(id)?;
            store.each_case(record.number, |position, case| {
                if let Some(ruling) = store.ruling(record.number, position)? {
                    judged.insert(case, (position, informativeness(&ruling)));
                }
                Ok::<_, StoreError>(())
            })?;
            named = Some((store, record));
        }
        let mut keyed: Keyed = BTreeMap::new();
        let (mut labelled, mut seen, mut matched) = (0, 0u64, false);
        for case in Reader::open(source, reading)? {
            let case = case.map_err(DatasetError::from)?;
            seen += 1;
            let own = judged.get(&case.id).copied();
            matched |= own.is_some();
            if book.label(&case.id).is_some() {
                labelled += 1;
                continue;
            }
            let key = match options.order {
                Order::Data => 0,
                Order::Informative => rank(own.map_or(-1.0, |(_, value)| value)),
                Order::Random(seed) => {
                    let hash = blake3::hash(format!("{seed} {}", case.id).as_bytes());
                    u64::from_le_bytes(std::array::from_fn(|i| hash.as_bytes()[i]))
                }
            };
            let entry = Entry { case, position: own.map(|(position, _)| position) };
            keyed.insert((key, seen), entry);
            // Memory is that of what is asked about.
            if keyed.len() > options.most {
                keyed.pop_last();
            }
        }
        let data = || source.name().to_owned();
        if seen == 0 {
            return Err(QueueError::Empty { data: data() });
        }
        if let Some((_, record)) = &named
            && !matched
        {
            return Err(QueueError::OtherData { data: data(), run: record.id.clone() });
        }
        Ok(Self {
            total: labelled + keyed.len(),
            waiting: keyed.into_values().collect(),
            labelled,
            book,
            run: named.map(|(store, record)| (store, record.number)),
            options,
            last: None,
        })
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The book.
    #[must_use]
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// The case that is asked about; `None` when all are labelled.
    #[must_use]
    pub fn next(&self) -> Option<&Entry> {
        self.waiting.front()
    }

    /// Cases labelled, and all there are.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        (self.labelled, self.total)
    }

    /// The case labelled last, with its label.
    #[must_use]
    pub fn last(&self) -> Option<(&Case, &LabelValue)> {
        self.last.as_ref().map(|(entry, value)| (&entry.case, value))
    }

    /// What the judges said about the case labelled last: not before it has a label.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn said(&self) -> Result<Option<Said>, StoreError> {
        let (Some((entry, _)), Some((store, run))) = (&self.last, &self.run) else {
            return Ok(None);
        };
        let Some(position) = entry.position else { return Ok(None) };
        Ok(store.ruling(*run, position)?.map(|ruling| Said { ruling }))
    }

    /// What a label can be, in words.
    #[must_use]
    pub fn expected(&self) -> String {
        match self.options.scale {
            Some(scale) => match scale.levels() {
                Some(levels) if levels.len() <= MOST_CHOICES => {
                    let levels: Vec<String> = levels.iter().map(f64::to_string).collect();
                    format!("one of {}", levels.join(", "))
                }
                _ => format!("a number from {} to {}", scale.low(), scale.high()),
            },
            None => format!("one of {}", self.options.choices.join(", ")),
        }
    }

    /// The labels to choose from, each with the key that stands for it; none where any number
    /// of a range is one, or there are more than can be shown.
    #[must_use]
    pub fn choices(&self) -> Vec<Choice> {
        let labels: Vec<String> = match self.options.scale {
            Some(scale) => {
                let levels = scale.levels().filter(|levels| levels.len() <= MOST_CHOICES);
                levels.unwrap_or_default().iter().map(f64::to_string).collect()
            }
            None => self.options.choices.clone(),
        };
        let few = labels.len() <= 9;
        labels
            .into_iter()
            .enumerate()
            .map(|(i, label)| {
                let is_digit = label.len() == 1 && label.chars().all(|c| c.is_ascii_digit());
                let key = match (is_digit, few) {
                    (true, _) => Some(label.clone()),
                    (false, true) => Some((i + 1).to_string()),
                    (false, false) => None,
                };
                Choice { label, key }
            })
            .collect()
    }

    /// Reads what a person gave as a label.
    ///
    /// # Errors
    /// When it is not on the scale, or none of the words.
    pub fn read(&self, given: &str) -> Result<LabelValue, QueueError> {
        let given = given.trim();
        let value = match self.options.scale {
            Some(scale) => given
                .parse::<f64>()
                .ok()
                .filter(|number| scale.score(*number).is_ok())
                .map(LabelValue::Number),
            None => {
                let known = self.options.choices.iter().any(|choice| choice == given);
                known.then(|| LabelValue::Text(given.to_owned()))
            }
        };
        value.ok_or_else(|| QueueError::NoLabel {
            given: given.to_owned(),
            expected: self.expected(),
        })
    }

    /// Labels a case that waits. The label is on disk when this returns.
    ///
    /// # Errors
    /// When the case does not wait, the answer is no label, or it can't be kept.
    pub fn label(&mut self, case: &str, given: &str) -> Result<(), QueueError> {
        let value = self.read(given)?;
        let place = self.place(case)?;
        self.book.add(case, value.clone())?;
        self.labelled += 1;
        if let Some(entry) = self.waiting.remove(place) {
            self.last = Some((entry, value));
        }
        Ok(())
    }

    /// Puts a case at the end of the queue.
    ///
    /// # Errors
    /// When it does not wait.
    pub fn skip(&mut self, case: &str) -> Result<(), QueueError> {
        let place = self.place(case)?;
        if let Some(entry) = self.waiting.remove(place) {
            self.waiting.push_back(entry);
        }
        Ok(())
    }

    fn place(&self, case: &str) -> Result<usize, QueueError> {
        let place = self.waiting.iter().position(|entry| entry.case.id == case);
        place.ok_or_else(|| QueueError::NotAsked { case: case.to_owned() })
    }
}

/// The rank of an informativeness of at most 1: the greatest comes first, and cases that were
/// not judged (below 0) last.
fn rank(informativeness: f64) -> u64 {
    const STEPS: f64 = 1e12;
    ((1.0 - informativeness.clamp(-1.0, 1.0)) * STEPS) as u64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn options(order: Order) -> Options {
        let scale = Scale::levels_between(1, 5).ok();
        Options { order, scale, choices: Vec::new(), most: 100 }
    }

    fn queue(folder: &Path, data: &str, options: Options) -> Queue {
        let path = folder.join("labels.csv");
        let book = Book::open(&path, "ana", "overall").unwrap();
        let source = Source::spool(data.as_bytes(), "data").unwrap();
        let reading = ReadOptions { require_output: false, ..ReadOptions::default() };
        Queue::fill(&source, &reading, None, book, options).unwrap()
    }

    const DATA: &str = "id,input,output\na,q,x\nb,q,y\nc,q,z\n";

    #[test]
    fn a_queue_goes_on_where_the_rater_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = queue(folder.path(), DATA, options(Order::Data));
        assert_eq!(first.next().unwrap().case.id, "a");
        first.label("a", " 4 ").unwrap();
        first.skip("b").unwrap();
        assert_eq!((first.next().unwrap().case.id.as_str(), first.progress()), ("c", (1, 3)));
        assert_eq!(first.last().unwrap().1, &LabelValue::Number(4.0));
        assert!(matches!(first.label("a", "4"), Err(QueueError::NotAsked { .. })));
        for wrong in ["", "0", "6", "2.5", "NaN", "good", "1e999"] {
            assert!(matches!(first.label("b", wrong), Err(QueueError::NoLabel { .. })), "{wrong}");
        }
        drop(first);
        let second = queue(folder.path(), DATA, options(Order::Data));
        assert_eq!((second.next().unwrap().case.id.as_str(), second.progress()), ("b", (1, 3)));
    }

    #[test]
    fn words_are_labels_when_words_are_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let words = vec!["good".to_owned(), "bad".to_owned()];
        let own = Options { scale: None, choices: words, ..options(Order::Data) };
        let mut queue = queue(folder.path(), DATA, own);
        assert!(queue.label("a", "fine").unwrap_err().to_string().contains("good, bad"));
        queue.label("a", "good").unwrap();
    }

    #[test]
    fn a_random_order_follows_from_its_seed_and_a_limit_takes_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let order = |seed, most| {
            let own = Options { most, ..options(Order::Random(seed)) };
            let queue = queue(folder.path(), DATA, own);
            queue.waiting.iter().map(|entry| entry.case.id.clone()).collect::<Vec<_>>()
        };
        assert_eq!(order(1, 3), order(1, 3));
        assert_eq!(order(1, 2), order(1, 3)[..2]);
        assert!((0..20).any(|seed| order(seed, 3) != order(1, 3)));
    }

    #[test]
    fn disagreement_and_nearness_come_first_and_the_undecided_before_all() {
        let ruling = |score: f64, spread: f64, decision: &str| -> Ruling {
            serde_json::from_value(serde_json::json!({
                "case": "c", "score": score, "raw_score": score, "tiebreak": score, "spread": spread,
                "decision": decision, "reason": { "kind": "threshold" }, "threshold": 0.5,
                "degraded": false, "votes_used": 3, "votes_declared": 3, "quorum": 2,
                "criteria": [], "feedback": [], "votes": [], "verdicts": [],
            }))
            .unwrap()
        };
        let of = |score, spread, decision| informativeness(&ruling(score, spread, decision));
        assert_eq!(of(0.9, 0.1, "undecided"), 1.0);
        assert!((of(0.6, 0.1, "accept") - 0.9).abs() < 1e-9);
        assert!((of(1.0, 0.7, "accept") - 0.7).abs() < 1e-9);
        assert!(rank(0.9) < rank(0.7) && rank(0.0) < rank(-1.0));
    }
}
