//! The TextMate grammars that ship are those that the lexers' tokens make.

use std::path::Path;

use serde_json::Value;

use autobatch::lsp::textmate;
use autobatch::stan::syntax::token::Token as StanToken;
use autobatch::syntax::token;

fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("grammar/vscode/syntaxes").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_grammars_that_ship_are_those_of_the_tokens() {
    for (name, grammar) in [("autobatch", textmate::autobatch()), ("stan", textmate::stan())] {
        let file = format!("{name}.tmLanguage.json");
        let command = format!("autobatch generate --textmate {name} > grammar/vscode/syntaxes/{file}");
        assert_eq!(shipped(&file), format!("{grammar:#}\n"), "make it again: {command}");
    }
}

/// The words that patterns of the shape `\b(?:a|b)\b` match, each with the scope that it gets.
fn words(grammar: &Value) -> Vec<(String, String)> {
    let patterns = grammar["patterns"].as_array().expect("patterns");
    let listed = patterns.iter().filter_map(|pattern| {
        let words = pattern["match"].as_str()?.strip_prefix("\\b(?:")?.strip_suffix(")\\b")?;
        Some((words.to_owned(), pattern["name"].as_str()?.to_owned()))
    });
    listed
        .flat_map(|(words, scope)| words.split('|').map(|w| (w.to_owned(), scope.clone())).collect::<Vec<_>>())
        .collect()
}

#[test]
fn every_word_of_the_languages_is_coloured_once() {
    let (ours, stan) = (words(&textmate::autobatch()), words(&textmate::stan()));
    let own = token::keywords().chain(["real", "int", "bool"].map(str::to_owned));
    let of_stan = StanToken::ALL.iter().filter_map(|token| token.reserved()).map(str::to_owned);
    for (expected, found) in [(own.collect::<Vec<_>>(), ours), (of_stan.collect(), stan)] {
        assert!(expected.len() > 20);
        for word in expected {
            let scopes: Vec<&String> =
                found.iter().filter(|(known, _)| *known == word).map(|(_, scope)| scope).collect();
            assert_eq!(scopes.len(), 1, "`{word}` is {scopes:?}");
        }
    }
}

#[test]
fn every_sign_of_the_languages_is_in_the_pattern_of_operators() {
    let operators = |grammar: Value| {
        let patterns = grammar["patterns"].as_array().expect("patterns").clone();
        let last = patterns.last().expect("a pattern")["match"].as_str().expect("a pattern").replace('\\', "");
        last.split('|').map(str::to_owned).collect::<Vec<_>>()
    };
    let ours = operators(textmate::autobatch());
    ["+", "->", "==", "@", ".."].iter().for_each(|sign| assert!(ours.contains(&(*sign).to_owned()), "{sign}"));
    let stan = operators(textmate::stan());
    ["%/%", ".*=", "~", "'", "<-"].iter().for_each(|sign| assert!(stan.contains(&(*sign).to_owned()), "{sign}"));
}
