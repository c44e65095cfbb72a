//! Prompts: templates, and the delimiters around everything that is judged.
//!
//! The text of a case is put in as a value, once, and is never itself evaluated. It stands
//! between marker lines with a code that its author can't know: the code is a hash of the
//! case and the judge, derived anew should it occur in the text. It is not drawn
//! at random because the same case must give the same request, which the store of replies is
//! keyed by; and no text can hold its own code, since the code depends on the whole text.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Enumerator, Object, ObjectRepr};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};

use crate::case::Case;
use crate::config::nearest;
use crate::rubric::Lang;

/// The variables that a template may use.
pub const TEMPLATE_VARIABLES: [&str; 17] = [
    "input",
    "output",
    "expected",
    "context",
    "baseline",
    "a",
    "b",
    "metadata",
    "code",
    "material_code",
    "mode",
    "lang",
    "criterion",
    "rubric",
    "questions",
    "choices",
    "levels",
];

/// Values for a template, by name.
pub(super) type Values = BTreeMap<&'static str, Value>;

/// The templates of one judge, compiled once.
#[derive(Debug)]
pub(super) struct Templates {
    environment: Environment<'static>,
}

/// Why a template can't be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum TemplateError {
    /// Not valid, or something in it failed.
    #[error("{}", described(.0))]
    Render(#[from] Error),
    /// A name that is none of the variables.
    #[error("`{name}` is no variable of a judge's template: expected one of {}{}",
        TEMPLATE_VARIABLES.join(", "),
        suggestion.as_ref().map(|word| format!("; did you mean `{word}`?")).unwrap_or_default())]
    Unknown { name: String, suggestion: Option<String> },
    /// What is judged is not in the prompt.
    #[error("the template never shows `{0}`")]
    NeverShown(&'static str),
}

fn described(error: &Error) -> String {
    let line = error.line().map(|line| format!(" in line {line}")).unwrap_or_default();
    let detail = error.detail().map(|d| format!(": {d}")).unwrap_or_default();
    format!("{}{line}{detail}", error.kind())
}

/// What failed and where, on one line, with the expression that it failed at.
pub(super) fn first_line(error: &Error) -> String {
    let said = error.to_string();
    let said = said.lines().next().unwrap_or_default().to_owned();
    let piece = error.template_source().zip(error.range()).and_then(|(source, at)| source.get(at));
    match piece.map(str::trim).filter(|piece| !piece.is_empty() && !piece.contains('\n')) {
        Some(piece) => format!("{said}: `{piece}`"),
        None => said,
    }
}

/// The variable that another tool's name for it stands for.
fn foreign(name: &str) -> Option<&'static str> {
    Some(match name {
        "question" | "prompt" | "query" | "task" | "instruction" | "instructions" => "input",
        "answer" | "response" | "completion" | "reply" | "generation" | "candidate" => "output",
        "reference" | "ideal" | "target" | "ground_truth" | "gold" | "label" => "expected",
        "document" | "documents" | "passage" | "source" | "contexts" => "context",
        _ => return None,
    })
}

