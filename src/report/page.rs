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
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
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

/// What surrounds the content of a page: nothing more for a report in a file, the way to other
/// pages where a server shows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shell<'a> {
    /// Links to other pages; none in a file.
    pub links: &'a [Link<'a>],
    /// Style beside that of every page.
    pub style: &'a str,
    /// Script beside that of every page.
    pub script: &'a str,
    /// Whether the page may ask the server that it came from.
    pub served: bool,
}

/// A link to another page.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    /// Where to.
    pub path: &'a str,
    /// What it says.
    pub title: &'a str,
    /// Whether it is where the reader is.
    pub current: bool,
}

impl Shell<'_> {
    /// Everything up to the content: the header shows `title` and, smaller, `facts`.
    ///
    /// # Errors
    /// A fault of this program.
    pub fn head(&self, title: &str, facts: &[String]) -> Result<String, ReportError> {
        let links: Vec<Value> = self
            .links
            .iter()
            .map(|own| context! { path => own.path, title => own.title, current => own.current })
            .collect();
        let page = context! {
            title, facts => facts.to_vec(), style => STYLE, more_style => self.style, links,
            policy => self.policy(),
            // Without any, browsers call the origin of a page's own forms `null`.
            referrer => if self.served { "same-origin" } else { "no-referrer" },
        };
        Ok(environment().render_str(HEAD, page)?)
    }

    /// Everything after the content.
    ///
    /// # Errors
    /// A fault of this program.
    pub fn foot(&self) -> Result<String, ReportError> {
        let page = context! { script => SCRIPT, more_script => self.script };
        Ok(environment().render_str(FOOT, page)?)
    }

    /// What the page may do: only what stands in it, by hash, and nothing from elsewhere.
    #[must_use]
    pub fn policy(&self) -> String {
        let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
        let hashes = |texts: [&str; 2]| {
            let own = texts.into_iter().filter(|text| !text.is_empty());
            own.map(|text| format!("'sha256-{}'", hash(text))).collect::<Vec<_>>().join(" ")
        };
        let own = if self.served { "'self'" } else { "'none'" };
        let connect = if self.served { "connect-src 'self'; " } else { "" };
        format!(
            "default-src 'none'; style-src {}; script-src {}; {connect}base-uri 'none'; form-action {own}",
            hashes([STYLE, self.style]),
            hashes([SCRIPT, self.script])
        )
    }
}
