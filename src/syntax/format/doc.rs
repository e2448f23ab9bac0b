//! Documents with optional line breaks, and the printer that chooses among them (after Wadler, "A prettier printer").

/// A text whose line breaks are still to be chosen.
#[derive(Debug)]
pub(crate) enum Doc {
    Nil,
    Text(String),
    /// A comment at the end of a line: has no width, and a line break follows.
    Trailing(String),
    /// A space, or a line break when the group is broken.
    Line,
    /// Nothing, or a line break when the group is broken.
    SoftLine,
    /// A line break; breaks every group around it.
    Hard,
    /// An empty line before the line break that follows, when the group is broken.
    Blank,
    /// Text that is there only when the group is broken.
    IfBroken(&'static str),
    Indent(Box<Doc>),
    /// What groups before it take for unbroken when they ask whether they fit: they break first.
    Last(Box<Doc>),
    Concat(Vec<Doc>),
    Group {
        broken: bool,
        doc: Box<Doc>,
    },
}

impl Doc {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Doc::Text(text.into())
    }
    pub(crate) fn space() -> Self {
        Doc::text(" ")
    }
    pub(crate) fn indent(docs: Vec<Doc>) -> Self {
        Doc::Indent(Box::new(Doc::Concat(docs)))
    }
    pub(crate) fn group(docs: Vec<Doc>) -> Self {
        let doc = Doc::Concat(docs);
        Doc::Group { broken: doc.breaks(), doc: Box::new(doc) }
    }
    /// Whether the document cannot be printed on one line.
    pub(crate) fn breaks(&self) -> bool {
        match self {
            Doc::Hard | Doc::Trailing(_) => true,
            Doc::Text(text) => text.contains('\n'),
            Doc::Indent(doc) | Doc::Last(doc) => doc.breaks(),
            Doc::Concat(docs) => docs.iter().any(Doc::breaks),
            Doc::Group { broken, .. } => *broken,
            Doc::Nil | Doc::Line | Doc::SoftLine | Doc::Blank | Doc::IfBroken(_) => false,
        }
    }
}

/// What is still to be printed: indentation, whether the group around it is broken, and the document.
type Pending<'a> = (usize, bool, &'a Doc);

/// Prints `doc` in lines of at most `width` characters where its groups allow it, with `step` spaces a level.
pub(crate) fn print(doc: &Doc, width: usize, step: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    let mut pending: Vec<Pending<'_>> = vec![(0, true, doc)];
    while let Some((indent, broken, doc)) = pending.pop() {
        match doc {
            Doc::Nil => {}
            Doc::Text(text) | Doc::Trailing(text) => {
                out.push_str(text);
                column = match text.rsplit_once('\n') {
                    Some((_, last)) => last.chars().count(),
                    None => column + text.chars().count(),
                };
            }
            Doc::Hard => column = new_line(&mut out, indent),
            Doc::Line | Doc::SoftLine if broken => column = new_line(&mut out, indent),
            Doc::Line => {
                out.push(' ');
                column += 1;
            }
            Doc::Blank if broken => out.push('\n'),
            Doc::IfBroken(text) if broken => {
                out.push_str(text);
                column += text.len();
            }
            Doc::SoftLine | Doc::Blank | Doc::IfBroken(_) => {}
            Doc::Indent(doc) => pending.push((indent + step, broken, doc)),
            Doc::Last(doc) => pending.push((indent, broken, doc)),
            Doc::Concat(docs) => pending.extend(docs.iter().rev().map(|d| (indent, broken, d))),
            Doc::Group { broken: forced, doc } => {
                let flat = !forced && fits(doc, &pending, width.saturating_sub(column));
                pending.push((indent, !flat, doc));
            }
        }
    }
    out
}

fn new_line(out: &mut String, indent: usize) -> usize {
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
    indent
}

/// Whether `doc` on one line, with what follows it up to the next line break, is at most `room` wide.
fn fits(doc: &Doc, after: &[Pending<'_>], mut room: usize) -> bool {
    let mut here: Vec<(bool, &Doc)> = vec![(false, doc)];
    let mut after = after.iter().rev();
    loop {
        let Some((broken, doc)) = here.pop() else {
            match after.next() {
                Some(&(_, broken, doc)) => here.push((broken, doc)),
                None => return true,
            }
            continue;
        };
        let width = match doc {
            Doc::Nil | Doc::Blank | Doc::Trailing(_) => 0,
            Doc::Text(text) => match text.split_once('\n') {
                Some((first, _)) => return first.chars().count() <= room,
                None => text.chars().count(),
            },
            Doc::Hard => return true,
            Doc::Line | Doc::SoftLine if broken => return true,
            Doc::Line => 1,
            Doc::SoftLine => 0,
            Doc::IfBroken(text) => {
                if broken {
                    text.len()
                } else {
                    0
                }
            }
            Doc::Indent(doc) => {
                here.push((broken, doc));
                0
            }
            Doc::Last(doc) => match doc.as_ref() {
                // a comment in it has broken it already
                doc if doc.breaks() => return true,
                doc => {
                    here.push((false, doc));
                    0
                }
            },
            Doc::Concat(docs) => {
                here.extend(docs.iter().rev().map(|d| (broken, d)));
                0
            }
            Doc::Group { broken: forced, doc } => {
                // What follows may break at its first chance.
                here.push((*forced || broken, doc));
                0
            }
        };
        match room.checked_sub(width) {
            Some(rest) => room = rest,
            None => return false,
        }
    }
}
