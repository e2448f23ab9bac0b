//! The table is stanc's, signature by signature: `tests/data/stan_signatures.txt` has their number and hash by function.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::library;
use crate::stan::check::types::spelled;

/// A signature as `stanc --dump-stan-math-signatures` prints it, without the name.
fn row(function: &crate::stan::check::types::FunctionType) -> String {
    let params: Vec<String> = function.params.iter().map(|param| param.ty.to_string()).collect();
    format!("({}) => {}", params.join(", "), spelled(function.result.as_ref().expect("functions of the library give")))
}

fn hash(rows: &[String]) -> String {
    let mut hasher = Sha256::new();
    for row in rows {
        hasher.update(row.as_bytes());
        hasher.update(b"\n");
    }
    hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_table_is_that_of_stanc() {
    let recorded = include_str!("../../../../tests/data/stan_signatures.txt");
    let mut wanted: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for line in recorded.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, count, hash] = words[..] else { panic!("`{line}` is no record") };
        wanted.insert(name, (count.parse().unwrap(), hash));
    }
    let mut wrong = Vec::new();
    let mut signatures = 0;
    for (name, (count, digest)) in &wanted {
        let mut rows: Vec<String> = library().all(name).iter().map(row).collect();
        rows.sort();
        signatures += rows.len();
        if (rows.len(), hash(&rows).as_str()) != (*count, *digest) {
            wrong.push(format!("{name}: {} of {count}", rows.len()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let extra: Vec<&str> = library().names().filter(|name| !wanted.contains_key(name)).collect();
    assert!(extra.is_empty(), "stanc has no {extra:?}");
    assert_eq!((wanted.len(), signatures), (563, 23_984));
}
