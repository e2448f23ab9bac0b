//! TextMate grammars, by which editors colour a text: made of the tokens of the lexers, so that a new word of a language is
//! coloured without an edit here. `autobatch generate --textmate` prints them; the copies in `grammar/vscode/syntaxes` are
//! compared by a test.

use serde_json::{Value, json};

use crate::stan::syntax::token::Token as StanToken;
use crate::syntax::token::{self, Token};

/// The grammar of our own language.
#[must_use]
pub fn autobatch() -> Value {
    let scope = |word: &str| match word {
        "if" | "else" | "while" | "for" | "in" | "break" | "continue" | "return" | "emit" => "keyword.control",
        "let" | "mut" | "shared" | "pub" => "storage.modifier",
        "fn" | "struct" | "const" => "storage.type",
        "true" | "false" => "constant.language",
        "print" | "assert" => "support.function",
        _ => "keyword.other",
    };
    let keywords: Vec<String> = token::keywords().collect();
    let mut patterns = comments(true);
    patterns.push(json!({"include": "#string"}));
    patterns.push(json!({
        "name": "entity.name.function.attribute.autobatch",
        "match": "@(?:elementwise|sum|recompute)\\b",
    }));
    patterns.push(named("^\\s*(?:pub\\s+)?(model)(?=\\s+[A-Za-z_])", &["keyword.other.autobatch"]));
    patterns.push(named("^\\s*(derivative)\\s+(of)\\b", &["keyword.other.autobatch", "keyword.other.autobatch"]));
    patterns.push(json!({"name": "keyword.other.autobatch", "match": "\\bgenerated(?=\\s*\\{)"}));
    patterns.push(named(
        "\\b(fn)\\s+([A-Za-z_][A-Za-z0-9_]*)",
        &["storage.type.autobatch", "entity.name.function.autobatch"],
    ));
    patterns.push(named(
        "\\b(struct)\\s+([A-Za-z_][A-Za-z0-9_]*)",
        &["storage.type.autobatch", "entity.name.type.autobatch"],
    ));
    patterns.extend(numbers("autobatch", "[0-9][0-9_]*(?:\\.(?![.A-Za-z_])[0-9_]*)?(?:[eE][+-]?[0-9][0-9_]*)?"));
    patterns.extend(words("autobatch", &keywords, scope));
    patterns.push(json!({"name": "support.type.autobatch", "match": alternatives(["bool", "int", "real"])}));
    patterns
        .push(json!({"name": "entity.name.function.call.autobatch", "match": "\\b[A-Za-z_][A-Za-z0-9_]*(?=\\s*\\()"}));
    patterns.push(json!({"name": "variable.other.autobatch", "match": "\\b[A-Za-z_][A-Za-z0-9_]*\\b"}));
    patterns.push(signs("autobatch", Token::ALL.iter().map(ToString::to_string)));
    let hole = json!({
        "name": "meta.template.expression.autobatch", "begin": "\\{", "end": "\\}|(?=\")|$", "patterns": [{"include": "$self"}],
    });
    let escapes = [json!({"name": "constant.character.escape.autobatch", "match": "\\\\.|\\{\\{|\\}\\}"}), hole];
    json!({
        "name": "autobatch", "scopeName": "source.autobatch", "fileTypes": ["ab"], "patterns": patterns,
        "repository": {"string": string("autobatch", &escapes)},
    })
}

/// The grammar of Stan.
#[must_use]
pub fn stan() -> Value {
    let reserved: Vec<(StanToken, &str)> =
        StanToken::ALL.iter().filter_map(|token| Some((*token, token.reserved()?))).collect();
    let words_of: Vec<String> = reserved.iter().map(|(_, word)| (*word).to_owned()).collect();
    let scope = |word: &str| {
        let token = reserved.iter().find(|(_, known)| *known == word).map(|(token, _)| *token);
        match (word, token) {
            ("if" | "else" | "while" | "for" | "in" | "break" | "continue" | "return" | "profile", _) => {
                "keyword.control"
            }
            ("print" | "reject" | "fatal_error", _) => "support.function",
            ("target" | "jacobian", _) => "variable.language",
            ("lower" | "upper" | "offset" | "multiplier", _) => "storage.modifier",
            (_, Some(token)) if token.is_type() || token == StanToken::Void => "storage.type",
            (_, Some(token)) if token.is_block() => "keyword.other.block",
            _ => "keyword.other",
        }
    };
    let mut patterns =
        vec![named("^\\s*(#include)\\b\\s*(\\S*)", &["keyword.control.include.stan", "string.other.include.stan"])];
    patterns.extend(comments(false));
    patterns.push(json!({"name": "comment.line.number-sign.stan", "match": "#.*$"}));
    patterns.push(json!({"include": "#string"}));
    let blocks = StanToken::ALL.iter().filter(|token| token.is_block() && token.reserved().is_none());
    let blocks: Vec<String> = blocks.map(|token| token.to_string().trim_matches('`').replace(' ', "[ \\t]+")).collect();
    patterns
        .push(json!({"name": "keyword.other.block.stan", "match": alternatives(blocks.iter().map(String::as_str))}));
    patterns.push(named(
        "(~)\\s*([A-Za-z][A-Za-z0-9_]*)",
        &["keyword.operator.stan", "support.function.distribution.stan"],
    ));
    let digits = "[0-9]+(?:_[0-9]+)*";
    let number = format!("(?:{digits}\\.?(?:{digits})?|\\.{digits})(?:[eE][+-]?{digits})?i?");
    patterns.extend(numbers("stan", &number));
    patterns.extend(words("stan", &words_of, scope));
    patterns.push(json!({"name": "entity.name.function.call.stan", "match": "\\b[A-Za-z][A-Za-z0-9_]*(?=\\s*\\()"}));
    patterns.push(json!({"name": "variable.other.stan", "match": "\\b[A-Za-z_][A-Za-z0-9_]*\\b"}));
    patterns.push(signs("stan", StanToken::ALL.iter().map(ToString::to_string)));
    json!({
        "name": "Stan", "scopeName": "source.stan", "fileTypes": ["stan", "stanfunctions"], "patterns": patterns,
        "repository": {"string": string("stan", &[])},
    })
}

