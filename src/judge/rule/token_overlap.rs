//! Published measures of overlap between a text and a reference, all in [0,1].
//!
//! Pure arithmetic on tokens. Tokens are those of [`crate::text`], so figures agree with
//! other programs where their tokenisers agree, and differ on scripts without spaces.

use std::collections::HashMap;

use crate::text;

/// ROUGE-L (Lin, 2004): the F1 of precision and recall by the longest common subsequence of
/// words. 0 when either has no word, `None` when the texts are too long to compare.
pub(super) fn rouge_l(candidate: &str, reference: &str) -> Option<f64> {
    let (a, b): (Vec<&str>, Vec<&str>) =
        (text::words(candidate).collect(), text::words(reference).collect());
    if a.is_empty() || b.is_empty() {
        return Some(if a.len() == b.len() { 1.0 } else { 0.0 });
    }
    // 64 cells take one machine word; the limit is two texts of 200,000 words each.
    const CELLS: u64 = 40_000_000_000;
    if a.len() as u64 * b.len() as u64 > CELLS {
        return None;
    }
    let common = longest_common_subsequence(&a, &b) as f64;
    let (precision, recall) = (common / a.len() as f64, common / b.len() as f64);
    Some(if common == 0.0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) })
}

/// Length of the longest common subsequence, 64 cells at a time (Hyyrö, 2004).
fn longest_common_subsequence(a: &[&str], b: &[&str]) -> usize {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, word) in a.iter().enumerate() {
        places.entry(word).or_default().push(at);
    }
    let blocks = a.len().div_ceil(64);
    // A zero bit marks a place where the subsequence grew.
    let mut row = vec![u64::MAX; blocks];
    let mut matches = vec![0_u64; blocks];
    for word in b {
        let Some(at) = places.get(word) else { continue };
        for place in at {
            matches[place / 64] |= 1 << (place % 64);
        }
        let mut carry = false;
        for (cell, found) in row.iter_mut().zip(&matches) {
            let update = *cell & found;
            let (sum, first) = cell.overflowing_add(update);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            carry = first || second;
            *cell = sum | (*cell & !found);
        }
        for place in at {
            matches[place / 64] = 0;
        }
    }
    // Bits beyond the end of `a` never match and stay set.
    row.iter().map(|cell| cell.count_zeros() as usize).sum()
}

/// BLEU of one sentence pair (Papineni et al., 2002) up to 4-grams, with the brevity penalty.
///
/// An order without a match counts as 1 / (2^k x n-grams), k counting such orders from the
/// shortest (Chen and Cherry, 2014, smoothing 3); orders longer than the text are left out.
/// 0 when no word matches at all.
pub(super) fn bleu(candidate: &str, reference: &str) -> f64 {
    const ORDERS: usize = 4;
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut number = |token| {
        let next = numbers.len() as u32;
        *numbers.entry(token).or_insert(next)
    };
    let a: Vec<u32> = text::tokens(candidate).map(&mut number).collect();
    let b: Vec<u32> = text::tokens(reference).map(&mut number).collect();
    if a.is_empty() || b.is_empty() {
        return if a.len() == b.len() { 1.0 } else { 0.0 };
    }
    let (mut log_sum, mut orders, mut smoothing, mut any) = (0.0, 0.0, 1.0, false);
    for order in 1..=ORDERS.min(a.len()) {
        let total = (a.len() - order + 1) as f64;
        let shared = shared(grams(&a, order), grams(&b, order));
        any |= shared > 0;
        let precision = if shared == 0 {
            smoothing *= 2.0;
            1.0 / (smoothing * total)
        } else {
            shared as f64 / total
        };
        log_sum += precision.ln();
        orders += 1.0;
    }
    if !any {
        return 0.0;
    }
    let brevity =
        if a.len() < b.len() { (1.0 - b.len() as f64 / a.len() as f64).exp() } else { 1.0 };
    brevity * f64::exp(log_sum / orders)
}

/// chrF (Popović, 2015): F with beta = 2 of the mean precision and mean recall over
/// character n-grams of orders 1 to 6, white space left out. Orders longer than either text
/// are left out of the means.
pub(super) fn chr_f(candidate: &str, reference: &str) -> f64 {
    const ORDERS: usize = 6;
    const BETA_SQUARED: f64 = 4.0;
    let letters = |text: &str| -> Vec<u32> {
        text.chars().filter(|c| !c.is_whitespace()).map(u32::from).collect()
    };
    let (a, b) = (letters(candidate), letters(reference));
    if a.is_empty() || b.is_empty() {
        return if a.len() == b.len() { 1.0 } else { 0.0 };
    }
    let (mut precision, mut recall) = (0.0, 0.0);
    let orders = ORDERS.min(a.len()).min(b.len());
    for order in 1..=orders {
        let shared = shared(grams(&a, order), grams(&b, order)) as f64;
        precision += shared / (a.len() - order + 1) as f64;
        recall += shared / (b.len() - order + 1) as f64;
    }
    let (precision, recall) = (precision / orders as f64, recall / orders as f64);
    let below = BETA_SQUARED * precision + recall;
    if below == 0.0 { 0.0 } else { (1.0 + BETA_SQUARED) * precision * recall / below }
}

/// The n-grams of a sequence, sorted, repeats kept.
fn grams(sequence: &[u32], order: usize) -> Vec<&[u32]> {
    let mut grams: Vec<&[u32]> = sequence.windows(order).collect();
    grams.sort_unstable();
    grams
}

/// How many entries two sorted lists share, each counted as often as in the poorer list.
fn shared(a: Vec<&[u32]>, b: Vec<&[u32]>) -> usize {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                shared += 1;
                i += 1;
                j += 1;
            }
        }
    }
    shared
}

/// Edit similarity: `1 - distance / longer`, by characters (Levenshtein, 1966). 1 for two
/// empty texts, `None` when the texts are too long to compare.
pub(super) fn edit(candidate: &str, reference: &str) -> Option<f64> {
    let (a, b): (Vec<char>, Vec<char>) = (candidate.chars().collect(), reference.chars().collect());
    let longer = a.len().max(b.len());
    if longer == 0 {
        return Some(1.0);
    }
    // What both share at their ends costs nothing, which makes near repeats cheap.
    let head = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[head..], &b[head..]);
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[..a.len() - tail], &b[..b.len() - tail]);
    const CELLS: u64 = 400_000_000;
    if a.len() as u64 * b.len() as u64 > CELLS {
        return None;
    }
    let distance = strsim::generic_levenshtein(&Chars(a), &Chars(b));
    Some(1.0 - distance as f64 / longer as f64)
}

/// A slice as the crate wants it: iterable by reference.
struct Chars<'a>(&'a [char]);

impl<'b> IntoIterator for &'b Chars<'_> {
    type Item = &'b char;
    type IntoIter = std::slice::Iter<'b, char>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
