//! Stores of Zarr that are read: those of others, and what is said of those that cannot be.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use autobatch::store::Coordinate;
use autobatch::store::read::{ZarrGroup, is_store};
use serde_json::{Value, json};

use super::page::Noise;
use crate::project::cli::{Folder, error, output};

/// The store that `tests/scripts/zarr_store.py` writes.
fn of_others(folder: &Folder) -> PathBuf {
    let into = folder.0.join("others.zarr");
    let file = std::fs::File::open("tests/data/zarr_store.zip").expect("the file is there");
    zip::ZipArchive::new(file).expect("an archive").extract(&into).expect("a folder");
    into
}

fn said(arguments: &[&str]) -> (String, String) {
    let done = output(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{arguments:?}: {}", text(&done.stderr));
    (text(&done.stdout), text(&done.stderr))
}

#[test]
fn stores_of_xarray_are_read_bit_for_bit() {
    let folder = Folder::new("store-of-others");
    let path = of_others(&folder);
    assert!(is_store(&path) && !is_store(&folder.0));
    let store = ZarrGroup::open(&path).unwrap();
    assert_eq!(store.names().unwrap(), ["observed_data", "posterior", "sample_stats"]);
    let posterior = store.group("posterior").unwrap().expect("a group");
    let arrays = posterior.arrays().unwrap();
    let mu = arrays["mu"].read().unwrap();
    let wanted: Vec<f64> = (0..24).map(|i| f64::from(i / 12) + f64::from(i % 12) / 100.0).collect();
    assert_eq!((&mu.shape[..], mu.as_real().unwrap()), (&[2, 12][..], &wanted[..]));
    // Chunks that are cut on every axis.
    let theta = arrays["theta"].read().unwrap();
    let of_theta: Vec<f64> = wanted.iter().flat_map(|x| (0..3).map(move |i| x + 10.0 * f64::from(i))).collect();
    assert_eq!((&theta.shape[..], theta.as_real().unwrap()), (&[2, 12, 3][..], &of_theta[..]));
    assert_eq!(arrays["n"].read().unwrap().as_real().unwrap()[13], 101.0);
    let stats = store.group("sample_stats").unwrap().expect("a group").arrays().unwrap();
    assert_eq!(stats["diverging"].read().unwrap().as_real().unwrap(), [0.0; 24], "no chunk is there");
    assert_eq!(stats["energy"].read().unwrap().as_real().unwrap(), wanted);
    assert_eq!(stats["step_size"].read().unwrap().as_real().unwrap(), [0.5; 24]);
    assert!(arrays["school"].read().unwrap_err().to_string().contains("are no numbers"));
    let letters = ["a", "b", "c"].map(str::to_owned).to_vec();
    assert_eq!(arrays["school"].coordinate(), Ok(Some(Coordinate::Texts(letters))));
    assert_eq!(arrays["draw"].coordinate(), Ok(Some(Coordinate::Ints((0..12).collect()))));
    assert_eq!(arrays["theta"].coordinate(), Ok(None));
}

/// Texts as zarr-python writes those of any length: their number, and before each its length.
#[test]
fn texts_of_any_length_are_read_and_broken_ones_cost_the_labels_alone() {
    let folder = Folder::new("store-texts");
    let path = of_others(&folder);
    let school = path.join("posterior/school");
    let metadata = json!({
        "zarr_format": 3, "node_type": "array", "shape": [3], "data_type": "string", "fill_value": "",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "vlen-utf8"}], "attributes": {}, "dimension_names": ["school"],
    });
    std::fs::write(school.join("zarr.json"), metadata.to_string()).unwrap();
    let texts = |all: &[&str]| {
        let each = all.iter().flat_map(|text| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat());
        (all.len() as u32).to_le_bytes().into_iter().chain(each).collect::<Vec<u8>>()
    };
    let write = |chunk: &str, bytes: &[u8]| std::fs::write(school.join("c").join(chunk), bytes).unwrap();
    write("0", &texts(&["Zürich", "St. Gallen"]));
    // A chunk that goes beyond the array.
    write("1", &texts(&["", "none"]));
    let shown = path.display().to_string();
    let (table, notes) = said(&["summary", &shown]);
    let row = |table: &str, name: &str| table.lines().any(|line| line.starts_with(name));
    assert!(
        row(&table, "theta[Zürich] ") && row(&table, "theta[St. Gallen] ") && row(&table, "theta[\"\"] "),
        "{table}"
    );
    assert_eq!(notes, "");
    // Zarr leaves out a chunk in which nothing but the fill value stands; what stands twice names nothing.
    std::fs::remove_file(school.join("c/1")).unwrap();
    assert!(row(&said(&["summary", &shown]).0, "theta[\"\"] "));
    write("0", &texts(&["a", ""]));
    assert!(row(&said(&["summary", &shown]).0, "theta[3] "));
    // What is not to be printed as it is stands in quotes.
    write("0", &texts(&["a,b", "x\n\u{1b}[2J"]));
    let (table, _) = said(&["summary", &shown]);
    assert!(row(&table, "theta[\"a,b\"] ") && row(&table, "theta[\"x\\n\\u{1b}[2J\"] "), "{table}");
    let csv = folder.0.join("t.csv").display().to_string();
    said(&["summary", &shown, "--csv-filename", &csv]);
    let csv = std::fs::read_to_string(csv).unwrap();
    assert!(csv.lines().any(|line| line.starts_with("\"theta[\"\"a,b\"\"]\",")), "{csv}");
    for broken in [&[][..], &[9, 0, 0, 0], &[1, 0, 0, 0, 9, 0, 0, 0, 65], &[1, 0, 0, 0, 1, 0, 0, 0, 255], &[255; 12]] {
        write("0", broken);
        let (table, notes) = said(&["summary", &shown]);
        assert!(row(&table, "theta[1] ") && notes.contains("what stands along `school` is left out"), "{notes}");
    }
    let mut wide = metadata;
    wide["data_type"] = json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 1_u64 << 63}});
    wide["codecs"] = json!([{"name": "bytes"}, {"name": "gzip"}]);
    std::fs::write(school.join("zarr.json"), wide.to_string()).unwrap();
    assert!(said(&["summary", &shown]).1.contains("what stands along `school` is left out"));
}

