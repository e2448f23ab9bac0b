//! Addresses of documents: `file:` addresses and the paths that they name.

use std::path::Path;

/// The path of a `file:` address; `None` for another one.
pub(super) fn path_of(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    // `file://localhost/…` is `file:///…`.
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let path = decoded(rest)?;
    let drive = |path: &str| {
        let bytes = path.as_bytes();
        bytes.len() > 2 && bytes[0] == b'/' && bytes[1].is_ascii_alphabetic() && bytes[2] == b':'
    };
    if drive(&path) {
        return Some(path[1..].to_owned());
    }
    // A server's name stands before the path: `file://server/share`.
    if path.starts_with('/') { Some(path) } else { Some(format!("//{path}")) }
}

/// The text that percent signs stand for; `None` where they stand for none.
fn decoded(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        if bytes[at] == b'%' {
            let digits = text.get(at + 1..at + 3)?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).ok()
}

/// The address of a path, which is made absolute.
pub(super) fn of_path(path: &str) -> String {
    let path = std::path::absolute(Path::new(path)).map_or_else(|_| path.to_owned(), |path| path.display().to_string());
    let path = if cfg!(windows) { path.replace('\\', "/") } else { path };
    let mut out = String::from("file://");
    if !path.starts_with('/') {
        out.push('/');
    }
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z'
            | b'a'..=b'z'
            | b'0'..=b'9'
            | b'/'
            | b'-'
            | b'.'
            | b'_'
            | b'~'
            | b'!'
            | b'$'
            | b'&'
            | b'\''
            | b'('
            | b')'
            | b'*'
            | b'+'
            | b','
            | b';'
            | b'='
            | b'@' => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_back() {
        for path in ["/tmp/a b.ab", "/tmp/\u{e9}%20#?.ab", "/x"] {
            assert_eq!(path_of(&of_path(path)).as_deref(), Some(path));
        }
        assert_eq!(of_path("/tmp/a b.ab"), "file:///tmp/a%20b.ab");
    }

    #[test]
    fn addresses_are_read_as_clients_write_them() {
        assert_eq!(path_of("file:///c%3A/x.ab").as_deref(), Some("c:/x.ab"));
        assert_eq!(path_of("file://localhost/x.ab").as_deref(), Some("/x.ab"));
        assert_eq!(path_of("file://server/x.ab").as_deref(), Some("//server/x.ab"));
        assert_eq!(path_of("untitled:Untitled-1"), None);
        assert_eq!(path_of("file:///a%zz"), None);
        assert_eq!(path_of("file:///a%ff"), None);
    }
}
