//! Places in a text as the protocol counts them: lines and columns from 0, columns in units of an encoding.

use serde_json::{Value, json};

/// What a column counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Encoding {
    /// Bytes of UTF-8.
    Utf8,
    /// Units of UTF-16, which every client knows.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

impl Encoding {
    /// The first that the client offers and the server knows.
    pub(super) fn chosen(offered: &Value) -> Self {
        let offered = offered.as_array().map_or(&[][..], Vec::as_slice);
        let known = |name: &Value| match name.as_str() {
            Some("utf-8") => Some(Self::Utf8),
            Some("utf-16") => Some(Self::Utf16),
            Some("utf-32") => Some(Self::Utf32),
            _ => None,
        };
        offered.iter().find_map(known).unwrap_or_default()
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
            Self::Utf32 => "utf-32",
        }
    }

    fn units(self, c: char) -> usize {
        match self {
            Self::Utf8 => c.len_utf8(),
            Self::Utf16 => c.len_utf16(),
            Self::Utf32 => 1,
        }
    }
}

/// The lines of a text.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    /// Where each begins, in bytes.
    starts: Vec<usize>,
    encoding: Encoding,
}

impl Lines {
    /// Those of a text: they end with `\n`, `\r\n` or `\r`.
    pub(super) fn of(text: &str, encoding: Encoding) -> Self {
        let bytes = text.as_bytes();
        let ends = |at: &usize| bytes[*at] == b'\n' || (bytes[*at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        let starts = (0..bytes.len()).filter(ends).map(|at| at + 1);
        Self { starts: std::iter::once(0).chain(starts).collect(), encoding }
    }

    /// The number of a line that has the byte, counted from 0.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset) - 1
    }

    /// The text of a line, without its end.
    pub(super) fn text<'t>(&self, text: &'t str, line: usize) -> &'t str {
        let start = self.starts.get(line).copied().unwrap_or(text.len());
        let end = self.starts.get(line + 1).copied().unwrap_or(text.len());
        text[start..end].trim_end_matches(['\n', '\r'])
    }

    /// Where a line begins, in bytes; `None` for lines behind the last.
    pub(super) fn start(&self, line: usize) -> Option<usize> {
        self.starts.get(line).copied()
    }

    /// A byte as a position of the protocol.
    pub(super) fn position(&self, text: &str, offset: usize) -> Value {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.line(offset);
        let before = &text[self.starts[line]..offset];
        let column: usize = match self.encoding {
            Encoding::Utf8 => before.len(),
            _ if before.is_ascii() => before.len(),
            encoding => before.chars().map(|c| encoding.units(c)).sum(),
        };
        json!({"line": line, "character": column})
    }

    /// Two bytes as a range of the protocol.
    pub(super) fn range(&self, text: &str, start: usize, end: usize) -> Value {
        json!({"start": self.position(text, start), "end": self.position(text, end.max(start))})
    }

    /// The byte of a position: the end of its line for a column behind that, the end of the text for a line behind that.
    /// `None` for what is no position.
    pub(super) fn offset(&self, text: &str, position: &Value) -> Option<usize> {
        let line = usize::try_from(position["line"].as_u64()?).ok()?;
        let column = usize::try_from(position["character"].as_u64()?).ok()?;
        let Some(start) = self.start(line) else { return Some(text.len()) };
        let mut units = 0;
        for (at, c) in self.text(text, line).char_indices() {
            // Within a character is before it.
            if units + self.encoding.units(c) > column {
                return Some(start + at);
            }
            units += self.encoding.units(c);
        }
        Some(start + self.text(text, line).len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a\u{e9}\u{1f600}b\r\nsecond\rthird\n";

    #[test]
    fn columns_count_units_of_the_encoding() {
        let at_b = TEXT.find('b').expect("it is there");
        for (encoding, column) in [(Encoding::Utf8, 7), (Encoding::Utf16, 4), (Encoding::Utf32, 3)] {
            let lines = Lines::of(TEXT, encoding);
            let position = json!({"line": 0, "character": column});
            assert_eq!(lines.position(TEXT, at_b), position, "{encoding:?}");
            assert_eq!(lines.offset(TEXT, &position), Some(at_b), "{encoding:?}");
        }
    }

    #[test]
    fn every_position_comes_back() {
        for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
            let lines = Lines::of(TEXT, encoding);
            for (at, c) in TEXT.char_indices().filter(|(_, c)| !matches!(c, '\n')) {
                let back = lines.offset(TEXT, &lines.position(TEXT, at));
                assert_eq!(back, Some(at), "{encoding:?} {c:?}");
            }
        }
    }

    #[test]
    fn positions_that_are_not_there_are_the_nearest_before() {
        let lines = Lines::of(TEXT, Encoding::Utf16);
        let at = |line: u64, character: u64| lines.offset(TEXT, &json!({"line": line, "character": character}));
        assert_eq!(at(0, 3), TEXT.find('\u{1f600}'));
        assert_eq!(at(0, 99), TEXT.find('\r'));
        assert_eq!(at(1, 99), TEXT.find("\rthird"));
        assert_eq!(at(99, 0), Some(TEXT.len()));
        assert_eq!(lines.offset(TEXT, &json!({"line": -1, "character": 0})), None);
        assert_eq!(lines.offset(TEXT, &json!(null)), None);
    }

    #[test]
    fn the_first_known_encoding_is_chosen() {
        assert_eq!(Encoding::chosen(&json!(["utf-7", "utf-8", "utf-16"])), Encoding::Utf8);
        assert_eq!(Encoding::chosen(&json!(null)), Encoding::Utf16);
    }
}
