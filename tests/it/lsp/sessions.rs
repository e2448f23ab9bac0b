//! Sessions with the language server, `tests/filetests/lsp/*.session`: files, what an editor does, and what it is answered.
//!
//! ```text
//! === main.ab                      a file, which the editor opens; `=== main.ab (closed)` is only there
//! fn f(x: real) -> real { /*1*/x }
//! --- hover main.ab 1              a step at the mark `/*1*/`: at the byte behind it, or with `1+4` four bytes on
//! fn f(...)                        what is answered, as text
//! ```
//!
//! Steps: `hover`, `definition`, `references`, `highlight`, `rename FILE MARK NAME`, `complete FILE MARK WORDS` (the items
//! that are named, or the first), `signature`, `format FILE`, `hints FILE`, `symbols FILE`, `diagnostics FILE`,
//! `change FILE: OLD => NEW`, `write FILE: OLD => NEW` (on the disk alone), `open`, `close`, `raw JSON`. Sessions of the
//! name `..._folder` have the folder open, and take changes of versions. `INSTA_UPDATE=always` writes down what is answered: look at it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::client::Client;
use crate::project::cli::Folder;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/lsp")
}

struct Session {
    client: Client,
    folder: Folder,
    /// The texts as they are in the editor, or on the disk.
    texts: BTreeMap<String, String>,
    /// Grows with everything that is done.
    version: i64,
    /// What was done since all was told: a document that has the version now, or none.
    unsettled: Option<Option<String>>,
}

impl Session {
    fn uri(&self, name: &str) -> String {
        format!("file://{}/{}", self.folder.0.display(), name.replace(' ', "%20"))
    }

    /// An address as the file of the session.
    fn name(&self, uri: &Value) -> String {
        let uri = uri.as_str().expect("an address");
        let own = uri.strip_prefix(&format!("file://{}/", self.folder.0.display()));
        own.map_or_else(|| uri.to_owned(), |name| name.replace("%20", " "))
    }

    fn position(&self, name: &str, mark: &str) -> Value {
        let text = &self.texts[name];
        let (mark, more) = mark.split_once('+').unwrap_or((mark, "0"));
        let mark = format!("/*{mark}*/");
        let at = text.find(&mark).unwrap_or_else(|| panic!("{name} has no mark {mark}")) + mark.len();
        let at = at + more.parse::<usize>().expect("a number of bytes");
        let line = text[..at].matches('\n').count();
        let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
        json!({"line": line, "character": text[start..at].encode_utf16().count()})
    }

    fn at(&self, name: &str, mark: &str) -> Value {
        json!({"textDocument": {"uri": self.uri(name)}, "position": self.position(name, mark)})
    }

