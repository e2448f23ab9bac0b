//! Translations of one program with several data sets as one: the numbers that differ become parameters.

use indexmap::IndexMap;

use super::Translation;
use crate::stan::emit;
use crate::types::{Array, ArrayData};

/// The beginning of the names of numbers of the text that differ.
const NAME: &str = "of_set";

/// The position of a data set for which the program is another one than for the first, and why, in words.
type Differs = (usize, String);

/// Puts the translations with other data sets into the first one, so that it serves all: a number of the text that is not
/// the same in all becomes a shared parameter of the functions that have it. Gives the tables that differ, with an axis
/// over the data sets; the others stay in the translation.
///
/// # Errors
/// The position of the first data set for which the program is another one, and why, in words.
pub fn united(first: &mut Translation, others: &[Translation]) -> Result<IndexMap<String, Array>, Differs> {
    if others.is_empty() {
        return Ok(IndexMap::new());
    }
    others.iter().enumerate().try_for_each(|(i, other)| alike(first, other).map_err(|why| (i + 1, why)))?;
    let texts: Vec<Vec<Token<'_>>> = others.iter().map(|other| tokens(&other.text)).collect();
    let (text, numbers) = one_text(&tokens(&first.text), &texts)?;
    first.text = text;
    let mut own = tables(first, others);
    own.extend(numbers);
    Ok(own)
}

/// Why a translation is not like the first in all but numbers.
fn alike(first: &Translation, other: &Translation) -> Result<(), String> {
    let shapes = |translation: &Translation| translation.outputs.iter().map(|o| o.shape.clone()).collect::<Vec<_>>();
    if other.dimension != first.dimension || shapes(other) != shapes(first) {
        return Err("its parameters have another size".to_owned());
    }
    for (name, table) in &first.tables {
        let found = other.tables.get(name).map(Array::ty);
        if found.as_ref() != Some(&table.ty()) {
            let found = found.map_or("nothing".to_owned(), |ty| ty.to_string());
            return Err(format!("it has {found} in the place of `{name}: {}`", table.ty()));
        }
    }
    let (written, found) = (tokens(&first.text), tokens(&other.text));
    let same = written.len() == found.len() && other.lines.len() == first.lines.len();
    match same && written.iter().zip(&found).all(|(a, b)| a.is_like(b)) {
        true => Ok(()),
        false => Err("it decides otherwise, or has another size".to_owned()),
    }
}

/// Takes the tables that are not the same in all out of the first translation, with an axis over the data sets.
fn tables(first: &mut Translation, others: &[Translation]) -> IndexMap<String, Array> {
    let differs = |name: &str, table: &Array| others.iter().any(|other| !same(&other.tables[name], table));
    let names: Vec<String> =
        first.tables.iter().filter(|(name, table)| differs(name, table)).map(|(name, _)| name.clone()).collect();
    let row = |mut table: Array| {
        table.shape.insert(0, 1);
        table
    };
    let taken = names.into_iter().map(|name| {
        let mut table = row(first.tables.shift_remove(&name).expect("it was found there"));
        others.iter().for_each(|other| table.append_rows(&row(other.tables[&name].clone())));
        (name, table)
    });
    taken.collect()
}

/// The text that serves all, of texts that are alike, and the values of the parameters that it has in the place of numbers.
fn one_text(written: &[Token<'_>], others: &[Vec<Token<'_>>]) -> Result<(String, IndexMap<String, Array>), Differs> {
    let mut prefix = NAME.to_owned();
    while written.iter().any(|token| matches!(token, Token::Text(text) if text.contains(&prefix))) {
        prefix.push('_');
    }
    let (mut made, mut values) = (String::new(), IndexMap::new());
    // Where the function begins that is being written, if it is one that takes what a run gives it, and what is put there.
    let (mut head, mut ports) = (None, Vec::new());
    for (at, token) in written.iter().enumerate() {
        if let Token::Text(part) = token {
            for line in part.split_inclusive('\n') {
                let begins = made.is_empty() || made.ends_with('\n');
                if begins && ["pub fn ", "fn ", "const ", "struct "].iter().any(|word| line.starts_with(word)) {
                    close(&mut made, head, &mut ports);
                    head = line.starts_with("pub fn ").then_some(made.len());
                }
                made.push_str(line);
            }
            continue;
        }
        let all: Vec<Token<'_>> = std::iter::once(*token).chain(others.iter().map(|other| other[at])).collect();
        let Some(other) = all.iter().position(|other| other != token) else {
            made.push_str(token.written());
            continue;
        };
        let data = match token {
            Token::Int(_) => all.iter().map(Token::int).collect::<Option<Vec<i64>>>().map(ArrayData::Int),
            _ => all.iter().map(Token::real).collect::<Option<Vec<f64>>>().map(ArrayData::Real),
        };
        let (Some(data), Some(_)) = (data, head) else {
            let (found, wanted) = (all[other].written(), token.written());
            return Err((other, format!("a function of its own has {found} there, and {wanted} in the first")));
        };
        let name = format!("{prefix}{}", values.len() + 1);
        made.push_str(&name);
        ports.push(format!(", shared {name}: {}", if matches!(token, Token::Int(_)) { "int" } else { "real" }));
        values.insert(name, Array::new([all.len()], data));
    }
    close(&mut made, head, &mut ports);
    Ok((made, values))
}

