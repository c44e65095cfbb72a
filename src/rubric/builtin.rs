//! The built-in rubrics: embedded files, one for each name and language.

use super::Lang;

/// The names of the built-in rubrics.
pub const BUILTIN_NAMES: [&str; 6] =
    ["general", "copywriting", "code-change", "factual-answer", "summary", "helpfulness"];

/// The file of a built-in rubric.
pub(super) fn text(name: &str, lang: Lang) -> Option<&'static str> {
    Some(match (name, lang) {
        ("general", Lang::En) => include_str!("builtin/general.en.toml"),
        ("general", Lang::Zh) => include_str!("builtin/general.zh.toml"),
        ("copywriting", Lang::En) => include_str!("builtin/copywriting.en.toml"),
        ("copywriting", Lang::Zh) => include_str!("builtin/copywriting.zh.toml"),
        ("code-change", Lang::En) => include_str!("builtin/code-change.en.toml"),
        ("code-change", Lang::Zh) => include_str!("builtin/code-change.zh.toml"),
        ("factual-answer", Lang::En) => include_str!("builtin/factual-answer.en.toml"),
        ("factual-answer", Lang::Zh) => include_str!("builtin/factual-answer.zh.toml"),
        ("summary", Lang::En) => include_str!("builtin/summary.en.toml"),
        ("summary", Lang::Zh) => include_str!("builtin/summary.zh.toml"),
        ("helpfulness", Lang::En) => include_str!("builtin/helpfulness.en.toml"),
        ("helpfulness", Lang::Zh) => include_str!("builtin/helpfulness.zh.toml"),
        _ => return None,
    })
}
