//! The header `accept`: which of two types somebody would rather have (RFC 9110, 12.5.1).
//! Parameters other than `q` are not looked at; an entry whose `q` is no weight is none.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// How much a type is wanted: its weight in [0,1], and its place in the list.
type Wanted = (f64, usize);

/// Whether text is rather to be sent than JSON: by weight; where both weigh the same, by the
/// order of the list. Who says nothing of text gets JSON.
pub(super) fn wants_text(headers: &HeaderMap) -> bool {
    let (text, json) = (wanted(headers, "text/plain"), wanted(headers, "application/json"));
    match (text, json) {
        (Some((text, text_at)), Some((json, json_at))) => {
            text > json || (text > 0.0 && text >= json && text_at < json_at)
        }
        (Some((text, _)), None) => text > 0.0,
        (None, _) => false,
    }
}

/// Whether a type stands in the list by its own name and is not ruled out.
pub(super) fn names(headers: &HeaderMap, kind: &str) -> bool {
    listed(headers).any(|(range, weight)| range == kind && weight > 0.0)
}

/// What the entry says that fits a type most closely; `None` where none does.
fn wanted(headers: &HeaderMap, kind: &str) -> Option<Wanted> {
    let group = kind.split_once('/').map(|(group, _)| format!("{group}/*")).unwrap_or_default();
    [kind, group.as_str(), "*/*"].into_iter().find_map(|wanted| {
        let mut listed = listed(headers).enumerate();
        listed.find(|(_, (range, _))| range == wanted).map(|(at, (_, weight))| (weight, at))
    })
}

/// The ranges of types with their weights, in order.
fn listed(headers: &HeaderMap) -> impl Iterator<Item = (String, f64)> {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).filter_map(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        let range = parts.next()?.to_ascii_lowercase();
        let weight = parts.filter_map(|part| part.split_once('=')).find_map(|(name, value)| {
            name.trim().eq_ignore_ascii_case("q").then(|| value.trim().parse::<f64>().ok())
        });
        let weight = weight.unwrap_or(Some(1.0))?;
        (0.0..=1.0).contains(&weight).then_some((range, weight))
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn with(lines: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(ACCEPT, HeaderValue::from_static(line));
        }
        headers
    }

    #[test]
    fn text_is_for_who_asks_for_it_first() {
        for text in [
            &["text/plain"][..],
            &["Text/Plain; charset=utf-8, application/json"],
            &["text/html, text/plain"],
            &["text/html", "text/*"],
            &["text/plain, */*"],
        ] {
            assert!(wants_text(&with(text)), "{text:?}");
        }
        for json in [
            &[][..],
            &["*/*"],
            &["*/*, text/plain"],
            &["application/json, text/plain"],
            &["text/html"],
            &["text/plainer"],
            &[""],
        ] {
            assert!(!wants_text(&with(json)), "{json:?}");
        }
    }

    #[test]
    fn weights_go_before_the_order_and_a_weight_of_zero_rules_out() {
        for text in [
            &["application/json;q=0.4, text/plain;q=0.5"][..],
            &["application/json; q=0.9", "text/plain"],
            &["application/json;q=0, */*"],
            &["*/*;q=0.1, text/*;Q=0.2"],
            &["text/plain;charset=utf-8;q=1.000, application/json;q=0.999"],
        ] {
            assert!(wants_text(&with(text)), "{text:?}");
        }
        for json in [
            &["text/plain;q=0, application/json"][..],
            &["text/html, text/plain;q=0.1, application/json;q=0.9"],
            &["text/plain;q=0"],
            &["text/*, text/plain;q=0"],
            &["text/plain;q=0, */*;q=0"],
            &["text/plain;q=0.8, */*;q=0.9"],
            &["text/plain;q=2"],
            &["text/plain;q=-1"],
            &["text/plain;q=NaN"],
            &["text/plain;q=much, application/json;q=0.1"],
        ] {
            assert!(!wants_text(&with(json)), "{json:?}");
        }
    }

    #[test]
    fn a_type_that_is_ruled_out_is_not_named() {
        assert!(names(&with(&["text/html,application/xhtml+xml,*/*;q=0.8"]), "text/html"));
        assert!(names(&with(&["text/html;q=0.1"]), "text/html"));
        for no in ["*/*", "text/html;q=0, application/json", "text/html2", ""] {
            assert!(!names(&with(&[no]), "text/html"), "{no}");
        }
    }
}
