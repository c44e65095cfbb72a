use serde_json::json;

use super::*;

fn both(name: &str) -> [Rubric; 2] {
    [Lang::En, Lang::Zh].map(|lang| Rubric::find(name, lang, Path::new("")).unwrap())
}

#[test]
fn built_in_rubrics_are_valid_and_alike_in_both_languages() {
    for name in BUILTIN_NAMES {
        let [en, zh] = both(name);
        assert_eq!((en.name.as_str(), zh.name.as_str()), (name, name));
        assert_eq!((en.lang, zh.lang), (Lang::En, Lang::Zh));
        assert_eq!(en.scale, zh.scale);
        assert_eq!(en.version, zh.version);
        let outline = |r: &Rubric| {
            let part = |c: &Criterion| {
                let levels: Vec<String> = c.anchors.keys().cloned().collect();
                (c.name.clone(), c.weight, c.pass_mark, c.required, levels)
            };
            r.criteria.iter().map(part).collect::<Vec<_>>()
        };
        assert_eq!(outline(&en), outline(&zh), "{name}");
        let total: f64 = en.criteria.iter().map(|c| c.weight).sum();
        assert!((total - 1.0).abs() < 1e-9, "{name} sums to {total}");
        for criterion in en.criteria.iter().chain(&zh.criteria) {
            assert!(!criterion.description.is_empty() && criterion.anchors.len() >= 3);
        }
        let chinese =
            |r: &Rubric| r.description.chars().any(|c| ('\u{4e00}'..'\u{9fff}').contains(&c));
        assert!(chinese(&zh) && !chinese(&en));
    }
}

#[test]
fn general_has_the_ten_documented_weights() {
    let [general, _] = both("general");
    let weights: Vec<(&str, f64)> =
        general.criteria.iter().map(|c| (c.name.as_str(), c.weight)).collect();
    assert_eq!(
        weights,
        [
            ("relevance", 0.20),
            ("coherence", 0.15),
            ("completeness", 0.15),
            ("accuracy", 0.20),
            ("structure", 0.10),
            ("formatting", 0.05),
            ("grammar", 0.05),
            ("style", 0.05),
            ("requirements", 0.03),
            ("constraints", 0.02),
        ]
    );
}

fn problem(value: serde_json::Value) -> String {
    Rubric::from_value(value).unwrap_err().to_string()
}

#[test]
fn a_faulty_rubric_is_refused_with_the_place_and_the_cure() {
    let with = |criterion: serde_json::Value| json!({"name": "r", "criteria": [criterion]});
    assert!(problem(json!({"name": "r", "criteria": []})).contains("at least one criterion"));
    assert!(problem(json!({"name": " ", "criteria": [{"name": "a"}]})).contains("`name`"));
    let text = problem(with(json!({"name": "a", "wieght": 1})));
    assert!(text.contains("did you mean `weight`?"), "{text}");
    let text = problem(with(json!({"name": "a", "weight": -1})));
    assert!(text.contains("criteria[0].weight"), "{text}");
    let text = problem(with(json!({"name": "a", "weight": 0})));
    assert!(text.contains("sum to `0`"), "{text}");
    let text = problem(with(json!({"name": "a", "pass_mark": 1.5})));
    assert!(text.contains("criteria[0].pass_mark"), "{text}");
    let text = problem(with(json!({"name": "a", "anchors": {"6": "great"}})));
    assert!(text.contains("`6` is not a level"), "{text}");
    let text =
        problem(json!({"name": "r", "criteria": [{"name": "Brand tone"}, {"name": "brand_tone"}]}));
    assert!(text.contains("second criterion"), "{text}");
}

#[test]
fn a_weight_that_is_not_a_number_is_refused() {
    let mut rubric = both("summary")[0].clone();
    rubric.criteria[1].weight = f64::NAN;
    assert!(rubric.problems()[0].to_string().contains("criteria[1].weight"));
    rubric.criteria[1].weight = f64::INFINITY;
    assert_eq!(rubric.problems().len(), 1);
    rubric.criteria[1].weight = 0.3;
    rubric.criteria[1].pass_mark = f64::NAN;
    assert!(rubric.problems()[0].to_string().contains("criteria[1].pass_mark"));
}

#[test]
fn rubric_files_are_found_from_the_base_folder_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("r.toml", "name = \"r\"\n[[criteria]]\nname = \"a\"\n[criteria.anchors]\n1 = \"bad\"\n"),
        ("r.yaml", "name: r\ncriteria:\n  - name: a\n    anchors: {\"1\": bad}\n"),
        ("r.json", r#"{"name":"r","criteria":[{"name":"a","anchors":{"1":"bad"}}]}"#),
    ];
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
        let rubric = Rubric::find(name, Lang::En, folder.path()).unwrap();
        assert_eq!(rubric.criteria[0].anchors_by_level(), [(1.0, "bad")], "{name}");
        assert_eq!(rubric.criteria[0].pass_mark, 0.7);
    }
    let error = Rubric::find("generl", Lang::En, folder.path()).unwrap_err();
    assert!(error.to_string().contains("did you mean `general`?"), "{error}");
    assert!(matches!(
        Rubric::find("none.toml", Lang::En, folder.path()),
        Err(RubricError::Config(ConfigError::Read { .. }))
    ));
}

#[test]
fn the_overall_score_renormalises_and_abstains_below_half_the_weight() {
    let score = |v: f64| Some(Score::new(v).unwrap());
    let weights = [0.5, 0.3, 0.2];
    let all = weighted_mean(&weights, &[score(1.0), score(0.5), score(0.0)]).unwrap();
    assert!((all.get() - 0.65).abs() < 1e-12);
    let half = weighted_mean(&weights, &[score(0.8), None, None]).unwrap();
    assert!((half.get() - 0.8).abs() < 1e-12);
    let other_half = weighted_mean(&weights, &[None, score(0.4), score(0.4)]).unwrap();
    assert!((other_half.get() - 0.4).abs() < 1e-12);
    let too_little = weighted_mean(&weights, &[None, score(1.0), None]).unwrap_err();
    assert!((too_little.share - 0.3).abs() < 1e-12);
    assert!(weighted_mean(&weights, &[]).is_err());
    assert!(weighted_mean(&[0.0], &[score(1.0)]).is_err());
}

#[test]
fn a_score_at_its_pass_mark_passes_whatever_the_rounding() {
    let criterion = Criterion { pass_mark: 0.1 + 0.2, ..both("summary")[0].criteria[0].clone() };
    assert!(criterion.passes(Score::new(0.3).unwrap()));
    assert!(!criterion.passes(Score::new(0.299).unwrap()));
}

#[test]
fn anchors_move_to_the_same_position_of_another_scale() {
    let [summary, _] = both("summary");
    let levels = |rubric: &Rubric| -> Vec<f64> {
        rubric.criteria[0].anchors_by_level().into_iter().map(|(level, _)| level).collect()
    };
    let unit = summary.clone().on_scale(Scale::UNIT);
    assert_eq!(levels(&unit), [0.0, 0.5, 1.0]);
    assert_eq!(unit.problems(), []);
    assert_eq!(levels(&summary.clone().on_scale("1-10".parse().unwrap())), [1.0, 10.0]);
    assert_eq!(levels(&summary.clone().on_scale("1-5".parse().unwrap())), levels(&summary));
}
