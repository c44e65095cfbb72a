//! Words of other evaluation tools in a panel file, and what says the same here.
//!
//! Only for messages: nothing of another tool's file is ever taken for a setting.

/// What a key of another tool's configuration is here.
pub(super) fn panel_key(key: &str) -> Option<&'static str> {
    Some(match key {
        "judges" | "evaluators" | "graders" | "scorers" | "scorer" | "metrics" | "metric"
        | "assert" | "asserts" | "assertions" | "evals" => {
            "here each judge is a table of its own, `[[judge]]` (in YAML a list under `judge`), with `name` and `kind`; the kinds: `venire list judges`"
        }
        "agent" | "exit" | "budget" => {
            "this is a loop file: it is run by `venire loop -c FILE`, and a panel has `[[judge]]` tables"
        }
        "defaultTest" | "default_test" | "assertionTemplates" => {
            "here checks that hold for every case are the judges: a `[[judge]]` each"
        }
        "tests" | "test_cases" | "dataset" | "datasets" | "cases" | "data" | "samples" => {
            "the cases are a file of their own (CSV or JSON Lines): `venire run -c PANEL CASES`"
        }
        "prompts" | "prompt" | "providers" | "provider" | "targets" | "solver" | "solvers"
        | "task" | "plan" => {
            "venire judges outputs that are there already and makes none: put them in the column `output` of the cases; the model of a judge is its `model`, as in `model = \"openai/gpt-4.1-mini\"`"
        }
        "model" | "grader" | "judge_model" => {
            "the model belongs to a judge: `model = \"provider/model\"` in its `[[judge]]`"
        }
        "pass_threshold" | "min_score" | "passing_score" | "pass_mark" | "cutoff" => {
            "the score that an output must reach is `threshold`"
        }
        "evaluateOptions" | "commandLineOptions" | "maxConcurrency" | "max_concurrency"
        | "concurrency" => {
            "how a run goes is said on the command line: `venire run -j N`, `--repeat N`"
        }
        "outputPath" | "output_path" | "output" => "results are written by `venire run … -o FILE`",
        "description" | "title" | "id" => "the panel's name is `name`; for remarks use a comment",
        "rubric" | "criteria" => "a rubric belongs to a judge: `rubric = \"…\"` in its `[[judge]]`",
        "reducer" | "reducers" | "aggregation" | "strategy" => {
            "how votes become a score is `aggregate`; the choices: `venire list aggregators`"
        }
        _ => return None,
    })
}

