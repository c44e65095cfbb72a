//! The program and the library as their users meet them. One binary, so that everything is
//! linked once.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test that can't go on has failed")]

mod action;
mod bad_input;
mod bench_data;
#[cfg(all(feature = "server", target_os = "linux"))]
mod browser;
mod calibrate;
mod calibrate_data;
mod calibrate_report;
mod comparing;
mod control;
mod control_accept;
mod control_agents;
mod control_durability;
mod control_faults;
mod control_lint;
mod control_model;
mod control_pitfalls;
mod control_replay;
mod control_review;
mod control_starts;
mod costs;
mod coverage;
#[path = "../support/coverage/mod.rs"]
mod coverage_runs;
mod docs;
#[cfg(all(unix, feature = "server", feature = "mcp"))]
mod docs_commands;
mod durability;
mod external;
mod gates;
mod golden;
#[path = "../support/golden/mod.rs"]
mod golden_cases;
mod hook;
mod import;
mod labelled_runs;
mod labelling;
mod local_model;
mod looks;
#[cfg(feature = "mcp")]
mod mcp;
#[path = "../support/mock/mod.rs"]
mod mock;
mod newcomer;
mod output;
mod profile;
mod provider;
mod replies;
#[cfg(feature = "schema")]
mod schemas;
#[cfg(feature = "server")]
mod serve;
#[cfg(feature = "server")]
mod serve_load;
#[cfg(feature = "server")]
mod serve_pages;
#[cfg(feature = "server")]
mod serving;
mod signals;
mod store_file;
mod trials;
mod verbs;
mod workbench;