#[test]
fn a_store_is_summarised_diagnosed_and_shown() {
    let folder = Folder::new("store-commands");
    let path = of_others(&folder).display().to_string();
    let (table, notes) = said(&["summary", &path]);
    let row = |name: &str| {
        let line = table.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.unwrap_or_else(|| panic!("{name}: {table}")).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        (&row("mu")[1], &row("theta[c]")[1], &row("divergent__")[1]),
        (&"0.555".into(), &"20.55".into(), &"0".into())
    );
    assert!(table.contains("warmup=50") && notes.is_empty(), "{table}{notes}");
    let (checks, _) = said(&["diagnose", &path]);
    // No draw but the last has a deep tree, and the store tells that this is the limit.
    assert!(checks.contains("LOOK  tree depth: 1 of 24 transitions reached the largest tree depth, 3"), "{checks}");
    let page = folder.0.join("p.html").display().to_string();
    said(&["report", &path, "-o", &page, "--observed-data"]);
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.contains("<dd>other 1.2</dd>") && text.contains("28.00, 8.000, -3.000"), "written by, and observed");
    assert!(text.contains("<th scope=\"row\">7</th>"), "the numbers of chains");
    said(&["report", &path, "-o", &page]);
    assert!(
        !std::fs::read_to_string(&page).unwrap().contains("Observed data"),
        "observed data are told only where asked for"
    );
    assert!(error(&["summary", &path, &path]).contains("a store has all chains"));
}