    fn open(&mut self, name: &str) {
        let id = if name.ends_with(".ab") { "autobatch" } else { "stan" };
        self.version += 1;
        self.unsettled = Some(Some(name.to_owned()));
        let document =
            json!({"uri": self.uri(name), "languageId": id, "version": self.version, "text": self.texts[name]});
        self.client.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    fn change(&mut self, name: &str, old: &str, new: &str) {
        let text = &self.texts[name];
        assert!(text.contains(old), "{name} has no `{old}`");
        let text = text.replacen(old, new, 1);
        self.version += 1;
        self.unsettled = Some(Some(name.to_owned()));
        let document = json!({"uri": self.uri(name), "version": self.version});
        self.client
            .notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": [{"text": text}]}));
        self.texts.insert(name.to_owned(), text);
    }

    /// Waits until all that follows from what was done last was told.
    fn settle(&mut self) {
        let Some(last) = self.unsettled.take() else { return };
        let told = |message: &Value| message["method"] == "textDocument/publishDiagnostics";
        let version = self.version;
        let answer = self.client.wait("what is found", |message| {
            told(message) && last.as_ref().is_none_or(|_| message["params"]["version"] == version)
        });
        self.client.notifications.push(answer);
        // What is told at once with it comes before the answer to what is asked then.
        self.client.request("textDocument/hover", json!({}));
    }

    /// What was told last of a file.
    fn diagnostics(&mut self, name: &str) -> String {
        self.settle();
        let uri = self.uri(name);
        let of_file =
            |message: &Value| message["params"]["uri"] == uri && message["params"].get("diagnostics").is_some();
        let all = self.client.notifications.iter().rev().find(|message| of_file(message));
        let message = all.unwrap_or_else(|| panic!("nothing is told of {name}")).clone();
        let mut out = String::new();
        for found in message["params"]["diagnostics"].as_array().expect("an array") {
            let severity = if found["severity"] == 1 { "error" } else { "warning" };
            let lines = found["message"].as_str().expect("a text").replace('\n', "\n    ");
            let code = found["code"].as_str().expect("a code");
            writeln!(out, "{} {severity} {code}: {lines}", range(&found["range"])).expect("a text");
            for related in found["relatedInformation"].as_array().into_iter().flatten() {
                let message = related["message"].as_str().expect("a text");
                writeln!(out, "    {}: {message}", self.location(&related["location"])).expect("a text");
            }
        }
        if out.is_empty() { "nothing\n".to_owned() } else { self.plain(&out) }
    }

    fn location(&self, location: &Value) -> String {
        format!("{}:{}", self.name(&location["uri"]), range(&location["range"]))
    }

    fn step(&mut self, step: &str) -> String {
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        let words: Vec<&str> = rest.split_whitespace().collect();
        let document = |session: &Self, name: &str| json!({"textDocument": {"uri": session.uri(name)}});
        let ask = |session: &mut Self, method: &str, params: Value| {
            let answer = session.client.request(&format!("textDocument/{method}"), params);
            match answer.get("error") {
                Some(error) => {
                    Err(format!("refused {}: {}\n", error["code"], error["message"].as_str().expect("a text")))
                }
                None => Ok(answer["result"].clone()),
            }
        };
        let answer = match (verb, &words[..]) {
            ("raw", _) => {
                self.client.send_text(rest);
                let id = serde_json::from_str::<Value>(rest).map_or(Value::Null, |message| message["id"].clone());
                Ok(self.client.wait("an answer", |message| message.get("id") == Some(&id)))
            }
            ("open", [name]) => {
                self.open(name);
                return String::new();
            }
            ("close", [name]) => {
                let params = document(self, name);
                self.settle();
                self.client.notifications.clear();
                self.unsettled = Some(None);
                self.client.notify("textDocument/didClose", params);
                return String::new();
            }
            ("change" | "write", _) => {
                let (name, change) = rest.split_once(": ").expect("a file and a change");
                let (old, new) = change.split_once(" =>").expect("old and new");
                let plain = |text: &str| text.replace("\\n", "\n").replace("\\r", "\r");
                let (old, new) = (plain(old), plain(new.trim_start()));
                if verb == "change" {
                    self.change(name, &old, &new);
                } else {
                    let text = self.texts[name].replacen(&old, &new, 1);
                    std::fs::write(self.folder.0.join(name), text).expect("a file of the session");
                }
                return String::new();
            }
            ("diagnostics", _) => return self.diagnostics(rest),
            ("hover" | "definition" | "references" | "highlight" | "signature" | "prepare", [name, mark]) => {
                let mut params = self.at(name, mark);
                params["context"] = json!({"includeDeclaration": true});
                let method = match verb {
                    "highlight" => "documentHighlight",
                    "signature" => "signatureHelp",
                    "prepare" => "prepareRename",
                    verb => verb,
                };
                ask(self, method, params)
            }
            ("rename", [name, mark, new]) => {
                let mut params = self.at(name, mark);
                params["newName"] = json!(new);
                ask(self, "rename", params)
            }
            ("complete", [name, mark, ..]) => {
                let params = self.at(name, mark);
                ask(self, "completion", params)
            }
            ("format", [name]) => {
                let mut params = document(self, name);
                params["options"] = json!({"tabSize": 4, "insertSpaces": true});
                ask(self, "formatting", params)
            }
            ("symbols", [name]) => {
                let params = document(self, name);
                ask(self, "documentSymbol", params)
            }
            ("hints", [name]) => {
                let mut params = document(self, name);
                params["range"] = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9999, "character": 0}});
                ask(self, "inlayHint", params)
            }
            _ => panic!("there is no step `{step}`"),
        };
        match answer {
            Ok(result) => self.shown(verb, &words, &result),
            Err(refused) => self.plain(&refused),
        }
    }

    fn shown(&self, verb: &str, words: &[&str], result: &Value) -> String {
        let mut out = String::new();
        let all = |result: &Value| result.as_array().cloned().unwrap_or_default();
        match verb {
            "raw" => writeln!(out, "{}", self.plain(&result.to_string())).expect("a text"),
            _ if result.is_null() => return "nothing\n".to_owned(),
            "hover" => {
                let text = result["contents"]["value"].as_str().expect("a text");
                writeln!(out, "{}\n{}", range(&result["range"]), self.plain(text)).expect("a text");
            }
            "definition" => writeln!(out, "{}", self.location(result)).expect("a text"),
            "references" => all(result).iter().for_each(|l| writeln!(out, "{}", self.location(l)).expect("a text")),
            "highlight" => all(result).iter().for_each(|l| writeln!(out, "{}", range(&l["range"])).expect("a text")),
            "prepare" => writeln!(out, "{} {}", range(&result["range"]), result["placeholder"]).expect("a text"),
            "rename" => {
                let plain = result["changes"].as_object().into_iter().flatten();
                let plain = plain.map(|(uri, edits)| (json!(uri), String::new(), edits.clone()));
                let versioned = all(&result["documentChanges"]).into_iter().map(|change| {
                    let document = &change["textDocument"];
                    let version = document["version"].as_i64().map_or_else(String::new, |v| format!(" (version {v})"));
                    (document["uri"].clone(), version, change["edits"].clone())
                });
                for (uri, version, edits) in plain.chain(versioned) {
                    for edit in all(&edits) {
                        let place = format!("{}{version}:{}", self.name(&uri), range(&edit["range"]));
                        writeln!(out, "{place} {}", edit["newText"].as_str().expect("a text")).expect("a text");
                    }
                }
            }
            "format" => {
                for edit in all(result) {
                    let text = edit["newText"].as_str().expect("a text");
                    write!(out, "{}\n{}", range(&edit["range"]), text.replace('\r', "\\r")).expect("a text");
                }
            }
            "complete" => {
                let items = all(&result["items"]);
                let wanted = &words[2..];
                let is_wanted = |item: &&Value| wanted.is_empty() || wanted.iter().any(|word| item["label"] == *word);
                let found: Vec<&Value> = items.iter().filter(is_wanted).collect();
                for item in found.iter().take(12) {
                    let detail = item["detail"].as_str().unwrap_or_default();
                    writeln!(out, "{} ({}) {detail}", item["label"].as_str().expect("a text"), item["kind"])
                        .expect("a text");
                }
                if found.len() > 12 {
                    writeln!(out, "and more").expect("a text");
                }
            }
            "signature" => {
                let at = |key: &str| usize::try_from(result[key].as_u64().expect("a number")).expect("a number");
                for (i, signature) in all(&result["signatures"]).iter().enumerate() {
                    let active = if i == at("activeSignature") { ">" } else { " " };
                    writeln!(out, "{active} {}", signature["label"].as_str().expect("a text")).expect("a text");
                }
                writeln!(out, "argument {}", at("activeParameter")).expect("a text");
            }
            "hints" => {
                for hint in all(result) {
                    let at = &hint["position"];
                    let (line, column) =
                        (at["line"].as_u64().expect("a line"), at["character"].as_u64().expect("a column"));
                    writeln!(out, "{}:{}{}", line + 1, column + 1, hint["label"].as_str().expect("a text"))
                        .expect("a text");
                }
            }
            _ => symbols(result, 0, &mut out),
        }
        if out.is_empty() { "nothing\n".to_owned() } else { out }
    }

    /// The text without the folder, which is another one in each run.
    fn plain(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.folder.0.display()), "")
    }
}

