//! Traces of supersteps, and how far chains are while they run.

use serde_json::Value;

use crate::project::cli::{Folder, error, output};

const MODEL: &str = "parameters { real mu; vector[3] x; } model { mu ~ normal(0, 1); x ~ normal(mu, exp(mu)); }";

fn ran(arguments: &[&str]) -> String {
    let done = output(arguments);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{arguments:?}: {said}");
    said
}

/// The events of a file of a trace.
fn read(path: &str) -> Value {
    let bytes = std::fs::read(path).expect("a trace");
    let text = if path.ends_with(".gz") {
        std::io::read_to_string(flate2::read::GzDecoder::new(&bytes[..])).expect("it is packed")
    } else {
        String::from_utf8(bytes).expect("text")
    };
    serde_json::from_str(&text).expect("JSON")
}

fn slices(trace: &Value) -> Vec<&Value> {
    trace["traceEvents"].as_array().expect("a list").iter().filter(|event| event["ph"] == "X").collect()
}

/// What a trace tells adds up to what the run counts, lanes and all, and the page shows it.
#[test]
fn a_trace_has_all_supersteps_of_a_run() {
    let folder = Folder::new("trace");
    let model = folder.file("m.stan", MODEL);
    let at = |name: &str| folder.0.join(name).display().to_string();
    let (trace, page, npz) = (at("t.json.gz"), at("r.html"), at("d.npz"));
    let run = ["sample", &model, "--chains", "6", "--warmup", "30", "--draws", "15", "--seed", "2", "--codegen", "off"];
    let one = [&run[..], &["--threads", "1", "--output", &npz]].concat();
    let stats = output(&[&one[..], &["--stats"]].concat());
    let draws = std::fs::read(&npz).unwrap();
    let said = ran(&[&one[..], &["--trace", &trace, "--trace-at", "100000000", "--report", &page]].concat());
    assert_eq!(std::fs::read(&npz).unwrap(), draws, "the bits are the same");
    let told = String::from_utf8_lossy(&stats.stdout).into_owned();
    let number = |text: &str, before: &str| -> u64 {
        let rest = text.split(before).nth(1).unwrap_or_else(|| panic!("{before}: {text}"));
        rest.trim_start().chars().take_while(char::is_ascii_digit).collect::<String>().parse().expect("a number")
    };
    let supersteps = number(&told, "supersteps ");
    assert_eq!(number(&said, "trace of "), supersteps, "{said}");
    let trace_value = read(&trace);
    let all = slices(&trace_value);
    assert_eq!(all.iter().map(|slice| slice["args"]["supersteps"].as_u64().unwrap()).sum::<u64>(), supersteps);
    let workers: std::collections::BTreeSet<u64> = all.iter().map(|slice| slice["tid"].as_u64().unwrap()).collect();
    for worker in workers {
        let of: Vec<&&Value> = all.iter().filter(|slice| slice["tid"] == worker).collect();
        for pair in of.windows(2) {
            let end = pair[0]["ts"].as_f64().unwrap() + pair[0]["dur"].as_f64().unwrap();
            assert!(end <= pair[1]["ts"].as_f64().unwrap() + 1e-3, "slices of a worker follow one another");
        }
    }
    for slice in &all {
        let args = &slice["args"];
        let number = |key: &str| args[key].as_u64().unwrap_or_else(|| panic!("{key}: {slice}"));
        assert!((1..=number("computed")).contains(&number("active")) && number("active") <= number("live"), "{slice}");
        assert!(number("active") + number("waiting") <= number("live"), "{slice}");
        if let Some(lanes) = args["lanes"].as_str() {
            assert_eq!(u64::from(u64::from_str_radix(lanes, 16).unwrap().count_ones()), number("active"), "{slice}");
        }
        assert!(slice["name"].as_str().unwrap().contains(':'), "{slice}");
    }
    assert!(all[0]["args"]["lanes"].is_string(), "the first ones tell their lanes");
    // By unit as many lanes as the run counts.
    let counted = read_stats(&told);
    let mut active = std::collections::BTreeMap::<String, u64>::new();
    for slice in &all {
        let args = &slice["args"];
        let lanes = args["active"].as_u64().unwrap() * args["supersteps"].as_u64().unwrap();
        *active.entry(slice["name"].as_str().unwrap().to_owned()).or_default() += lanes;
    }
    assert_eq!(active, counted);
    let of_run = std::fs::read_to_string(&page).unwrap();
    assert!(of_run.contains("<svg id=\"lanes\"") && of_run.contains("What lanes wait for"));
    ran(&["report", &npz, "-o", &page, "--trace", &trace]);
    let of_files = std::fs::read_to_string(&page).unwrap();
    let lanes = |page: &str| {
        page.split("id=\"lanes-of-machine\"").nth(1).and_then(|p| p.split("</section>").next()).map(str::to_owned)
    };
    assert!(lanes(&of_files).is_some() && lanes(&of_files) == lanes(&of_run), "files say the same as the run");
    crate::project::bench::well_formed(&of_files);
}

