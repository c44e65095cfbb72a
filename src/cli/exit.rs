//! Exit codes: a part of the contract with scripts.

use std::process::ExitCode;

use crate::calibration::CalibrationError;
use crate::control::driver::LoopError;
use crate::control::setup::SetupError;
use crate::panel::PanelError;
use crate::run::RunError;
use crate::store::StoreError;

/// How a verb ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// Done, accepted, within limits.
    Done,
    /// Judged, and not accepted or over a limit.
    NotAccepted,
    /// Usage, configuration or input error; nothing was judged.
    Usage,
    /// No quorum, too many unscored, no cases, outage, budget, a profile for another panel.
    Inconclusive,
    /// A person has to answer first.
    Waiting,
    /// Stopped by the user.
    Interrupted,
    /// Whoever read standard output went away.
    ClosedPipe,
}

impl Exit {
    /// The number that a shell sees.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::NotAccepted => 1,
            Self::Usage => 2,
            Self::Inconclusive => 3,
            Self::Waiting => 4,
            Self::Interrupted => 130,
            // As of a program that SIGPIPE ended, which is what shells expect here.
            Self::ClosedPipe => 141,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Rows that could not be written after a run was judged.
#[derive(Debug, thiserror::Error)]
#[error("run `{run}` is kept, its rows are not written: `venire export {run} -o FILE` writes them")]
pub(super) struct Unwritten {
    /// Its id.
    pub(super) run: String,
}

/// The best output of a loop could not be written after all.
#[derive(Debug, thiserror::Error)]
#[error("the loop has ended; its best output is kept in its log")]
pub(super) struct LoopUnwritten;

/// The exit code of an error: 2, unless judging had begun, the machine is at
/// fault, or a profile was refused.
pub(super) fn of_error(error: &anyhow::Error) -> Exit {
    let begun = error.chain().any(|cause| {
        cause.is::<RunError>()
            || cause.downcast_ref::<std::io::Error>().is_some_and(is_no_room)
            || cause.downcast_ref::<LoopError>().is_some_and(LoopError::is_fault)
            || cause.downcast_ref::<StoreError>().is_some_and(|error| !error.is_wrong_path())
            || refuses_profile(cause)
            || matches!(
                cause.downcast_ref::<CalibrationError>(),
                Some(CalibrationError::NoData { .. })
            )
    });
    if begun || error.is::<Unwritten>() || error.is::<LoopUnwritten>() {
        Exit::Inconclusive
    } else {
        Exit::Usage
    }
}

/// Whether a write failed for want of room, which no other usage would have changed.
fn is_no_room(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Whether a cause is a refused profile. The errors of panels and loops stand for it in the
/// chain, since they pass its words on.
fn refuses_profile(cause: &(dyn std::error::Error + 'static)) -> bool {
    let refused = match (cause.downcast_ref::<PanelError>(), cause.downcast_ref::<SetupError>()) {
        (Some(PanelError::Profile(error)), _)
        | (_, Some(SetupError::Profile(error) | SetupError::Panel(PanelError::Profile(error)))) => {
            Some(error)
        }
        _ => cause.downcast_ref::<CalibrationError>(),
    };
    refused.is_some_and(CalibrationError::refuses_profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_after_judging_began_is_inconclusive_and_no_usage_error() {
        let usage = anyhow::anyhow!("no such file");
        assert_eq!(of_error(&usage), Exit::Usage);
        let outage = anyhow::Error::new(RunError::Task("x".into())).context("failed to run");
        assert_eq!(of_error(&outage), Exit::Inconclusive);
    }
}
