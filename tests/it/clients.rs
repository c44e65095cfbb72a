//! The hooks and the gate with the real coding agents. They take 2 GB, so they are not here
//! unless `VENIRE_CLIENTS` names a folder with them; `scripts/test-clients --install` makes one.

use std::path::Path;
use std::process::Command;

#[test]
fn the_real_clients_are_bounded_and_their_outcomes_are_true() {
    let Some(clients) = std::env::var_os("VENIRE_CLIENTS").filter(|folder| !folder.is_empty())
    else {
        eprintln!(
            "SKIPPED: Claude Code, Codex, Gemini CLI, OpenHands and aider: VENIRE_CLIENTS names no folder with them"
        );
        return;
    };
    let status = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/test-clients"))
        .arg("--clients")
        .arg(clients)
        .args(["--venire", env!("CARGO_BIN_EXE_venire")])
        .status()
        .unwrap();
    assert!(status.success(), "see above");
}
