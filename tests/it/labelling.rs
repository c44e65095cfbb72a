//! `venire label --terminal`: a person, or a script, labels on stdin.

use crate::workbench::{Ran, Workbench};

fn label(bench: &Workbench, flags: &[&str], typed: &str) -> Ran {
    let mut words = vec!["label", "cases.csv", "--terminal", "--rater", "ana"];
    words.extend(flags);
    bench.run_with_stdin(&words, typed)
}

const HEADER: &str = "item_id,rater,criterion,label\n";

#[test]
fn labels_are_kept_one_by_one_and_the_rest_waits() {
    let bench = Workbench::with_rules();
    let ran = label(&bench, &[], "\nmaybe\n1\ns\n").exits(4);
    ran.prints(&["case 1 of 3: a", "one two three", "case 2 of 3: b", "(empty)"]).says(&[
        "Is this output good?  0 (no), 1 (yes); s later, q quit",
        "`maybe` is no label: expected one of 0, 1",
    ]);
    assert_eq!(bench.read("labels.csv"), format!("{HEADER}a,ana,overall,1\n"));
    let ran = label(&bench, &[], "0\nq\n").exits(4);
    assert!(ran.stdout.starts_with("case 2 of 3: b"), "{}", ran.stdout);
    label(&bench, &[], "1\n").exits(0).says(&["all cases of this queue are labelled"]);
    assert_eq!(
        bench.read("labels.csv"),
        format!("{HEADER}a,ana,overall,1\nb,ana,overall,0\nc,ana,overall,1\n")
    );
    label(&bench, &[], "").exits(0);
}

#[test]
fn words_are_chosen_by_their_keys_and_ranges_by_their_numbers() {
    let bench = Workbench::with_rules();
    let words = ["--choices", "bad,good", "--criterion", "tone"];
    label(&bench, &words, "2\nbad\n3\n").exits(4).says(&["1 bad, 2 good;", "`3` is no label"]);
    let range = ["--scale", "unit", "--criterion", "quality"];
    label(&bench, &range, "0.25\nNaN\n1.5\n").exits(4).says(&["a number from 0 to 1"]);
    assert_eq!(
        bench.read("labels.csv"),
        format!("{HEADER}a,ana,tone,good\nb,ana,tone,bad\na,ana,quality,0.25\n")
    );
}

#[test]
fn what_the_judges_said_is_told_after_the_label_and_never_before() {
    let bench = Workbench::with_rules();
    bench.run(&["run", "cases.csv", "-q"]).exits(0);
    let before = label(&bench, &["--run", "latest"], "").exits(4);
    assert!(!before.stderr.contains("the judges"), "{}", before.stderr);
    let after = label(&bench, &["--run", "latest"], "1\n").exits(4);
    assert_eq!(after.stderr.matches("the judges: score").count(), 1, "{}", after.stderr);
    assert!(after.stderr.contains("no random sample"), "{}", after.stderr);
}

#[test]
fn a_hostile_text_steers_no_terminal_and_a_closed_book_is_refused() {
    let bench = Workbench::with_rules();
    let text = "\u{1b}[2J\u{202e}evil 二";
    bench.write("cases.csv", format!("id,output\n\u{1b}]0;x,{text}\n"));
    let shown = label(&bench, &[], "").exits(4).stdout;
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown:?}");
    assert!(shown.contains("evil 二"), "{shown}");
    label(&bench, &["--labels", "cases.csv"], "1\n").exits(2).says(&["is the data itself"]);
}
