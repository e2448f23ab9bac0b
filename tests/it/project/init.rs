//! What `autobatch init` and `autobatch generate` write.

use crate::project::cli::{Folder, error, output};

#[test]
fn a_folder_begins_with_what_runs() {
    for (what, files) in [
        ("stan", &["model.stan", "data.json", "run.sh"][..]),
        ("model", &["model.ab", "data.json", "run.sh"]),
        ("program", &["program.ab", "run.sh"]),
    ] {
        let folder = Folder::new(&format!("init-{what}"));
        let new = folder.0.join("new");
        let path = new.display().to_string();
        let told = output(&["init", what, &path]);
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        let mut found: Vec<String> = new
            .read_dir()
            .expect("it is made")
            .map(|e| e.expect("an entry").file_name().into_string().unwrap())
            .collect();
        found.sort();
        let mut wanted: Vec<&str> = files.to_vec();
        wanted.sort_unstable();
        assert_eq!(found, wanted);
        // What it says to begin with is what its script runs, and its words are those of the command.
        let said = String::from_utf8_lossy(&told.stdout).into_owned();
        let command = said.lines().last().expect("a line").trim();
        assert!(std::fs::read_to_string(new.join("run.sh")).unwrap().contains(command), "{said}");
        let words = shell_words::split(command).expect("words");
        let in_folder =
            |word: &String| if new.join(word).is_file() { new.join(word).display().to_string() } else { word.clone() };
        let mut words: Vec<String> = words[1..].iter().map(in_folder).collect();
        if let Some(at) = words.iter().position(|word| word == "draws.npz") {
            words[at] = new.join("draws.npz").display().to_string();
            words.extend(["--warmup", "50", "--draws", "20"].map(str::to_owned));
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert!(output(&words).status.success(), "{words:?}");
        // Nothing is written over.
        assert!(error(&["init", what, &path]).contains("is there: it is not written over"));
    }
}

#[test]
fn packages_have_completions_and_pages_of_the_manual() {
    for (shell, word) in [("bash", "_autobatch"), ("zsh", "#compdef autobatch"), ("fish", "complete -c autobatch")] {
        let told = String::from_utf8(output(&["generate", "--completions", shell]).stdout).expect("text");
        assert!(told.contains(word) && told.contains("log-prob"), "{shell}");
    }
    let folder = Folder::new("manual");
    let path = folder.0.display().to_string();
    assert!(output(&["generate", "--man", &path]).status.success());
    let page = std::fs::read_to_string(folder.0.join("autobatch-sample.1")).expect("it is written");
    assert!(page.contains("NUTS") && page.contains("chains") && folder.0.join("autobatch.1").is_file());
    assert!(!folder.0.join("autobatch-calibrate.1").exists());
}
