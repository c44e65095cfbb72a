//! Grammars of programming languages: where the first syntax error is.

use tree_sitter::{Language, Node, Parser};

use super::code::Syntax;

/// The line of the first syntax error, from 1, and what stands there. A language without a
/// grammar here has none; a parser that can't be set up counts as an error on line 1, never
/// as code that parses.
pub(super) fn error(language: Syntax, code: &str) -> Option<(usize, String)> {
    let grammar: Language = match language {
        Syntax::Python => tree_sitter_python::LANGUAGE.into(),
        Syntax::Javascript => tree_sitter_javascript::LANGUAGE.into(),
        Syntax::Rust => tree_sitter_rust::LANGUAGE.into(),
        Syntax::Json | Syntax::Toml | Syntax::Yaml => return None,
    };
    let mut parser = Parser::new();
    if let Err(error) = parser.set_language(&grammar) {
        return Some((1, error.to_string()));
    }
    let Some(tree) = parser.parse(code, None) else {
        return Some((1, "the parser gave up".to_owned()));
    };
    let root = tree.root_node();
    root.has_error().then(|| first_error(root, code))
}

fn first_error(root: Node<'_>, code: &str) -> (usize, String) {
    // Down the first child that holds an error, without recursion: the tree of hostile code
    // is as deep as the code is long.
    let mut node = root;
    loop {
        if node.is_missing() {
            return (line(node), format!("expected `{}`", node.kind()));
        }
        let mut cursor = node.walk();
        let inner = node
            .children(&mut cursor)
            .find(|child| child.has_error() || child.is_error() || child.is_missing());
        match inner {
            Some(child) => node = child,
            None => {
                let start = node.start_byte().min(code.len());
                let near = code.get(start..).unwrap_or_default();
                let near = near.lines().next().unwrap_or_default();
                return (
                    line(node),
                    format!("syntax error at `{}`", crate::text::excerpt(near, 40)),
                );
            }
        }
    }
}

fn line(node: Node<'_>) -> usize {
    node.start_position().row + 1
}