/// Lines and columns from 1, as people count them.
fn range(range: &Value) -> String {
    let of = |end: &str, key: &str| range[end][key].as_u64().expect("a number") + 1;
    let (line, column) = (of("start", "line"), of("start", "character"));
    match of("end", "line") {
        end if end == line => format!("{line}:{column}-{}", of("end", "character")),
        end => format!("{line}:{column}-{end}:{}", of("end", "character")),
    }
}

fn symbols(all: &Value, depth: usize, out: &mut String) {
    for symbol in all.as_array().into_iter().flatten() {
        let name = symbol["name"].as_str().expect("a text");
        let (kind, place) = (&symbol["kind"], range(&symbol["range"]));
        writeln!(out, "{}{name} ({kind}) {place}", "  ".repeat(depth)).expect("a text");
        symbols(&symbol["children"], depth + 1, out);
    }
}

/// Runs a session; gives its file as it should be.
fn run(path: &Path) -> (String, String) {
    let written = std::fs::read_to_string(path).expect("the session can be read");
    let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
    let mut session = Session {
        client: Client::in_memory(),
        folder: Folder::new(&format!("lsp {name}").replace(' ', "-")),
        texts: BTreeMap::new(),
        version: 0,
        unsettled: None,
    };
    let library = session.folder.0.join("library").display().to_string();
    let offered = if name.contains("utf8") { json!(["utf-8"]) } else { json!(["utf-16"]) };
    let opened = name.ends_with("_folder");
    let folder = json!({"uri": format!("file://{}", session.folder.0.display()), "name": "here"});
    session.client.initialize(json!({
        "workspaceFolders": if opened { json!([folder]) } else { json!([]) },
        "initializationOptions": {"libraryFolder": library},
        "capabilities": {
            "general": {"positionEncodings": offered},
            "textDocument": {"hover": {"contentFormat": ["plaintext"]}},
            "workspace": {"workspaceEdit": {"documentChanges": opened}},
        },
    }));
    let mut parts: Vec<(String, String)> = Vec::new();
    for line in written.split_inclusive('\n') {
        if line.starts_with("=== ") || line.starts_with("--- ") {
            parts.push((line.trim_end().to_owned(), String::new()));
        } else {
            parts.last_mut().expect("a session begins with a file").1.push_str(line);
        }
    }
    let files: Vec<(&str, &str)> =
        parts.iter().filter_map(|(head, text)| Some((head.strip_prefix("=== ")?, text.as_str()))).collect();
    for (file, text) in &files {
        let file = file.trim_end_matches(" (closed)");
        let path = session.folder.0.join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, text).expect("a file of the session");
        session.texts.insert(file.to_owned(), (*text).to_owned());
    }
    for (file, _) in files.iter().filter(|(file, _)| !file.ends_with(" (closed)")) {
        session.open(file);
    }
    let mut found = String::new();
    for (head, text) in &parts {
        let _ = writeln!(found, "{head}");
        match head.strip_prefix("--- ") {
            Some(step) => found += &session.step(step),
            None => found += text,
        }
    }
    (written, found)
}

#[test]
fn sessions_go_as_they_are_written_down() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "session"));
    files.sort();
    assert!(!files.is_empty(), "there are sessions");
    let mut wrong = Vec::new();
    for path in files {
        let (written, found) = run(&path);
        if written == found {
            continue;
        }
        if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
            std::fs::write(&path, found).expect("the session can be written");
            continue;
        }
        let line = written.lines().zip(found.lines()).position(|(a, b)| a != b).unwrap_or(written.lines().count());
        let part = |text: &str| text.lines().skip(line.saturating_sub(3)).take(12).collect::<Vec<_>>().join("\n");
        wrong.push(format!("{}:{}\nwritten:\n{}\nfound:\n{}", path.display(), line + 1, part(&written), part(&found)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
