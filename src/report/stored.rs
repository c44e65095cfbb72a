//! The cases of a stored run, all of them or a selection.

use super::{About, Beside, Judged, ReportError};
use crate::case::Case;
use crate::panel::PanelSpec;
use crate::ruling::Ruling;
use crate::run::rows::{each_judged_at, row_numbers};
use crate::run::select::Selection;
use crate::store::{RunRecord, RunState, Store};

/// The judged cases of a run in the store.
#[derive(Clone, Debug)]
pub struct StoredRun<'a> {
    /// The store.
    pub store: &'a Store,
    /// The run.
    pub run: &'a RunRecord,
    /// Which of its cases.
    pub selection: &'a Selection,
}

impl StoredRun<'_> {
    /// What the labels say of a case, where they are known; its row left out.
    #[must_use]
    pub fn beside(&self, case: &Case, ruling: &Ruling) -> Beside {
        let truth = self.selection.truth.as_ref();
        Beside {
            row: None,
            truth: truth.and_then(|truth| truth.word(&case.id)),
            mistake: self.selection.mistake(ruling),
        }
    }

    /// What a report on it is about.
    #[must_use]
    pub fn about(&self) -> About {
        // A panel stored by another version may have keys that this one does not know.
        let panel = serde_json::from_str::<PanelSpec>(&self.run.panel);
        let mut about = panel.map(|spec| About::panel(&spec)).unwrap_or_default();
        about.panel.clone_from(&self.run.panel_name);
        about.run = Some(self.run.id.clone());
        about.created = Some(self.run.created.clone());
        about.data = Some(self.run.data.clone());
        if self.run.state != RunState::Finished {
            about.notes.push(
                "This run has not been finished: cases without a ruling are not shown.".into(),
            );
        }
        // The verb that started the run kept it among its options.
        let options: serde_json::Value =
            serde_json::from_str(&self.run.options).unwrap_or_default();
        let skipped = options.get("skipped_rows").and_then(serde_json::Value::as_u64);
        if let Some(skipped) = skipped.filter(|rows| *rows > 0) {
            let rows = super::words::plural(skipped, "row", "rows");
            about.notes.push(format!(
                "{rows} of the data could not be used and were left out (`--on-bad-row skip`)."
            ));
        }
        if let Some(chosen) = self.selection.words() {
            about.notes.push(format!("Only a selection of the cases: {chosen}."));
        }
        about
    }
}

impl Judged for StoredRun<'_> {
    fn each(
        &self,
        visit: &mut dyn FnMut(&Case, &Ruling) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        self.each_beside(&mut |case, ruling, _| visit(case, ruling))
    }

    fn each_beside(
        &self,
        visit: &mut dyn FnMut(&Case, &Ruling, Beside) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        let rows = row_numbers(self.run);
        each_judged_at(self.store, self.run.number, |place, case, ruling| {
            if !self.selection.takes(&ruling) {
                return Ok(());
            }
            let row = if case.has_content_id() { rows.of(place) } else { None };
            visit(&case, &ruling, Beside { row, ..self.beside(&case, &ruling) })
        })
    }
}