impl Templates {
    /// The built-in templates, with the one that shows the case replaced by `task`.
    pub(super) fn new(lang: Lang, task: Option<&str>) -> Result<Self, TemplateError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment
            .set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        environment.set_formatter(|out, state, value| {
            if value.is_none() {
                return Err(Error::new(
                    ErrorKind::InvalidOperation,
                    "printed a field that the case does not have; ask `{% if ... %}` first",
                ));
            }
            minijinja::escape_formatter(out, state, value)
        });
        let (system, shown, answer, retry) = match lang {
            Lang::En => (
                include_str!("prompts/system.en.jinja"),
                include_str!("prompts/task.en.jinja"),
                include_str!("prompts/answer.en.jinja"),
                include_str!("prompts/retry.en.jinja"),
            ),
            Lang::Zh => (
                include_str!("prompts/system.zh.jinja"),
                include_str!("prompts/task.zh.jinja"),
                include_str!("prompts/answer.zh.jinja"),
                include_str!("prompts/retry.zh.jinja"),
            ),
        };
        environment.add_template("system", system)?;
        environment.add_template("answer", answer)?;
        environment.add_template("retry", retry)?;
        environment.add_template_owned("task", task.unwrap_or(shown).to_owned())?;
        Ok(Self { environment })
    }

    /// Renders one of `system`, `task`, `answer`, `retry`.
    pub(super) fn render(&self, name: &str, values: Value) -> Result<String, Error> {
        let text = self.environment.get_template(name)?.render(values)?;
        Ok(text.trim().to_owned())
    }

    /// The text of the templates that are rendered for each case, for the fingerprint.
    pub(super) fn sources(&self) -> Vec<String> {
        ["task", "retry"]
            .into_iter()
            .filter_map(|name| Some(self.environment.get_template(name).ok()?.source().to_owned()))
            .collect()
    }

    /// Checks the template that shows the case: only known variables, and what is judged is
    /// shown. `shown` names the variables that must be.
    pub(super) fn check(
        &self,
        fixed: &Arc<Values>,
        shown: &[&'static str],
    ) -> Result<(), TemplateError> {
        let template = self.environment.get_template("task")?;
        let mut unknown: Vec<String> = template
            .undeclared_variables(false)
            .into_iter()
            .filter(|name| !TEMPLATE_VARIABLES.contains(&name.as_str()))
            .filter(|name| !self.environment.globals().any(|(global, _)| global == name))
            .collect();
        unknown.sort();
        if let Some(name) = unknown.into_iter().next() {
            let suggestion =
                foreign(&name).map(str::to_owned).or_else(|| nearest(&name, TEMPLATE_VARIABLES));
            return Err(TemplateError::Unknown { name, suggestion });
        }
        let text = |name: &str| Some(format!("probe of {name}"));
        let probe = Case {
            id: "probe".into(),
            input: text("input"),
            output: text("output"),
            expected: text("expected"),
            context: text("context"),
            baseline: text("baseline"),
            ..Case::default()
        };
        let values = PromptValues {
            metadata: Value::from_object(AnyKey),
            ..PromptValues::new(&probe, &Codes::probe(), Order::both(false), fixed)
        };
        let text = self.render("task", Value::from_object(values))?;
        match shown.iter().find(|name| !text.contains(&probe_of(name))) {
            Some(name) => Err(TemplateError::NeverShown(name)),
            None => Ok(()),
        }
    }
}

fn probe_of(variable: &str) -> String {
    let field = match variable {
        "a" => "output",
        "b" => "baseline",
        other => other,
    };
    format!("probe of {field}")
}

/// Metadata that has every key, for checking templates without a case.
#[derive(Debug)]
struct AnyKey;

impl Object for AnyKey {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, _key: &Value) -> Option<Value> {
        Some(Value::from("probe of metadata"))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Empty
    }
}

/// The codes of the markers around a case's texts: 16 hexadecimal digits each, which occur in
/// none of the texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Codes {
    /// For what was asked and what the output should rest on. It does not depend on the
    /// output, so that outputs for one request share the beginning of their prompts and a
    /// server can keep what it has read.
    pub(super) material: String,
    /// For the outputs. It depends on every text, so that no output can hold its own code.
    pub(super) output: String,
}

impl Codes {
    /// Codes for trying a template out.
    pub(super) fn probe() -> Self {
        Self { material: "0".into(), output: "0".into() }
    }

    /// The codes for a case as one judge sees it; `extra` are texts that the judge puts beside
    /// the case's own.
    pub(super) fn new<'a>(case: &'a Case, fingerprint: &str, extra: &[&'a str]) -> Self {
        let material: Vec<&str> = [&case.input, &case.expected, &case.context]
            .into_iter()
            .flatten()
            .map(|s| s.as_str())
            .collect();
        let every: Vec<&str> = [&case.output, &case.baseline]
            .into_iter()
            .flatten()
            .map(|s| s.as_str())
            .chain(material.iter().copied())
            .chain(extra.iter().copied())
            .collect();
        Self {
            material: unused("material", fingerprint, &material, &every),
            output: unused("output", fingerprint, &every, &every),
        }
    }
}