/// A store without compression, of `mu` and `lp` with chunks of one chain and four draws; those of a chain that are not there
/// are not written.
fn own(folder: &Folder, name: &str, status: &str, made: &[usize]) -> PathBuf {
    let root = folder.0.join(name);
    let (draws, chunk) = (12, 4);
    let node = |path: &Path, value: Value| {
        std::fs::create_dir_all(path).unwrap();
        std::fs::write(path.join("zarr.json"), value.to_string()).unwrap();
    };
    let group = |attributes: Value| json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
    node(&root, group(json!({"inference_library": "autobatch", "status": status, "seed": 4})));
    for (of, name) in [("posterior", "mu"), ("sample_stats", "lp")] {
        node(&root.join(of), group(json!({})));
        let path = root.join(of).join(name);
        node(
            &path,
            array(&[made.len(), draws], &[1, chunk], json!([{"name": "bytes", "configuration": {"endian": "little"}}])),
        );
        for (chain, made) in made.iter().enumerate() {
            for first in (0..*made).step_by(chunk) {
                let at = |draw: usize| if draw < *made { (chain * 100 + draw) as f64 } else { f64::NAN };
                let bytes: Vec<u8> = (first..first + chunk).flat_map(|draw| at(draw).to_le_bytes()).collect();
                let folder = path.join("c").join(chain.to_string());
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(folder.join((first / chunk).to_string()), bytes).unwrap();
            }
        }
    }
    root
}

fn array(shape: &[usize], chunk: &[usize], codecs: Value) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "float64", "fill_value": "NaN",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": codecs, "attributes": {}, "dimension_names": ["chain", "draw"],
    })
}

#[test]
fn a_run_that_goes_on_is_told_as_such_and_counts_whole_draws() {
    let folder = Folder::new("store-running");
    let path = own(&folder, "a.zarr", "running", &[12, 6, 0]).display().to_string();
    let (table, notes) = said(&["summary", &path]);
    assert!(table.contains("2 chains: each with 6 draws") && !table.contains("NaN"), "{table}");
    assert!(notes.contains("1 of 3 chains have fewer than 6 draws, and are left out"), "{notes}");
    assert!(notes.contains("the run goes on, or ended without a word: this is of the first 6 draws"), "{notes}");
    // 0 to 5, and 100 to 105.
    assert!(table.lines().any(|line| line.starts_with("mu") && line.contains("52.5")), "{table}");
    let (_, notes) = said(&["diagnose", &path]);
    assert!(notes.contains("the run goes on"), "{notes}");
    let page = folder.0.join("p.html").display().to_string();
    said(&["report", &path, "-o", &page]);
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(
        text.contains("Not the whole run:") && text.contains("<dd>autobatch</dd>"),
        "{}",
        &text[text.len() - 900..]
    );
    let path = own(&folder, "b.zarr", "interrupted", &[12, 9]).display().to_string();
    assert!(said(&["summary", &path]).1.contains("stopped before its end: this is of 9 draws"));
    let path = own(&folder, "c.zarr", "complete", &[12, 12]).display().to_string();
    assert!(said(&["summary", &path]).1.is_empty());
    // A chain that trapped early is no reason to leave out the draws of the others.
    let path = own(&folder, "e.zarr", "complete", &[12, 3, 12, 12]).display().to_string();
    let (table, notes) = said(&["summary", &path]);
    assert!(
        table.contains("3 chains: each with 12 draws") && notes.contains("1 of 4 chains have fewer than 12"),
        "{table}{notes}"
    );
    let path = own(&folder, "d.zarr", "running", &[0, 0]).display().to_string();
    assert!(error(&["summary", &path]).contains("there are no draws"));
}

