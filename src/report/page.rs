//! The shell of every report page: style, theme, sortable tables, and the escaping.
//!
//! A page is one file that asks for nothing: style and script stand in it, and its content
//! security policy allows just these two, by hash, so that a script inside hostile text would
//! not run even if it got past the escaping. For the same reason a page has no `style`
//! attributes: use classes, and attributes such as `width` in SVG.
//!
//! - `<table class="sortable">`: each `<th>` with a `<button>` sorts, by `data-v` of the cells
//!   or by their text. A table row that belongs to another shares its `<tbody>` with it.
//! - `<input data-filters="ID">` and `<select data-filters="ID" data-by="NAME">` filter the
//!   `<tbody>`s of the table `ID`, by their text or by their `data-NAME`.
//! - `<button data-details="open|close">` opens or closes the `<details>` of the page;
//!   printing opens those in sight.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};
use sha2::{Digest, Sha256};

use super::ReportError;

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/page.js");
const HEAD: &str = include_str!("page/head.html");
const FOOT: &str = include_str!("page/foot.html");

/// Templates whose every value is escaped for HTML, and where a misspelt name is an error.
#[must_use]
pub fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
}

/// Everything up to the content: the header shows `title` and, smaller, `facts`.
///
/// # Errors
/// A fault of this program.
pub fn head(title: &str, facts: &[String]) -> Result<String, ReportError> {
    let page = context! {
        title, facts => facts.to_vec(), style => STYLE, policy => policy(),
    };
    Ok(environment().render_str(HEAD, page)?)
}

/// Everything after the content.
///
/// # Errors
/// A fault of this program.
pub fn foot() -> Result<String, ReportError> {
    Ok(environment().render_str(FOOT, context! { script => SCRIPT })?)
}

fn policy() -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}
