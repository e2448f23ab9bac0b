//! The book does what it says: see [`super::pages`]. A reader works through it in one folder, and so does the test.
//! What the page about Python runs in Python, `python/tests/test_book.py` runs.

use std::collections::BTreeSet;

use super::cli::Folder;
use super::pages::does_what_it_says;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/book/src");

fn page(name: &str) -> String {
    std::fs::read_to_string(format!("{SOURCE}/{name}")).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The pages in their order, as the table of contents has them.
fn pages() -> Vec<String> {
    let summary = page("SUMMARY.md");
    summary.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

#[test]
fn the_book_does_what_it_says() {
    let folder = Folder::new("book");
    let mut commands = 0;
    for name in pages() {
        println!("{name}");
        let elsewhere: &[&str] = if name == "python.md" { &["python", "text"] } else { &[] };
        commands += does_what_it_says(&page(&name), &folder, elsewhere);
    }
    assert!(commands > 50, "only {commands} commands were found");
}

#[test]
fn the_book_has_all_of_its_pages() {
    let files = std::fs::read_dir(SOURCE).expect("the folder can be read");
    let files = files.map(|file| file.expect("the folder can be read").file_name().to_string_lossy().into_owned());
    let files: BTreeSet<String> = files.filter(|name| name != "SUMMARY.md").collect();
    assert_eq!(pages().into_iter().collect::<BTreeSet<String>>(), files);
}
