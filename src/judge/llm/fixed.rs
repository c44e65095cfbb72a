//! The template values of a judge that don't depend on the case: its mode, its scale, its
//! rubric or question, in the form that prompts show.

use std::collections::BTreeMap;

use minijinja::Value as TemplateValue;

use super::prompt::Values;
use super::shape::Shape;
use super::spec::{LlmSpec, Mode, asked_levels};
use crate::rubric::{Lang, Rubric};
use crate::score::Scale;

/// A level as prompts write it.
pub(super) fn level_text(level: f64) -> String {
    level.to_string()
}

/// The template values that are the same for every case.
pub(super) fn fixed_values(spec: &LlmSpec, shape: &Shape, rubric: Option<&Rubric>) -> Values {
    let none = || TemplateValue::from(());
    let levels = |scale: Scale| -> TemplateValue {
        asked_levels(scale).into_iter().map(|l| TemplateValue::from(level_text(l))).collect()
    };
    let rubric_value = rubric.map_or_else(none, |rubric| {
        let criteria: TemplateValue = rubric
            .criteria
            .iter()
            .map(|criterion| {
                let anchors: TemplateValue = criterion
                    .anchors_by_level()
                    .into_iter()
                    .map(|(level, text)| {
                        TemplateValue::from(BTreeMap::from([
                            ("level", TemplateValue::from(level_text(level))),
                            ("text", TemplateValue::from(text)),
                        ]))
                    })
                    .collect();
                TemplateValue::from(BTreeMap::from([
                    ("name", TemplateValue::from(criterion.name.as_str())),
                    ("description", TemplateValue::from(criterion.description.trim())),
                    ("anchors", anchors),
                ]))
            })
            .collect();
        TemplateValue::from(BTreeMap::from([
            ("name", TemplateValue::from(rubric.name.as_str())),
            ("description", TemplateValue::from(rubric.description.trim())),
            ("criteria", criteria),
        ]))
    });
    let criterion = match (&spec.criterion, rubric, spec.mode) {
        (Some(text), ..) => TemplateValue::from(text.trim()),
        (None, Some(_), Mode::YesNo) => TemplateValue::from(default_question(spec.lang, true)),
        (None, None, Mode::YesNo) => TemplateValue::from(default_question(spec.lang, false)),
        (None, None, Mode::Score | Mode::Choice | Mode::Pairwise) => {
            TemplateValue::from(default_standard(spec.lang))
        }
        _ => none(),
    };
    let choices = match shape {
        Shape::Choice { choices } => choices
            .iter()
            .zip('A'..='Z')
            .map(|(choice, letter)| {
                TemplateValue::from(BTreeMap::from([
                    ("letter", TemplateValue::from(letter.to_string())),
                    ("label", TemplateValue::from(choice.label.as_str())),
                ]))
            })
            .collect(),
        _ => none(),
    };
    let questions = if spec.questions.is_empty() {
        none()
    } else {
        spec.questions.iter().map(|q| TemplateValue::from(q.text.as_str())).collect()
    };
    BTreeMap::from([
        ("mode", TemplateValue::from(spec.mode.name())),
        ("lang", TemplateValue::from(spec.lang.name())),
        ("criterion", criterion),
        ("rubric", rubric_value),
        ("questions", questions),
        ("choices", choices),
        (
            "levels",
            match shape {
                Shape::Score { scale } | Shape::Rubric { scale, .. } => levels(*scale),
                _ => none(),
            },
        ),
    ])
}

fn default_question(lang: Lang, by_rubric: bool) -> &'static str {
    match (lang, by_rubric) {
        (Lang::En, true) => "Does the output satisfy the criteria above?",
        (Lang::En, false) => "Does the output do what was asked, correctly and completely?",
        (Lang::Zh, true) => "这份输出是否满足以上各项标准？",
        (Lang::Zh, false) => "这份输出是否正确、完整地完成了请求？",
    }
}

fn default_standard(lang: Lang) -> &'static str {
    match lang {
        Lang::En => "how well the output does what was asked: correct, complete, to the point",
        Lang::Zh => "输出完成请求的程度：正确、完整、切题",
    }
}