#[test]
fn what_cannot_be_read_says_how_to_write_it_otherwise() {
    let folder = Folder::new("store-refused");
    let path = own(&folder, "a.zarr", "complete", &[12, 12]);
    let (store, mu) = (path.display().to_string(), path.join("posterior/mu"));
    let with = |value: Value| {
        std::fs::write(mu.join("zarr.json"), value.to_string()).unwrap();
        error(&["diagnose", &store])
    };
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let codecs = |codecs: Value| array(&[2, 12], &[1, 4], codecs);
    let mut old = codecs(json!([bytes]));
    old["zarr_format"] = json!(2);
    let changed = |key: &str, value: Value| {
        let mut of = codecs(json!([bytes]));
        of[key] = value;
        of
    };
    let cases = [
        (codecs(json!([{"name": "sharding_indexed"}])), "it has shards: the codecs that are read are"),
        (codecs(json!([bytes, {"name": "blosc"}])), "the codec `blosc` is not read"),
        (codecs(json!([{"name": "transpose"}, bytes])), "the codec `transpose` is not read"),
        (codecs(json!([])), "there are no codecs"),
        (codecs(json!([bytes, {"name": "zstd"}])), "c/0/0: the chunk is broken"),
        (codecs(json!([bytes, {"name": "gzip"}])), "c/0/0: the chunk is broken"),
        (array(&[2, 12], &[2, 12], json!([bytes])), "the chunk is broken: 32 bytes, where it has 192"),
        (array(&[2, 12], &[2], json!([bytes])), "the shape of chunks does not fit"),
        (array(&[2, 12], &[0, 4], json!([bytes])), "the shape of chunks does not fit"),
        (array(&[2, usize::MAX / 2], &[1, 4], json!([bytes])), "it does not fit in memory"),
        (array(&[3, 12], &[1, 4], json!([bytes])), "arrays are of 3 chains and of 2"),
        (old, "the format is not Zarr v3: write it as Zarr v3"),
        (
            changed("dimension_names", json!(["draw", "chain"])),
            "has the axes draw × chain, where `chain` and `draw` must",
        ),
        (changed("dimension_names", Value::Null), "has no dimension_names"),
        (changed("fill_value", json!("many")), "the fill value is none of its type"),
        (changed("chunk_grid", json!({"name": "rectilinear"})), "the grid of chunks is not regular"),
        (changed("shape", json!([-1, 2])), "zarr.json has no shape"),
        (json!([]), "no JSON object"),
    ];
    for (metadata, expected) in cases {
        let said = with(metadata.clone());
        assert!(said.contains(expected) && said.contains("a.zarr"), "{metadata}: {said}");
    }
    std::fs::write(mu.join("zarr.json"), "{").unwrap();
    assert!(error(&["report", &store, "-o", "/tmp/never.html"]).contains("no JSON"));
    std::fs::remove_dir_all(path.join("posterior")).unwrap();
    assert!(
        error(&["summary", &store]).contains("there is no group `posterior`, as ArviZ has it: there is sample_stats")
    );
    let two = folder.0.join("two.zarr");
    std::fs::create_dir_all(&two).unwrap();
    assert!(error(&["summary", &two.display().to_string()]).contains("there is no zarr.json"));
    std::fs::write(two.join(".zgroup"), "{}").unwrap();
    assert!(error(&["summary", &two.display().to_string()]).contains("this is a Zarr v2 store: write it as Zarr v3"));
}