/// A code by hash of `texts` that stands in none of `every`.
fn unused(purpose: &str, fingerprint: &str, texts: &[&str], every: &[&str]) -> String {
    let mut round = 0_u32;
    loop {
        let mut hasher = blake3::Hasher::new();
        hasher.update(purpose.as_bytes()).update(fingerprint.as_bytes());
        hasher.update(&round.to_le_bytes());
        for text in texts {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        let code = hasher.finalize().to_hex()[..16].to_owned();
        if !every.iter().any(|text| text.contains(&code)) {
            return code;
        }
        round = round.wrapping_add(1);
    }
}

/// Which outputs are shown side by side, as `a` and `b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// None: a built-in template shows one output alone.
    Alone,
    /// The output first.
    OutputFirst,
    /// The baseline first.
    BaselineFirst,
}

impl Order {
    pub(super) fn both(swapped: bool) -> Self {
        if swapped { Self::BaselineFirst } else { Self::OutputFirst }
    }
}

/// The values of one prompt: the case's own and, behind them, those of the judge. An object,
/// not a map: most templates look at few of them.
#[derive(Debug)]
pub(super) struct PromptValues {
    input: Value,
    output: Value,
    expected: Value,
    context: Value,
    baseline: Value,
    a: Value,
    b: Value,
    metadata: Value,
    codes: Codes,
    fixed: Arc<Values>,
}

impl PromptValues {
    pub(super) fn new(case: &Case, codes: &Codes, order: Order, fixed: &Arc<Values>) -> Self {
        let wrapped = |label: &str, code: &str, text: &Option<String>| match text {
            Some(text) => {
                let pieces =
                    ["<<<", label, " ", code, ">>>\n", text, "\n<<<END ", label, " ", code, ">>>"];
                Value::from(pieces.concat())
            }
            None => Value::from(()),
        };
        let (first, second) = match order {
            Order::Alone => (&None, &None),
            Order::OutputFirst => (&case.output, &case.baseline),
            Order::BaselineFirst => (&case.baseline, &case.output),
        };
        let (material, output) = (codes.material.as_str(), codes.output.as_str());
        Self {
            input: wrapped("INPUT", material, &case.input),
            output: wrapped("OUTPUT", output, &case.output),
            expected: wrapped("REFERENCE", material, &case.expected),
            context: wrapped("CONTEXT", material, &case.context),
            baseline: wrapped("BASELINE", output, &case.baseline),
            a: wrapped("OUTPUT A", output, first),
            b: wrapped("OUTPUT B", output, second),
            metadata: json_object(&case.metadata),
            codes: codes.clone(),
            fixed: Arc::clone(fixed),
        }
    }
}

impl Object for PromptValues {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let value = match key.as_str()? {
            "input" => &self.input,
            "output" => &self.output,
            "expected" => &self.expected,
            "context" => &self.context,
            "baseline" => &self.baseline,
            "a" => &self.a,
            "b" => &self.b,
            "metadata" => &self.metadata,
            "code" => return Some(Value::from(self.codes.output.as_str())),
            "material_code" => return Some(Value::from(self.codes.material.as_str())),
            other => self.fixed.get(other)?,
        };
        Some(value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&TEMPLATE_VARIABLES)
    }
}

fn json_object(map: &serde_json::Map<String, serde_json::Value>) -> Value {
    Value::from(map.iter().map(|(k, v)| (k.clone(), json(v))).collect::<BTreeMap<_, _>>())
}

/// A JSON value as a template value.
fn json(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(b) => Value::from(*b),
        serde_json::Value::Number(n) => n
            .as_i64()
            .map(Value::from)
            .or_else(|| n.as_f64().map(Value::from))
            .unwrap_or_else(|| Value::from(n.to_string())),
        serde_json::Value::String(s) => Value::from(s.as_str()),
        serde_json::Value::Array(items) => items.iter().map(json).collect(),
        serde_json::Value::Object(map) => json_object(map),
    }
}
