//! What an import has gathered so far, and the rules that hold for every tool.
//!
//! One id is one case; the same case met again adds nothing. One judge speaks once of a case
//! and criterion. Every note is counted, and says where it came up first.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::error::ImportError;
use super::{Imported, Tool};
use crate::case::Case;
use crate::dataset::{Judgement, Label, Skipped};

/// Something to know about an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// How often.
    pub count: u64,
    /// What.
    pub text: String,
    /// Where it came up first.
    pub first: String,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} x {} (first: {})", self.count, self.text, self.first)
    }
}

pub(super) struct Sheet {
    file: String,
    prefix: String,
    cases: Vec<Case>,
    places: HashMap<String, (usize, String)>,
    judgements: Vec<Judgement>,
    said: HashSet<(String, String, String)>,
    labels: Vec<Label>,
    labelled: HashSet<(String, String, String)>,
    notes: Vec<Note>,
}

impl Sheet {
    pub(super) fn new(file: &str, prefix: &str) -> Self {
        Self {
            file: file.to_owned(),
            prefix: prefix.to_owned(),
            cases: Vec::new(),
            places: HashMap::new(),
            judgements: Vec::new(),
            said: HashSet::new(),
            labels: Vec::new(),
            labelled: HashSet::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// Adds a case; its id with the prefix.
    pub(super) fn case(&mut self, mut case: Case, place: &str) -> Result<String, ImportError> {
        case.id = format!("{}{}", self.prefix, case.id);
        let id = case.id.clone();
        match self.places.get(&id) {
            Some((held, _)) if self.cases[*held] == case => {}
            Some((_, first)) => {
                return Err(ImportError::TwoCases {
                    path: self.file.clone(),
                    id,
                    first: first.clone(),
                    second: place.to_owned(),
                });
            }
            None => {
                self.places.insert(id.clone(), (self.cases.len(), place.to_owned()));
                self.cases.push(case);
            }
        }
        Ok(id)
    }

    pub(super) fn judgement(&mut self, own: Judgement, place: &str) -> Result<(), ImportError> {
        let key = (own.case.clone(), own.judge.clone(), own.criterion.clone());
        if !self.said.insert(key) {
            return Err(ImportError::TwoJudgements {
                path: self.file.clone(),
                judge: own.judge,
                case: own.case,
                criterion: own.criterion,
                place: place.to_owned(),
            });
        }
        self.judgements.push(own);
        Ok(())
    }

    pub(super) fn label(&mut self, label: Label) -> Result<(), ImportError> {
        let key = (label.case.clone(), label.rater.clone(), label.criterion.clone());
        if !self.labelled.insert(key) {
            return Err(ImportError::TwoLabels {
                path: self.file.clone(),
                rater: label.rater,
                case: label.case,
                criterion: label.criterion,
            });
        }
        self.labels.push(label);
        Ok(())
    }

    pub(super) fn note(&mut self, text: impl Into<String>, place: &str) {
        let text = text.into();
        match self.notes.iter_mut().find(|own| own.text == text) {
            Some(own) => own.count += 1,
            None => self.notes.push(Note { count: 1, text, first: place.to_owned() }),
        }
    }

    pub(super) fn value(
        &self,
        place: &str,
        field: &str,
        expected: &'static str,
        found: impl std::fmt::Display,
    ) -> ImportError {
        ImportError::Value {
            path: self.file.clone(),
            place: place.to_owned(),
            field: field.to_owned(),
            expected,
            found: found.to_string().chars().take(80).collect(),
        }
    }

    pub(super) fn end(
        self,
        tool: Tool,
        version: Option<String>,
        skipped: Skipped,
    ) -> Result<Imported, ImportError> {
        if self.cases.is_empty() {
            return Err(ImportError::Empty { path: self.file });
        }
        Ok(Imported {
            file: self.file,
            tool,
            version,
            cases: self.cases,
            judgements: self.judgements,
            labels: self.labels,
            notes: self.notes,
            skipped,
        })
    }
}
