//! `autobatch map`: a function over the rows of files.

use super::cli::{Folder, error, output};

/// `real[n, d]` as a `.npy` file.
fn npy(shape: &str, values: &[f64]) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}");
    header.push_str(&" ".repeat(117 - header.len()));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    values.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
    bytes
}

const MAP_ROWS: [&str; 4] = ["map", "examples/map_rows.ab", "--entry", "norm"];

fn map<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&MAP_ROWS, arguments].concat()
}

#[test]
fn map_applies_a_function_to_every_row_whatever_the_chunks() {
    let folder = Folder::new("map");
    let values: Vec<f64> = (0..10).map(f64::from).collect();
    let rows = folder.file("rows.npy", npy("5, 2", &values));
    let input = format!("x=@{rows}");
    let wanted: Vec<f64> = values.chunks(2).map(|r| (r[0] * r[0] + r[1] * r[1]).sqrt()).collect();
    for at_once in ["0", "1", "2", "5", "100"] {
        let output = output(&map(&["--input", &input, "--rows-at-once", at_once]));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines: Vec<serde_json::Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let found: Vec<f64> = lines.iter().map(|l| l["result"].as_f64().unwrap()).collect();
        assert_eq!(found, wanted, "{at_once} rows at once");
        assert_eq!(lines[4]["row"], 4);
    }
    // A file of results: one array as .npy, with the last chunk shorter; several kinds are read back by run.
    let file = folder.0.join("norms.npy").display().to_string();
    assert!(output(&map(&["--input", &input, "--rows-at-once", "2", "--output", &file])).status.success());
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.windows(4).any(|w| w == b"(5,)"));
    let last = bytes[bytes.len() - 8..].try_into().unwrap();
    assert_eq!(f64::from_le_bytes(last), wanted[4]);
    for name in ["norms.npz", "norms.json"] {
        let file = folder.0.join(name).display().to_string();
        assert!(output(&map(&["--input", &input, "--rows-at-once", "2", "--output", &file])).status.success());
        let again = output(&["map", "examples/map_rows.ab", "--entry", "twice", "--input", &format!("result=@{file}")]);
        let text = String::from_utf8(again.stdout).unwrap();
        assert_eq!(text.lines().count(), 5, "{text}");
    }
}

#[test]
fn map_takes_a_part_of_the_rows() {
    let folder = Folder::new("map-part");
    let values: Vec<f64> = (0..9).map(f64::from).collect();
    let file = folder.file("rows.npy", npy("9,", &values));
    let program = folder.file("noise.ab", "pub fn main(x: real) -> real { x + random_uniform() }");
    let json = format!("x={}", serde_json::to_string(&values).unwrap());
    for input in [format!("x=@{file}"), json] {
        let of = |more: &[&str]| {
            let output = output(&[&["map", &program, "--input", &input][..], more].concat());
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let whole = of(&[]);
        let parts = [of(&["--rows", "0..4"]), of(&["--rows", "4..5"]), of(&["--rows", "5..9", "--rows-at-once", "3"])];
        assert_eq!(parts.concat(), whole, "{input}");
        let said = error(&["map", &program, "--input", &input, "--rows", "3..10"]);
        assert!(said.contains("--rows 3..10: there are 9 rows"), "{said}");
    }
}

#[test]
fn map_says_which_row_is_wrong_and_takes_no_rows_too() {
    let folder = Folder::new("map-traps");
    let rows = folder.file("rows.npy", npy("5,", &[4.0, 1.0, -1.0, 9.0, -2.0]));
    let input = format!("x=@{rows}");
    let arguments = ["map", "examples/map_rows.ab", "--entry", "root", "--input", &input, "--rows-at-once", "2"];
    let found = output(&arguments);
    let (text, said) = (String::from_utf8(found.stdout).unwrap(), String::from_utf8(found.stderr).unwrap());
    assert_eq!(found.status.code(), Some(1));
    assert!(said.contains("trap: 2 rows stopped: assert failed: no root of -1"), "{said}");
    assert!(said.contains("rows 2, 4"), "{said}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[3], r#"{"row":3,"result":3}"#.replace(":3}", ":3.0}"), "{text}");
    assert!(lines[4].contains(r#""row":4"#) && lines[4].contains("no root of -2"), "{text}");

    let none = folder.file("none.npy", npy("0, 2", &[]));
    let file = folder.0.join("norms.npy").display().to_string();
    let found = output(&map(&["--input", &format!("x=@{none}"), "--output", &file]));
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    assert!(std::fs::read(&file).unwrap().windows(4).any(|w| w == b"(0,)"));
    let found = output(&map(&["--input", &format!("x=@{none}")]));
    assert!(found.status.success() && found.stdout.is_empty());

    assert!(error(&map(&[])).contains("there are no rows"));
    let two = folder.file("two.npy", npy("2, 2", &[0.0; 4]));
    let said = error(&[
        "map",
        "examples/map_rows.ab",
        "--entry",
        "distance",
        "--input",
        &format!("x=@{two}"),
        "--input",
        "y=[[1,2],[3,4],[5,6]]",
    ]);
    assert!(said.contains("disagree on the number of rows"), "{said}");
    let said = error(&map(&["--input", &input, "--output", "/nowhere/at/all.npy"]));
    assert!(said.contains("there is no folder"), "{said}");
}