/// Gives the function that begins at a byte more parameters.
fn close(made: &mut String, head: Option<usize>, ports: &mut Vec<String>) {
    let Some(head) = head else { return };
    let line = made[head..].find('\n').map_or(made.len(), |end| head + end);
    if let Some(at) = made[head..line].rfind(") -> ") {
        made.insert_str(head + at, &ports.concat());
    }
    ports.clear();
}

/// The same bits.
fn same(a: &Array, b: &Array) -> bool {
    match (&a.data, &b.data) {
        (ArrayData::Real(a), ArrayData::Real(b)) => a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits())),
        (a, b) => a == b,
    }
}

/// A part of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token<'a> {
    /// An int as it is written.
    Int(&'a str),
    /// A real as it is written, with parentheses where it has its own.
    Real(&'a str),
    /// All between numbers.
    Text(&'a str),
}

impl<'a> Token<'a> {
    fn written(&self) -> &'a str {
        match self {
            Token::Int(text) | Token::Real(text) | Token::Text(text) => text,
        }
    }

    /// Whether one can stand for the other.
    fn is_like(&self, other: &Token<'_>) -> bool {
        match (self, other) {
            (Token::Text(a), Token::Text(b)) => a == b,
            (Token::Text(_), _) | (_, Token::Text(_)) => false,
            (a, b) => matches!(a, Token::Int(_)) == matches!(b, Token::Int(_)),
        }
    }

    fn int(&self) -> Option<i64> {
        self.bare().parse().ok()
    }

    fn real(&self) -> Option<f64> {
        match self.bare() {
            "not_a_number()" => Some(f64::NAN),
            "positive_infinity()" => Some(f64::INFINITY),
            "negative_infinity()" => Some(f64::NEG_INFINITY),
            text => text.parse().ok(),
        }
    }

    fn bare(&self) -> &'a str {
        self.written().trim_start_matches('(').trim_end_matches(|c| c == ')' && self.written().starts_with('('))
    }
}

/// Reals that have names.
const NAMED: [&str; 3] = ["not_a_number()", "positive_infinity()", "negative_infinity()"];

/// A text as the numbers in it that may differ and what is between them. Sizes may not: numbers in types, beside `..`; nor
/// may what stands in a literal of a text, but for what is computed there.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let (mut found, mut from, mut at) = (Vec::new(), 0, 0);
    // Brackets that are open within those of a type; whether this is in a literal, and braces that are open in it.
    let (mut in_type, mut quoted, mut hole) = (0_usize, false, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quoted && hole == 0 => {
                at += 2;
                continue;
            }
            b'"' if hole == 0 => quoted = !quoted,
            b'{' if quoted && hole == 0 && bytes.get(at + 1) == Some(&b'{') => {
                at += 2;
                continue;
            }
            b'{' if quoted => hole += 1,
            b'}' if quoted && hole > 0 => hole -= 1,
            b'[' if in_type > 0 || ["real", "int", "bool"].iter().any(|ty| text[..at].ends_with(ty)) => in_type += 1,
            b']' if in_type > 0 => in_type -= 1,
            _ => {}
        }
        let within = at > 0 && (is_word(bytes[at - 1]) || bytes[at - 1] == b'.') || !text.is_char_boundary(at);
        let fixed = within || in_type > 0 || (quoted && hole == 0);
        let Some((end, real)) =
            (!fixed).then(|| number_at(text, at)).flatten().filter(|(end, _)| !text[*end..].starts_with(".."))
        else {
            at += 1;
            continue;
        };
        found.push(Token::Text(&text[from..at]));
        found.push(if real { Token::Real(&text[at..end]) } else { Token::Int(&text[at..end]) });
        (from, at) = (end, end);
    }
    found.push(Token::Text(&text[from..]));
    found
}