/// A pattern whose groups have scopes.
fn named(pattern: &str, groups: &[&str]) -> Value {
    let mut captures = serde_json::Map::new();
    for (i, group) in groups.iter().enumerate() {
        captures.insert((i + 1).to_string(), json!({"name": group}));
    }
    json!({"match": pattern, "captures": captures})
}

fn comments(documented: bool) -> Vec<Value> {
    let language = if documented { "autobatch" } else { "stan" };
    let mut patterns = Vec::new();
    if documented {
        patterns.push(json!({"name": "comment.line.documentation.autobatch", "match": "///(?!/).*$"}));
    }
    patterns.push(json!({"name": format!("comment.line.double-slash.{language}"), "match": "//.*$"}));
    patterns.push(json!({"name": format!("comment.block.{language}"), "begin": "/\\*", "end": "\\*/"}));
    patterns
}

/// A text, which its line ends at the latest.
fn string(language: &str, inner: &[Value]) -> Value {
    json!({
        "name": format!("string.quoted.double.{language}"),
        "begin": "\"",
        "end": "(\")|($)",
        "endCaptures": {"2": {"name": format!("invalid.illegal.unterminated.{language}")}},
        "patterns": inner,
    })
}

fn numbers(language: &str, pattern: &str) -> [Value; 2] {
    let behind = "(?<![A-Za-z0-9_])";
    [
        // Digits with letters are no number.
        json!({
            "name": format!("invalid.illegal.number.{language}"),
            "match": format!("{behind}(?>{pattern})(?=[A-Za-z_])[A-Za-z0-9_]+"),
        }),
        json!({"name": format!("constant.numeric.{language}"), "match": format!("{behind}{pattern}")}),
    ]
}

/// The words of a language, by their scopes, in the order in which these come.
fn words(language: &str, words: &[String], scope: impl Fn(&str) -> &'static str) -> Vec<Value> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for word in words {
        match groups.iter_mut().find(|(known, _)| *known == scope(word)) {
            Some((_, group)) => group.push(word),
            None => groups.push((scope(word), vec![word])),
        }
    }
    let pattern = |(scope, group): (&str, Vec<&str>)| json!({"name": format!("{scope}.{language}"), "match": alternatives(group)});
    groups.into_iter().map(pattern).collect()
}

fn alternatives<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    format!("\\b(?:{})\\b", words.into_iter().collect::<Vec<_>>().join("|"))
}

/// The signs of a language, the longest first; brackets, commas and the like are none.
fn signs(language: &str, tokens: impl Iterator<Item = String>) -> Value {
    let is_sign = |sign: &String| {
        !sign.is_empty()
            && !sign.contains(|c: char| c.is_alphanumeric() || c == ' ' || c == '_')
            && !matches!(&sign[..], "(" | ")" | "[" | "]" | "{" | "}" | "," | ";")
    };
    let mut signs: Vec<String> = tokens.map(|token| token.trim_matches('`').to_owned()).filter(is_sign).collect();
    signs.sort();
    signs.dedup();
    signs.sort_by_key(|sign| std::cmp::Reverse(sign.len()));
    let escaped = |sign: &String| sign.chars().flat_map(|c| ['\\', c]).collect::<String>();
    let pattern = signs.iter().map(escaped).collect::<Vec<_>>().join("|");
    json!({"name": format!("keyword.operator.{language}"), "match": pattern})
}
