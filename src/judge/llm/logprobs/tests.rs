use super::*;

fn token(text: &str, top: &[(&str, f64)]) -> TokenLogprobs {
    let logprob = top.iter().find(|(t, _)| *t == text).map_or(-30.0, |(_, p)| p.ln());
    let top = top.iter().map(|(t, p)| ((*t).to_owned(), p.ln())).collect();
    TokenLogprobs { token: text.to_owned(), logprob, top }
}

fn score(tokens: &[TokenLogprobs], scale: &str) -> Option<f64> {
    let shape = Shape::Score { scale: scale.parse().unwrap() };
    read(tokens, &shape).map(|r| r.answers[0].raw.as_ref().unwrap().as_f64().unwrap())
}

fn near(found: Option<f64>, expected: f64) {
    assert!((found.unwrap() - expected).abs() < 1e-9, "{found:?}, not {expected}");
}

#[test]
fn variants_of_yes_and_no_are_summed_in_both_languages() {
    let tokens =
        [token("Yes", &[("Yes", 0.4), (" yes", 0.1), ("YES", 0.05), ("No", 0.3), ("nope", 0.15)])];
    let reading = read(&tokens, &Shape::YesNo).unwrap();
    let score = reading.answers[0].score.unwrap().get();
    assert!((score - 0.55 / 0.85).abs() < 1e-9);
    assert!((reading.mass.unwrap() - 0.85).abs() < 1e-9);
    let chinese = [token("否", &[("否", 0.7), ("是", 0.2), ("不是", 0.05)])];
    let reading = read(&chinese, &Shape::YesNo).unwrap();
    assert!((reading.answers[0].score.unwrap().get() - 0.2 / 0.95).abs() < 1e-9);
}

#[test]
fn leading_white_space_is_no_answer() {
    let tokens =
        [token("\n", &[("\n", 0.9), ("Yes", 0.1)]), token(" No", &[(" No", 0.8), ("Yes", 0.2)])];
    let reading = read(&tokens, &Shape::YesNo).unwrap();
    assert!((reading.answers[0].score.unwrap().get() - 0.2).abs() < 1e-9);
    assert!(read(&tokens[..1], &Shape::YesNo).is_none());
    assert!(read(&[], &Shape::YesNo).is_none());
}

#[test]
fn a_token_that_is_about_something_else_is_not_read() {
    let tokens = [token("The", &[("The", 0.93), ("Yes", 0.05), ("No", 0.02)])];
    assert!(read(&tokens, &Shape::YesNo).is_none());
}

#[test]
fn numbers_that_are_no_probabilities_are_left_out() {
    let mut bad = token("Yes", &[("Yes", 0.5), ("No", 0.25)]);
    bad.top.push(("no".into(), f64::NAN));
    bad.top.push(("NO".into(), 3.0));
    bad.top.push(("yes".into(), f64::NEG_INFINITY));
    let reading = read(&[bad], &Shape::YesNo).unwrap();
    assert!((reading.answers[0].score.unwrap().get() - 0.5 / 0.75).abs() < 1e-9);
}

#[test]
fn a_produced_token_whose_own_value_is_none_makes_the_text_be_read() {
    for wrong in [1e-5, 1e-3, 0.5, 3.0, f64::NAN, f64::INFINITY] {
        let mut bad = token("Yes", &[("No", 0.05), ("Yes", 0.5)]);
        bad.logprob = wrong;
        assert!(read(&[bad], &Shape::YesNo).is_none(), "{wrong}");
    }
    // Rounding to just above 0 is certainty.
    let mut sure = token("Yes", &[("Yes", 1.0), ("No", 0.05)]);
    sure.logprob = 1e-7;
    assert!(read(&[sure], &Shape::YesNo).is_some());
    let mut next = token("0", &[("0", 0.9)]);
    next.logprob = 2.0;
    assert_eq!(score(&[token("1", &[("1", 0.9)]), next], "1-10"), None);
}

#[test]
fn the_produced_token_counts_once_even_if_the_list_lacks_it() {
    let mut one = token("Yes", &[("No", 0.4)]);
    one.logprob = 0.6_f64.ln();
    let reading = read(&[one], &Shape::YesNo).unwrap();
    assert!((reading.answers[0].score.unwrap().get() - 0.6).abs() < 1e-9);
}

#[test]
fn a_score_is_the_expectation_over_the_levels() {
    let tokens = [token("4", &[("4", 0.6), ("5", 0.2), ("3", 0.1), ("9", 0.1)])];
    near(score(&tokens, "1-5"), (2.4 + 1.0 + 0.3) / 0.9);
    let binary = [token("1", &[("1", 0.75), ("0", 0.25)])];
    near(score(&binary, "binary"), 0.75);
}

#[test]
fn ten_as_a_token_of_its_own_is_ten() {
    let tokens = [token("10", &[("10", 0.5), ("1", 0.1), ("8", 0.4)])];
    near(score(&tokens, "1-10"), 5.0 + 0.1 + 3.2);
}

#[test]
fn a_one_that_may_start_a_ten_is_split_by_what_follows() {
    let first = token("1", &[("1", 0.8), ("9", 0.2)]);
    let next = token("0", &[("0", 0.75), ("", 0.25)]);
    near(score(&[first.clone(), next], "1-10"), 10.0 * 0.6 + 1.0 * 0.2 + 9.0 * 0.2);
    // Nothing follows: the answer was 1.
    near(score(std::slice::from_ref(&first), "1-10"), 0.8 + 1.8);
    // Another token was produced, so nothing is known of what follows a 1.
    let nine = token("9", &[("1", 0.4), ("9", 0.6)]);
    assert_eq!(score(&[nine, token("0", &[("0", 1.0)])], "1-10"), None);
    // A negligible 1 changes nothing.
    let sure = token("9", &[("1", 0.001), ("9", 0.999)]);
    assert!(score(&[sure], "1-10").is_some());
    // On 1-5 a 1 is a 1.
    near(score(&[first], "1-5"), 1.0);
}

#[test]
fn only_whole_levels_from_0_to_10_are_tokens() {
    for (scale, yes) in [
        ("1-5", true),
        ("1-10", true),
        ("binary", true),
        ("unit", false),
        ("0-1/0.5", false),
        ("-1-1", false),
        ("1-11", false),
    ] {
        assert_eq!(token_levels(scale.parse().unwrap()).is_some(), yes, "{scale}");
    }
}

#[test]
fn the_winner_of_a_pair_is_read_from_the_letters_only() {
    let tokens = [token("A", &[("A", 0.6), (" B", 0.2), ("a", 0.1), ("Both", 0.1)])];
    let reading = read(&tokens, &Shape::Pairwise).unwrap();
    assert!((reading.answers[0].score.unwrap().get() - 0.7 / 0.9).abs() < 1e-9);
}
