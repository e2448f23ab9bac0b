//! The tutorial does what it says: see [`super::pages`].

use super::cli::Folder;
use super::pages::does_what_it_says;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/nuts/TUTORIAL.md");

#[test]
fn the_tutorial_does_what_it_says() {
    let page = std::fs::read_to_string(PAGE).expect("there is a tutorial");
    let commands = does_what_it_says(&page, &Folder::new("tutorial"), &[]);
    assert!(commands > 10, "only {commands} commands were found");
}
