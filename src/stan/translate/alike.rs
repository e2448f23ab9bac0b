//! Translations of one program with several data sets as one: the numbers that differ become parameters.

use indexmap::IndexMap;

use super::Translation;
use crate::stan::emit;
use crate::types::{Array, ArrayData};

/// The beginning of the names of numbers of the text that differ.
const NAME: &str = "of_set";

/// Puts the translations with other data sets into the first one, so that it serves all: a number of the text that is not
/// the same in all becomes a shared parameter of the functions that have it. Gives the tables that differ, with an axis
/// over the data sets; the others stay in the translation.
///
/// # Errors
/// The position of the first data set for which the program is another one, and why, in words.
pub fn united(first: &mut Translation, others: &[Translation]) -> Result<IndexMap<String, Array>, (usize, String)> {
    let mut own = IndexMap::new();
    if others.is_empty() {
        return Ok(own);
    }
    for (i, other) in others.iter().enumerate() {
        let shapes =
            |translation: &Translation| translation.outputs.iter().map(|o| o.shape.clone()).collect::<Vec<_>>();
        if other.dimension != first.dimension || shapes(other) != shapes(first) {
            return Err((i + 1, "its parameters have another size".to_owned()));
        }
        if let Some((name, table)) = first.tables.iter().find(|(name, table)| {
            other.tables.get(*name).is_none_or(|other| other.shape != table.shape || other.ty() != table.ty())
        }) {
            let found = other.tables.get(name).map_or("nothing".to_owned(), |table| table.ty().to_string());
            return Err((i + 1, format!("it has {found} in the place of `{name}: {}`", table.ty())));
        }
    }
    let names: Vec<String> = first.tables.keys().cloned().collect();
    for name in names {
        let all: Vec<&Array> = others.iter().map(|other| &other.tables[&name]).collect();
        if all.iter().any(|other| !same(other, &first.tables[&name])) {
            let mut table = first.tables.shift_remove(&name).expect("it was found there");
            table.shape.insert(0, 1);
            for other in all {
                let mut row = other.clone();
                row.shape.insert(0, 1);
                table.append_rows(&row);
            }
            own.insert(name, table);
        }
    }
    let texts: Vec<Vec<Token<'_>>> = others.iter().map(|other| tokens(&other.text)).collect();
    let text = std::mem::take(&mut first.text);
    let written = tokens(&text);
    for (i, (other, translation)) in texts.iter().zip(others).enumerate() {
        let differs = || "it decides otherwise, or has another size".to_owned();
        let alike = other.len() == written.len() && translation.lines.len() == first.lines.len();
        if !alike || written.iter().zip(other).any(|(a, b)| !a.is_like(b)) {
            first.text = text.clone();
            return Err((i + 1, differs()));
        }
    }
    let numbers = |at: usize| -> Vec<Token<'_>> {
        std::iter::once(written[at]).chain(texts.iter().map(|other| other[at])).collect()
    };
    let mut made = String::with_capacity(text.len());
    // Where the function begins that is being written, if it is one that takes what a run gives it, and what is put there.
    let (mut head, mut ports) = (None, Vec::new());
    let mut count = 0;
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
        let all = numbers(at);
        if all.iter().all(|other| other == token) {
            made.push_str(token.written());
            continue;
        }
        count += 1;
        let name = format!("{NAME}{count}");
        let is_int = all.iter().all(|token| matches!(token, Token::Int(_)));
        let data = match is_int {
            true => all.iter().map(|token| token.int()).collect::<Option<Vec<i64>>>().map(ArrayData::Int),
            false => all.iter().map(|token| token.real()).collect::<Option<Vec<f64>>>().map(ArrayData::Real),
        };
        let (Some(data), Some(_)) = (data, head) else {
            first.text.clone_from(&text);
            let at = all.iter().position(|other| other != token).unwrap_or(1);
            return Err((
                at,
                format!("a function of its own has {} there, and {} in the first", all[at].written(), token.written()),
            ));
        };
        made.push_str(&name);
        ports.push(format!(", shared {name}: {}", if is_int { "int" } else { "real" }));
        own.insert(name, Array::new([all.len()], data));
    }
    close(&mut made, head, &mut ports);
    first.text = made;
    Ok(own)
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