/// What a key or value of another tool's check is here.
pub(super) fn judge_key(key: &str) -> Option<&'static str> {
    Some(match key {
        "provider" | "providers" | "grader" | "judge_model" | "model_name" => {
            "the model is `model = \"provider/model\"`, as in `model = \"openai/gpt-4.1-mini\"`"
        }
        "command" | "cmd" | "program" | "run" | "exec" | "args" | "arguments" => {
            "a program and its arguments are a list, `argv = [\"python3\", \"test.py\"]`: for `script` in the judge, for `command` in its checks, `checks = [{ argv = [...] }]`"
        }
        "path" | "filename" | "file_name" | "recording" => "a recording is `file = \"FILE.csv\"`",
        "url_path" | "uri" => "an address is `url`",
        "min_words" | "max_words" | "minWords" | "maxWords" | "word_count" => {
            "a range of words is `words = { min = 20, max = 150 }`, each end as needed"
        }
        "min_chars" | "max_chars" | "min_length" | "max_length" | "min_characters"
        | "max_characters" | "characters_min" | "characters_max" => {
            "a range of characters is `characters = { min = 20, max = 1500 }`, each end as needed"
        }
        "min_sentences" | "max_sentences" => {
            "a range of sentences is `sentences = { min = 1, max = 9 }`"
        }
        "min_lines" | "max_lines" => "a range of lines is `lines = { min = 1, max = 9 }`",
        "type" => {
            "what a judge is stands in `kind` (`venire list judges`), and for a rule also in `rule` (`venire list rules`)"
        }
        "assert" | "asserts" | "metrics" | "metric" | "evaluators" => {
            "here each check is a `[[judge]]` of its own"
        }
        "value" => {
            "what a rule looks for has a key of its own, such as `any` or `all` of `contains`: `venire list rules NAME`; a question for a model is `criterion`"
        }
        "evaluation_steps" | "steps" => {
            "steps are yes/no questions: `mode = \"checklist\"` with `questions`"
        }
        "criteria" => {
            "one question is `criterion` (with `mode = \"yes_no\"`), several are a rubric: `rubric = \"FILE.toml\"`; see `venire list rubrics general`"
        }
        "prompt" | "rubricPrompt" | "rubric_prompt" | "instructions" | "system_prompt"
        | "system" => {
            "what is asked is `criterion` or `rubric`; the whole prompt is replaced by `template`"
        }
        "threshold" | "pass_threshold" | "min_score" => {
            "the threshold is the panel's: set `threshold` at the top of the file; a judge that must pass by itself is `required = true`"
        }
        "api_key" | "apiKey" | "key" | "token" => {
            "keys never stand in files: put it in a variable and name that in `api_key_env`"
        }
        "api_base" | "apiBaseUrl" | "apiHost" | "endpoint" | "host" => {
            "the server's address is `base_url`"
        }
        "transform" | "evaluation_params" | "input_key" => {
            "columns are chosen when the cases are read: `venire run --map output=COLUMN`"
        }
        "strict_mode" | "strict" => "a judge that must pass is `required = true`",
        "not" | "negate" => "the opposite of a judge is `invert = true`",
        "choices" | "choice_strings" => {
            "the choices are the keys of `choice_scores`, each with its score"
        }
        "icontains" | "contains-any" | "contains-all" | "icontains-any" | "icontains-all"
        | "not-contains" => {
            "this rule is `contains`, with `any`, `all` or `none`, and `ignore_case`: `venire list rules contains`"
        }
        "is-json" | "contains-json" | "is-valid-json" => {
            "this rule is `json`: `venire list rules json`"
        }
        "levenshtein" | "rouge-n" | "rouge" | "bleu" | "similar" | "meteor" => {
            "this rule is `similarity` with its `metric`: `venire list rules similarity`"
        }
        "exact_match" | "exact-match" | "match" => {
            "this rule is `equals`: `venire list rules equals`"
        }
        "pattern" => "this rule is `regex`: `venire list rules regex`",
        "is-refusal" => "this rule is `refusal`",
        _ => return None,
    })
}

/// What a judge's kind of another tool is here.
pub(super) fn kind_named(kind: &str) -> Option<String> {
    let rule = kind.strip_prefix("not-").unwrap_or(kind);
    let said = match rule {
        "llm-rubric"
        | "llm_rubric"
        | "g-eval"
        | "geval"
        | "GEval"
        | "model-graded-closedqa"
        | "model_graded_qa"
        | "model_graded_fact"
        | "model-graded-factuality"
        | "factuality"
        | "answer-relevance"
        | "answer_relevancy"
        | "faithfulness"
        | "hallucination"
        | "dag"
        | "classifier"
        | "llm_judge"
        | "model"
        | "prompt" => {
            "a model is `kind = \"llm\"` with `model` and a `rubric` or `criterion`".to_owned()
        }
        "python" | "javascript" | "ruby" | "code" | "function" | "custom" => {
            "code of your own is `kind = \"script\"`".to_owned()
        }
        "webhook" => "a service is `kind = \"http\"` with `url`".to_owned(),
        "shell" | "exec" | "bash" | "test" => {
            "a program's exit code is judged by `kind = \"command\"`".to_owned()
        }
        _ if crate::judge::rule::RULES.contains(&rule) => {
            format!("this is a rule: `kind = \"rule\"`, `rule = \"{rule}\"`")
        }
        _ => format!("this is a rule: `kind = \"rule\"`; {}", judge_key(kind)?),
    };
    Some(said)
}

/// What the keys of a judge without `kind` let one guess.
pub(super) fn kind(table: &serde_json::Map<String, serde_json::Value>) -> String {
    let has = |key: &str| table.contains_key(key);
    let meant = if has("type") {
        return "; what other tools call `type` is `kind` here".into();
    } else if has("rule") {
        "rule"
    } else if has("model") || has("rubric") || has("criterion") {
        "llm"
    } else if has("checks") {
        "command"
    } else if has("url") {
        "http"
    } else if has("file") {
        "replay"
    } else {
        return String::new();
    };
    format!("; did you mean `kind = \"{meant}\"`?")
}
