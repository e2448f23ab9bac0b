//! Every request, at many places of programs that are whole and that are cut off: an answer, and never a fault.

use std::path::Path;

use serde_json::{Value, json};

use super::client::Client;

const METHODS: [&str; 10] = [
    "hover",
    "definition",
    "references",
    "documentHighlight",
    "prepareRename",
    "rename",
    "completion",
    "signatureHelp",
    "documentSymbol",
    "formatting",
];

fn ask_everywhere(client: &mut Client, uri: &str, text: &str, places: usize) {
    let lines: Vec<&str> = text.lines().collect();
    for k in 0..places {
        let line = (k * 7919) % lines.len().max(1);
        let length = lines.get(line).map_or(0, |line| line.encode_utf16().count());
        let position = json!({"line": line, "character": (k * 31) % (length + 2)});
        let method = METHODS[k % METHODS.len()];
        let params = json!({
            "textDocument": {"uri": uri}, "position": position, "newName": "renamed",
            "context": {"includeDeclaration": true},
        });
        let answer = client.request(&format!("textDocument/{method}"), params);
        let code = &answer["error"]["code"];
        assert!(code.is_null() || *code == -32803, "{method} at {position} of {uri}: {answer}\n{text}");
    }
}

#[test]
fn every_request_is_answered_wherever_it_is_made() {
    let mut client = Client::in_memory();
    client.initialize(json!({}));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let programs =
        ["nuts/models/eight_schools.ab", "examples/fib.ab", "nuts/protocol.ab", "nuts/models/eight_schools.stan"];
    let mut version = 0;
    for name in programs {
        let text = std::fs::read_to_string(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let uri = format!("file://{}", root.join(name).display());
        let document = json!({"uri": uri, "languageId": "autobatch", "version": version, "text": text});
        client.notify("textDocument/didOpen", json!({"textDocument": document}));
        ask_everywhere(&mut client, &uri, &text, 50);
        for cut in 1..6 {
            version += 1;
            let mut end = text.len() * cut / 6;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let params = json!({
                "textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text[..end]}],
            });
            client.notify("textDocument/didChange", params);
            ask_everywhere(&mut client, &uri, &text[..end], 20);
        }
        client.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}}));
    }
    assert_eq!(client.request("shutdown", Value::Null)["result"], Value::Null);
}
