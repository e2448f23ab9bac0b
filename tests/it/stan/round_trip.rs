//! What `translate` writes is a program with its data that runs by itself: chains of it are those of the Stan program, bit for
//! bit.

use std::path::{Path, PathBuf};

use autobatch::program::io::read_npz;
use serde_json::Value;

use super::{read, root};
use crate::project::cli::{Folder, autobatch, error, output};
use crate::tools::effort;

/// The draws of a short run, whatever their names are.
fn draws(folder: &Folder, arguments: &[&str]) -> Result<Vec<Vec<u64>>, String> {
    let file = folder.0.join("draws.npz");
    let run = ["--chains", "2", "--warmup", "2", "--draws", "3", "--seed", "7", "--max-depth", "3", "--output"];
    let path = file.display().to_string();
    let run = autobatch(&[&["sample"], arguments, &run, &[&path]].concat()).output().expect("it starts");
    if !run.status.success() {
        return Err(String::from_utf8_lossy(&run.stderr).lines().take(3).collect::<Vec<_>>().join("; "));
    }
    let arrays = read_npz(&file).expect("the draws are there");
    std::fs::remove_file(&file).expect("it can be removed");
    // The last array may be one of a statistic that has a parameter's name: all are compared.
    let bits = |array: &autobatch::Array| match array.as_real() {
        Some(reals) => reals.iter().map(|x| x.to_bits()).collect(),
        None => array.as_int().map(|ints| ints.iter().map(|i| *i as u64).collect()).unwrap_or_default(),
    };
    Ok(arrays.values().map(bits).collect())
}

/// The data of a program, as arguments.
fn data_of(program: &Path) -> Vec<String> {
    let data = program.with_extension("json");
    if data.exists() { vec!["--data".to_owned(), data.display().to_string()] } else { vec![] }
}

fn problem(folder: &Folder, program: &Path) -> Option<String> {
    let name = program.display().to_string();
    let data = data_of(program);
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    let text = folder.0.join("m.ab").display().to_string();
    let made = output(&[&["translate", &name], &data[..], &["--output", &text]].concat());
    if !made.status.success() {
        return Some(format!("{name}: {}", String::from_utf8_lossy(&made.stderr)));
    }
    let tables = folder.0.join("m.json").display().to_string();
    let stan = draws(folder, &[&[name.as_str()], &data[..]].concat());
    let ours = draws(folder, &[&text, "--data", &tables]);
    match (stan, ours) {
        (Ok(stan), Ok(ours)) if stan == ours => None,
        (Ok(_), Ok(_)) => Some(format!("{name}: other draws")),
        // What has no start as a Stan program has none here.
        (Err(_), Err(_)) => None,
        (Ok(_), Err(why)) => Some(format!("{name}: the translation fails: {why}")),
        (Err(why), Ok(_)) => Some(format!("{name}: only the Stan program fails: {why}")),
    }
}

/// Each one in so many of the programs that Stan's values are there of, or all.
fn programs(one_in: usize) -> Vec<PathBuf> {
    let mut programs: Vec<PathBuf> = std::fs::read_dir(root().join("tests/filetests/stan/run"))
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "stan") && !read(path).contains("// unsupported: "))
        .collect();
    programs.sort();
    programs
        .into_iter()
        .enumerate()
        .filter(|(number, _)| effort::tried(*number, one_in))
        .map(|(_, path)| path)
        .collect()
}

/// That no program has a problem, looked for by two threads, each of which has a folder of its own.
fn none_has(programs: &[PathBuf], name: &str, problem: fn(&Folder, &Path) -> Option<String>) {
    let (half, rest) = programs.split_at(programs.len() / 2);
    let run = |part: &[PathBuf], which: &str| -> Vec<String> {
        let folder = Folder::new(&format!("{name}-{which}"));
        part.iter().filter_map(|program| problem(&folder, program)).collect()
    };
    let problems: Vec<String> = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(rest, "b"));
        let mut problems = run(half, "a");
        problems.extend(other.join().expect("it does not panic"));
        problems
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn translations_draw_what_their_stan_programs_draw() {
    none_has(&programs(8), "round-trip", problem);
}

/// What is wrong with the log densities of a translation at the points of the test `stan_values`.
fn other_density(folder: &Folder, program: &Path) -> Option<String> {
    let name = program.display().to_string();
    let data = data_of(program);
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    let [text, tables] = ["d.ab", "d.json"].map(|file| folder.0.join(file).display().to_string());
    let made = output(&[&["translate", &name], &data[..], &["--output", &text]].concat());
    assert!(made.status.success(), "{name}: {}", String::from_utf8_lossy(&made.stderr));
    let recorded: Value = serde_json::from_str(&read(&program.with_extension("expected.json"))).expect("it is JSON");
    let points = recorded["points"].as_array().expect("points").iter().map(|point| point["q"].clone());
    let points = Value::Array(points.collect()).to_string();
    let values = |arguments: &[&str]| {
        let how = ["--points", &points, "--format", "json"];
        let found = output(&[&["log-prob"], arguments, &how].concat());
        let text = String::from_utf8_lossy(&found.stdout).into_owned();
        let values: Vec<Value> = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}: {text}"));
        // A point that is rejected is so in other words.
        let known = |value: Value| if value["rejected"].is_null() { value } else { Value::Null };
        values.into_iter().map(known).collect::<Vec<_>>()
    };
    let (stan, ours) = (values(&[&[name.as_str()], &data[..]].concat()), values(&[&text, "--data", &tables]));
    (stan != ours).then(|| format!("{name}: {stan:?}, translated {ours:?}"))
}

#[test]
fn translations_have_the_densities_of_their_stan_programs() {
    none_has(&programs(4), "density", other_density);
}

#[test]
fn small_tables_stand_in_the_text_and_others_are_named() {
    let folder = Folder::new("standing");
    let small = "parameters { matrix[2, 3] M; } model { to_vector(M) ~ normal(0, 1); }";
    let small = output(&["translate", &folder.file("small.stan", small)]);
    let text = String::from_utf8_lossy(&small.stdout).into_owned();
    assert!(text.contains("let data0: int[6] = [0, 1, 0, 1, 0, 1];") && !text.contains("shared"), "{text}");
    assert!(small.stderr.is_empty());
    let large = "parameters { matrix[20, 3] M; } model { to_vector(M) ~ normal(0, 1); }";
    let large = output(&["translate", &folder.file("large.stan", large)]);
    let said = String::from_utf8_lossy(&large.stderr).into_owned();
    assert!(said.contains("the data do not have `data0`") && said.contains("--output FILE.ab"), "{said}");
}

#[test]
fn a_translation_is_not_written_over_what_is_read() {
    let folder = Folder::new("translate-over");
    let program = folder.file("m.stan", "data { real y; } parameters { real mu; } model { y ~ normal(mu, 1); }");
    let data = folder.file("m.json", "{\"y\": 1.5}");
    let to = folder.0.join("m.ab").display().to_string();
    let said = error(&["translate", &program, "--data", &data, "--output", &to]);
    assert!(said.contains("m.json is read, and would be written over: say another --output"), "{said}");
    assert_eq!(read(Path::new(&data)), "{\"y\": 1.5}");
}
