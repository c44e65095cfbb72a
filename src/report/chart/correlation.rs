//! How far judges err together: one cell a pair, stronger colour for stronger correlation.

use super::svg::{Anchor, Svg, TEXT};
use super::{Picture, short};
use crate::calibration::figure::Measured;

const WIDTH: f64 = 380.0;
/// Judges that are drawn; a cell of more would be a speck.
const MOST: usize = 30;
/// Room for names.
const NAMES: f64 = 118.0;

/// The picture; `None` for fewer than two judges. `n` counts the cases it stands on.
#[must_use]
pub fn draw(names: &[String], matrix: &[Vec<Measured>], n: u64, says: &str) -> Option<Picture> {
    let count = names.len().min(matrix.len()).min(MOST);
    if count < 2 {
        return None;
    }
    let title = "Errors the judges share (correlation of errors)";
    let cell = ((WIDTH - NAMES - 4.0) / count as f64).min(46.0);
    let top = 20.0;
    let mut svg = Svg::new(WIDTH, top + cell * count as f64 + 4.0, title);
    for i in 0..count {
        let middle = NAMES + cell * (i as f64 + 0.5);
        svg.sized("soft", (middle, top - 6.0), Anchor::Middle, 10.0, &(i + 1).to_string());
        let y = top + cell * (i as f64 + 0.5) + 3.8;
        let size = if cell < 12.0 { cell * 0.8 } else { TEXT };
        svg.sized("soft", (16.0, y), Anchor::End, size.min(10.0), &(i + 1).to_string());
        if cell >= 11.0 {
            svg.name("", (21.0, y), NAMES - 25.0, &names[i]);
        }
        for j in 0..count {
            let at = (NAMES + cell * j as f64, top + cell * i as f64);
            pair(&mut svg, (names, n), matrix, (i, j), at, cell);
        }
    }
    let more = names.len().saturating_sub(count);
    let says =
        if more > 0 { format!("{says} {more} more judges are not drawn.") } else { says.into() };
    Some(Picture { title: title.to_owned(), says, svg: svg.finish() })
}

fn pair(
    svg: &mut Svg,
    (names, n): (&[String], u64),
    matrix: &[Vec<Measured>],
    (i, j): (usize, usize),
    at: (f64, f64),
    cell: f64,
) {
    let size = (cell - 1.0, cell - 1.0);
    if i == j {
        svg.rect("self", at, size, "");
        return;
    }
    let Some(own) = matrix[i].get(j) else { return };
    let both = format!("{} and {}", names[i], names[j]);
    match &own.0 {
        Ok(value) => {
            let class = if *value < 0.0 { "apart" } else { "together" };
            let strength = 0.06 + 0.84 * value.abs().min(1.0);
            let says = format!("{both}: {} (n={n})", short(*value));
            svg.shaded(class, at, size, strength, &says);
            if cell >= 19.0 {
                let ink = if strength > 0.55 { "number" } else { "cell" };
                let words = format!("{value:.2}").replace("0.", ".");
                let middle = (at.0 + size.0 / 2.0, at.1 + size.1 / 2.0 + 3.4);
                let size = if cell >= 30.0 { 11.0 } else { 8.5 };
                svg.sized(ink, middle, Anchor::Middle, size, &words);
            }
        }
        Err(undefined) => svg.rect("missing", at, size, &format!("{both}: none, {undefined}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Reason;

    #[test]
    fn pairs_without_a_figure_are_drawn_as_such_and_one_judge_needs_no_picture() {
        let names = vec!["a".to_owned(), "评审".to_owned()];
        let none = || Measured::undefined(Reason::ConstantInput);
        let matrix = vec![vec![Measured(Ok(1.0)), none()], vec![none(), Measured(Ok(1.0))]];
        let picture = draw(&names, &matrix, 9, "").unwrap();
        assert!(picture.svg.contains("a and 评审: none, "), "{}", picture.svg);
        assert!(draw(&names[..1], &matrix[..1], 9, "").is_none());
    }
}