/// Chunks of noise are refused, whatever the codec: nothing panics, and nothing is made up.
#[test]
fn noise_is_no_chunk() {
    let folder = Folder::new("store-noise");
    let path = own(&folder, "a.zarr", "complete", &[12, 12]);
    let mu = path.join("posterior/mu");
    let mut noise = Noise(3);
    for codec in ["zstd", "gzip", "crc32c"] {
        let codecs = json!([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": codec}]);
        std::fs::write(mu.join("zarr.json"), array(&[2, 12], &[1, 4], codecs).to_string()).unwrap();
        for length in [0, 1, 4, 36, 300] {
            // Some begin as what is compressed does.
            let begin: &[u8] = if codec == "zstd" { &[0x28, 0xb5, 0x2f, 0xfd] } else { &[0x1f, 0x8b, 8, 0] };
            for begin in [begin, &[]] {
                let bytes: Vec<u8> = begin.iter().copied().chain((0..length).map(|_| noise.byte())).collect();
                std::fs::write(mu.join("c/0/0"), bytes).unwrap();
                let store = ZarrGroup::open(&path).unwrap().group("posterior").unwrap().expect("a group");
                let said = store.arrays().unwrap()["mu"].read().unwrap_err().to_string();
                assert!(said.contains("the chunk is broken"), "{codec}, {length}: {said}");
            }
        }
    }
}

/// What is compressed reads back, and what is much larger than it should be is not unpacked.
#[test]
fn gzip_is_read_and_what_is_too_large_is_not() {
    let folder = Folder::new("store-gzip");
    let path = own(&folder, "a.zarr", "complete", &[12, 12]);
    let mu = path.join("posterior/mu");
    let codecs = json!([{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "gzip"}]);
    std::fs::write(mu.join("zarr.json"), array(&[2, 12], &[2, 12], codecs).to_string()).unwrap();
    let write = |values: usize| {
        let mut packed = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
        (0..values).for_each(|i| packed.write_all(&(i as f64).to_be_bytes()).unwrap());
        std::fs::write(mu.join("c/0/0"), packed.finish().unwrap()).unwrap();
    };
    let read = || ZarrGroup::open(&path).unwrap().group("posterior").unwrap().unwrap().arrays().unwrap()["mu"].read();
    write(24);
    let wanted: Vec<f64> = (0..24).map(f64::from).collect();
    // The files of the chunks that there were before are none of this grid's.
    assert_eq!(read().unwrap().as_real().unwrap(), wanted);
    write(1 << 20);
    assert!(read().unwrap_err().to_string().contains("the chunk is broken"));
}

/// An archive of a folder, its files below `top`.
fn archive_of(folder: &Path, top: &str, to: &Path) {
    fn add(zip: &mut zip::ZipWriter<std::fs::File>, folder: &Path, top: &str) {
        for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            let name = format!("{top}{}", entry.file_name().expect("a name").to_string_lossy());
            if entry.is_dir() {
                add(zip, &entry, &format!("{name}/"));
            } else {
                zip.start_file(name, zip::write::SimpleFileOptions::default()).expect("a file of an archive");
                zip.write_all(&std::fs::read(&entry).expect("a file")).expect("there is room");
            }
        }
    }
    let mut zip = zip::ZipWriter::new(std::fs::File::create(to).expect("a file"));
    add(&mut zip, folder, top);
    zip.finish().expect("an archive");
}

#[test]
fn a_store_in_an_archive_is_read_as_its_folder_is() {
    let folder = Folder::new("store-archive");
    let place = |name: &str| folder.0.join(name);
    let shown = |name: &str| place(name).display().to_string();
    let of_others = of_others(&folder);
    let (table, _) = said(&["summary", &of_others.display().to_string()]);
    // As zarr's `ZipStore` writes it.
    std::fs::copy("tests/data/zarr_store.zip", place("others.zarr.zip")).expect("a copy");
    assert_eq!(said(&["summary", &shown("others.zarr.zip")]).0, table);
    assert!(said(&["diagnose", &shown("others.zarr.zip")]).0.contains("1 of 24 transitions"));

    let model = folder.file("m.ab", "pub fn log_density(q: real[2]) -> real { -0.5 * sum(q * q) }");
    let sizes = ["--chains", "3", "--warmup", "20", "--draws", "10", "--seed", "1", "--progress", "none"];
    said(&[&["sample", &model, "--codegen", "off", "--store", &shown("run.zarr")], &sizes[..]].concat());
    // As `zip -r` writes it.
    archive_of(&place("run.zarr"), "run.zarr/", &place("sent.zip"));
    assert_eq!(said(&["summary", &shown("sent.zip")]).0, said(&["summary", &shown("run.zarr")]).0);
    let draws = |name: &str| {
        let samples = autobatch::sampler::Samples::open(place(name)).expect("a store");
        samples.draws().parameters.clone()
    };
    assert_eq!(draws("sent.zip"), draws("run.zarr"));
    for command in [&["resume"][..], &["merge"]] {
        let refused = error(&[command, &[&shown("sent.zip")]].concat());
        assert!(refused.contains("is an archive, which is read and never written"), "{refused}");
    }
    archive_of(&place("run.zarr/posterior/q"), "", &place("none.zip"));
    let refused = error(&["summary", &shown("none.zip")]);
    assert!(refused.contains("none.zip/zarr.json: this is array, not group"), "{refused}");
    archive_of(&place("run.zarr/posterior/q/c"), "", &place("none.zip"));
    let refused = error(&["summary", &shown("none.zip")]);
    assert!(refused.contains("there is no store in it: neither zarr.json, nor a folder with that"), "{refused}");
    let whole = std::fs::read(place("sent.zip")).expect("a file");
    std::fs::write(place("cut.zip"), &whole[..whole.len() / 2]).expect("there is room");
    assert!(error(&["summary", &shown("cut.zip")]).contains("cut.zip: it cannot be unpacked"));
}
