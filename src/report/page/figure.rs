//! A picture with what stands around it on the page.

use serde::Serialize;

use crate::picture::Picture;

/// A picture, and the same in numbers.
#[derive(Serialize)]
pub(super) struct Figure {
    title: String,
    svg: String,
    /// What is to be seen, and how to read it.
    about: String,
    table: Option<Numbers>,
}

/// A table of numbers. The first cell of each row is its name.
#[derive(Serialize)]
pub(super) struct Numbers {
    /// What it says, in a few words.
    pub(super) name: String,
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Figure {
    /// `id` is that of the picture, its own in the page; `seen` says what is in it to those who do not see it.
    pub(super) fn new(id: &str, title: &str, picture: Picture, seen: &str, about: &str) -> Self {
        Self { title: title.to_owned(), svg: picture.inline(id, title, seen), about: about.to_owned(), table: None }
    }

    pub(super) fn with(mut self, name: &str, head: &[&str], rows: Vec<Vec<String>>) -> Self {
        let head = head.iter().map(|cell| (*cell).to_owned()).collect();
        self.table = Some(Numbers { name: name.to_owned(), head, rows });
        self
    }
}
