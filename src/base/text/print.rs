//! Writing names and strings.

use std::fmt;

use super::tokens::{RESERVED, continues_name, starts_name};

/// A name in its text form: in backticks where it is needed.
#[derive(Clone, Copy, Debug)]
pub struct QuotedName<'a>(pub &'a str);

impl fmt::Display for QuotedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars();
        let plain = chars.next().is_some_and(starts_name) && chars.all(continues_name);
        if plain && !RESERVED.contains(&self.0) {
            return f.write_str(self.0);
        }
        f.write_str("`")?;
        write_escaped(f, self.0)?;
        f.write_str("`")
    }
}

/// A string with holes in its text form; the parts stand around the holes.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a>(pub &'a [String]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for (i, part) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("{}")?;
            }
            write_escaped(f, part)?;
        }
        f.write_str("\"")
    }
}

fn write_escaped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for c in text.chars() {
        match c {
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            '\r' => f.write_str("\\r")?,
            '"' | '\\' | '{' | '}' | '`' => write!(f, "\\{c}")?,
            c if c.is_control() => write!(f, "\\u{{{:x}}}", c as u32)?,
            c => write!(f, "{c}")?,
        }
    }
    Ok(())
}
