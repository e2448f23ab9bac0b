//! Diagnostics as the user sees them: the source lines with their labels.

use std::ops::Range;

use ariadne::{Color, Config, Fmt, IndexType, Label, Report, ReportKind, Source};
use indexmap::IndexMap;

use crate::base::{Diagnostic, FileId, Severity, SourceMap, Span};

/// Renders diagnostics in their order, each with code, source lines, labels, notes and help, and an empty line between them. `color` adds the
/// escape sequences of a terminal. Spans that lie outside of their text or inside of a character are moved to its nearest place,
/// so that no diagnostic can fail to be shown.
pub fn render(diagnostics: &[Diagnostic], sources: &SourceMap, color: bool) -> String {
    let mut out = String::new();
    let mut texts = NamedSources { sources, texts: IndexMap::new() };
    for (i, diagnostic) in diagnostics.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out.push_str(&render_one(diagnostic, &mut texts, color));
    }
    out
}

fn render_one(diagnostic: &Diagnostic, texts: &mut NamedSources<'_>, color: bool) -> String {
    let sources = texts.sources;
    let Some(primary) = diagnostic.labels.first() else {
        return without_source(diagnostic, None, color);
    };
    if sources.file(primary.span.file).text.trim().is_empty() {
        return without_source(diagnostic, Some(&sources.file(primary.span.file).name), color);
    }
    let kind = match diagnostic.severity {
        Severity::Error => ReportKind::Error,
        Severity::Warning => ReportKind::Warning,
    };
    let main_color = severity_color(diagnostic.severity);
    // Character positions: byte positions inside of a character would make ariadne panic.
    let config = Config::default().with_color(color).with_index_type(IndexType::Char).with_tab_width(4);
    let mut report = Report::build(kind, texts.characters(primary.span))
        .with_config(config)
        .with_code(diagnostic.code)
        .with_message(&diagnostic.message);
    for (i, label) in diagnostic.labels.iter().enumerate() {
        let mut shown = Label::new(texts.characters(label.span))
            .with_color(if i == 0 { main_color } else { Color::Blue })
            .with_order(i32::try_from(i).unwrap_or(i32::MAX));
        if !label.message.is_empty() {
            shown = shown.with_message(&label.message);
        }
        report = report.with_label(shown);
    }
    report.with_notes(&diagnostic.notes);
    if let Some(help) = &diagnostic.help {
        report = report.with_help(help);
    }
    let mut bytes = Vec::new();
    match report.finish().write(texts, &mut bytes) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => without_source(diagnostic, None, color),
    }
}

fn severity_color(severity: Severity) -> Color {
    match severity {
        Severity::Error => Color::Red,
        Severity::Warning => Color::Yellow,
    }
}

/// A diagnostic about a file that has no lines to show.
fn without_source(diagnostic: &Diagnostic, name: Option<&str>, color: bool) -> String {
    let severity = match diagnostic.severity {
        Severity::Error => "Error",
        Severity::Warning => "Warning",
    };
    let head = format!("[{}] {severity}:", diagnostic.code);
    let head = if color { head.fg(severity_color(diagnostic.severity)).to_string() } else { head };
    let mut out = format!("{head} {}\n", diagnostic.message);
    if let Some(name) = name {
        out.push_str(&format!("  in {name}\n"));
    }
    for note in &diagnostic.notes {
        out.push_str(&format!("  Note: {note}\n"));
    }
    if let Some(help) = &diagnostic.help {
        out.push_str(&format!("  Help: {help}\n"));
    }
    out
}

/// The texts for ariadne, shown under the names that the user gave; each is read once, when it is first wanted.
struct NamedSources<'a> {
    sources: &'a SourceMap,
    texts: IndexMap<FileId, Text>,
}

/// A text for ariadne, and the first byte and the first character of each line.
struct Text {
    source: Source<String>,
    lines: Vec<(usize, usize)>,
}

impl NamedSources<'_> {
    fn text(&mut self, id: FileId) -> &Text {
        let sources = self.sources;
        self.texts.entry(id).or_insert_with(|| {
            let text = &*sources.file(id).text;
            let mut lines = vec![(0, 0)];
            for line in text.split_inclusive('\n') {
                let (byte, character) = lines[lines.len() - 1];
                lines.push((byte + line.len(), character + line.chars().count()));
            }
            Text { source: Source::from(text.to_owned()), lines }
        })
    }

    /// The span in characters.
    fn characters(&mut self, span: Span) -> (FileId, Range<usize>) {
        let text = &*self.sources.file(span.file).text;
        let lines = &self.text(span.file).lines;
        let position = |byte: u32| {
            let mut byte = (byte as usize).min(text.len());
            while !text.is_char_boundary(byte) {
                byte -= 1;
            }
            let (start, before) = lines[lines.partition_point(|(start, _)| *start <= byte) - 1];
            before + text[start..byte].chars().count()
        };
        let start = position(span.start);
        (span.file, start..position(span.end).max(start))
    }
}

impl ariadne::Cache<FileId> for NamedSources<'_> {
    type Storage = String;

    fn fetch(&mut self, id: &FileId) -> Result<&Source<String>, impl std::fmt::Debug> {
        Ok::<_, std::convert::Infallible>(&self.text(*id).source)
    }

    fn display<'a>(&self, id: &'a FileId) -> Option<impl std::fmt::Display + 'a> {
        Some(self.sources.file(*id).name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, start: usize, end: usize) -> String {
        let mut sources = SourceMap::default();
        let file = sources.add("a.ab", text);
        let diagnostic = Diagnostic::error("E0001", "message", Span::new(file, start, end), "label")
            .with_label(Span::new(file, 0, 0), "second")
            .with_note("a note")
            .with_help("a remedy");
        render(&[diagnostic], &sources, false)
    }

    #[test]
    fn shows_code_label_note_and_help() {
        let text = shown("let ε = 1;\nlet x = ε;\n", 20, 22);
        for part in ["[E0001] Error: message", "a.ab:2:9", "label", "second", "Note: a note", "Help: a remedy"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn no_span_is_too_odd_to_show() {
        for text in ["", "\n", "\r\n\r\n", "é", "a\u{2028}b", "x\n\n", "\u{feff}\t\u{0}x"] {
            for start in 0..text.len() + 3 {
                for end in 0..text.len() + 3 {
                    assert!(shown(text, start, end).contains("message"), "{text:?} {start}..{end}");
                }
            }
        }
    }

    #[test]
    fn color_is_asked_for() {
        let mut sources = SourceMap::default();
        let file = sources.add("a.ab", "x");
        let diagnostic = Diagnostic::warning("E0001", "message", Span::new(file, 0, 1), "");
        assert!(render(std::slice::from_ref(&diagnostic), &sources, true).contains('\u{1b}'));
        assert!(render(&[diagnostic], &sources, false).contains("Warning"));
    }
}