/// Where the number ends that begins at a byte, and whether it is a real: as `emit` writes them, a negative one with its
/// sign and where that must be with parentheses.
fn number_at(text: &str, at: usize) -> Option<(usize, bool)> {
    let rest = &text[at..];
    if let Some(name) = NAMED.iter().find(|name| rest.starts_with(**name)) {
        return Some((at + name.len(), true));
    }
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let before = emit::before(text, at);
    let sign = rest.starts_with('-') && before.is_none_or(|c| !(word(c) || ")]}".contains(c)));
    if rest.starts_with("(-") && before.is_none_or(|c| !word(c)) {
        let (end, real) = digits(text, at + 2)?;
        return text[end..].starts_with(')').then_some((end + 1, real));
    }
    digits(text, at + usize::from(sign))
}

/// Where the digits end that begin at a byte, and whether they are those of a real.
fn digits(text: &str, at: usize) -> Option<(usize, bool)> {
    let bytes = text.as_bytes();
    let run = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut end = run(at);
    if end == at {
        return None;
    }
    let mut real = false;
    // `0..8` is a range.
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        (end, real) = (run(end + 1), true);
    }
    if bytes.get(end) == Some(&b'e') {
        let sign = usize::from(bytes.get(end + 1) == Some(&b'-'));
        let exponent = run(end + 1 + sign);
        if exponent > end + 1 + sign {
            (end, real) = (exponent, true);
        }
    }
    Some((end, real))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translation(text: &str, table: f64) -> Translation {
        Translation {
            text: text.to_owned(),
            lines: vec![],
            tables: IndexMap::from([("y".to_owned(), Array::real([1], vec![table]))]),
            dimension: 1,
            outputs: vec![],
            printed: vec![],
            axes: IndexMap::new(),
        }
    }

    #[test]
    fn numbers_are_found_as_they_are_written() {
        let text = "a1 * (-2.5) + f(-1e-7) - 3 + x[0..8] - -4.0 + not_a_number() - data2.field; let x: real[3] = x[7]; \
                    assert(x, \"1 \\\"2 {{3 {4.5}}}\");";
        let numbers: Vec<&str> =
            tokens(text).iter().filter(|t| !matches!(t, Token::Text(_))).map(Token::written).collect();
        assert_eq!(numbers, ["(-2.5)", "-1e-7", "3", "-4.0", "not_a_number()", "7", "4.5"]);
        assert_eq!(tokens(text).iter().map(Token::written).collect::<String>(), text);
    }

    #[test]
    fn what_differs_becomes_a_parameter_and_what_is_alike_stays() {
        let text = |a: &str, b: &str| {
            format!(
                "pub fn log_density(q: real[1], shared y: real[1]) -> real {{\n    {a} * q[0] - 3 + 0.5\n}}\n\n\
                     pub fn parameters(q: real[1]) -> real {{\n    {b}\n}}\n"
            )
        };
        let mut first = translation(&text("1.5", "7"), 1.0);
        let others = [translation(&text("(-2.0)", "7"), 1.0), translation(&text("1e-5", "8"), 2.0)];
        let own = united(&mut first, &others).expect("they are alike");
        let as_text = |name: &str| format!("{:?}", own[name].data);
        assert_eq!(own.keys().collect::<Vec<_>>(), ["y", "of_set1", "of_set2"]);
        assert_eq!(as_text("y"), "Real([1.0, 1.0, 2.0])");
        assert_eq!(as_text("of_set1"), "Real([1.5, -2.0, 1e-5])");
        assert_eq!(as_text("of_set2"), "Int([7, 7, 8])");
        assert_eq!(
            first.text,
            "pub fn log_density(q: real[1], shared y: real[1], shared of_set1: real) -> real {\n    \
             of_set1 * q[0] - 3 + 0.5\n}\n\n\
             pub fn parameters(q: real[1], shared of_set2: int) -> real {\n    of_set2\n}\n"
        );
        let mut first = translation(&text("1.5", "7"), 1.0);
        let other = translation(&text("q[0]", "7"), 1.0);
        assert_eq!(united(&mut first, &[other]).map_err(|(at, _)| at), Err(1));
    }
}