/// Lanes by place, of the table of `--stats`.
fn read_stats(told: &str) -> std::collections::BTreeMap<String, u64> {
    let mut lanes = std::collections::BTreeMap::new();
    let rows = told.lines().skip_while(|line| !line.starts_with("block ")).skip(1);
    for line in rows.take_while(|line| !line.is_empty()) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        *lanes.entry(cells[1].to_owned()).or_default() += cells[4].parse::<u64>().expect("a number");
    }
    lanes
}

#[test]
fn traces_keep_to_their_window() {
    let folder = Folder::new("trace-window");
    let file = folder.0.join("t.json").display().to_string();
    let run = |more: &[&str]| {
        let fib = [
            "run",
            "examples/fib.ab",
            "--entry",
            "fib",
            "--input",
            "n=[12, 3, 9, 11]",
            "--codegen",
            "off",
            // Which of several threads takes which lanes differs from run to run, and with it the number of supersteps.
            "--threads",
            "1",
            "--trace",
            &file,
        ];
        let said = ran(&[&fib[..], more].concat());
        (slices(&read(&file)).iter().map(|s| s["args"]["supersteps"].as_u64().unwrap()).sum::<u64>(), said)
    };
    let all = run(&[]).0;
    assert!(all > 50, "{all}");
    assert_eq!(run(&["--trace-at", "17"]).0, 17);
    assert_eq!(run(&["--trace-at", "0s+1000s"]).0, all);
    let (none, said) = run(&["--trace-at", "1000s+1s"]);
    assert!(none == 0 && said.contains("no superstep began in the window"), "{said}");
    for (more, expected) in [
        (&["--engine", "scalar"][..], "the engine `scalar` runs one lane after the other: use `pc`"),
        (&["--engine", "local"], "the engine `pc`, which `local` has not"),
        (&["--device", "cuda-host"], "`--trace` notes every superstep, which a GPU does not do"),
    ] {
        let fib = ["run", "examples/fib.ab", "--entry", "fib", "--input", "n=[3]", "--trace", &file];
        let said = error(&[&fib[..], more].concat());
        assert!(said.contains(expected), "{said}");
    }
    let fib = ["run", "examples/fib.ab", "--entry", "fib", "--input", "n=[3]", "--trace"];
    assert!(error(&[&fib[..], &["t.txt"]].concat()).contains("the name must end in .json or .json.gz"));
    assert!(error(&[&fib[..], &["no/t.json"]].concat()).contains("there is no folder"));
    let wrong = output(&[&fib[..], &[&file, "--trace-at", "soon"]].concat());
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("such as 1s+200ms"));
}

/// A file that is no trace says so.
#[test]
fn what_is_no_trace_is_refused() {
    let folder = Folder::new("no-trace");
    let model = folder.file("m.stan", MODEL);
    let at = |name: &str| folder.0.join(name).display().to_string();
    let (npz, page) = (at("d.npz"), at("r.html"));
    ran(&["sample", &model, "--chains", "2", "--warmup", "5", "--draws", "5", "--codegen", "off", "--output", &npz]);
    for (name, text) in [("a.json", "{}"), ("b.json", "x"), ("c.json.gz", "x"), ("d.json", "[]")] {
        let file = folder.file(name, text);
        let said = error(&["report", &npz, "-o", &page, "--trace", &file]);
        assert!(said.contains(name), "{said}");
    }
    assert!(error(&["report", &npz, "-o", &page, "--trace", "missing.json"]).contains("missing.json"));
}

/// JSON of progress: objects that end with one that tells the end, each with the chains in groups.
#[test]
fn progress_is_told_as_json_too() {
    let folder = Folder::new("progress");
    let model = folder.file("m.stan", MODEL);
    let run =
        ["sample", &model, "--chains", "20", "--warmup", "60", "--draws", "30", "--thin", "3", "--codegen", "off"];
    let said = ran(&[&run[..], &["--progress", "json", "--id", "5"]].concat());
    let objects: Vec<Value> = said
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let last = objects.last().expect("the end is told");
    assert_eq!((&last["event"], &last["finished"], &last["draws"]), (&"end".into(), &20.into(), &200.into()), "{last}");
    assert_eq!((&last["all_draws"], &last["iterations_of_chain"]), (&200.into(), &90.into()));
    let groups = last["groups"].as_array().expect("groups");
    let ends: Vec<(u64, u64)> =
        groups.iter().map(|g| (g["first"].as_u64().unwrap(), g["last"].as_u64().unwrap())).collect();
    assert_eq!((groups.len(), ends[0], ends[7]), (8, (5, 6), (22, 24)));
    assert!(ends.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0), "{ends:?}");
    for group in groups {
        assert_eq!(group["iterations"], serde_json::json!({"least": 90, "median": 90, "most": 90}));
        assert!(group["gradients"].as_u64() > Some(0) && group["gradients_per_draw"].as_f64() > Some(0.9), "{group}");
        assert!(group["stepsize"]["least"].as_f64() <= group["stepsize"]["most"].as_f64());
    }
    let quiet = ran(&[&run[..], &["--progress", "none"]].concat());
    assert!(!quiet.contains(" draws") && !quiet.contains("{\""), "{quiet}");
    let lines = ran(&[&run[..], &["--progress", "lines"]].concat());
    assert!((1..=10).all(|i| lines.contains(&format!("{} of 200 draws", 20 * i))), "{lines}");
    ran(&[&run[..], &["--progress", "bar"]].concat());
}
