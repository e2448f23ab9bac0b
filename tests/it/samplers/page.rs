//! The page of a run: what is on it, that it needs nothing else, and that it stays small.

use autobatch::Array;
use autobatch::report::{ElementNames, RunPage, SamplerStatistics, Summary};
use indexmap::IndexMap;

use crate::project::bench::well_formed;
use crate::project::cli::{Folder, error, output};
use crate::tools::effort;

/// Numbers that look random and are not.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub(crate) fn byte(&mut self) -> u8 {
        (self.uniform() * 256.0) as u8
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Draws of a run as an array of this event shape; chain 1 is apart from the others.
pub(crate) fn drawn(chains: usize, draws: usize, event: &[usize], seed: u64) -> Array {
    let mut noise = Noise(seed);
    let size: usize = event.iter().product();
    let apart = |i: usize| if i / (draws * size) == 1 { 2.0 } else { 0.0 };
    let values = (0..chains * draws * size).map(|i| noise.normal() + apart(i)).collect();
    Array::real([chains, draws].into_iter().chain(event.iter().copied()), values)
}

pub(crate) fn statistics(chains: usize, draws: usize) -> IndexMap<String, Array> {
    let mut noise = Noise(99);
    let all = chains * draws;
    let shape = [chains, draws];
    let depth: Vec<i64> = (0..all).map(|_| 1 + (noise.uniform() * 4.0) as i64).collect();
    let energy = (0..all).map(|_| noise.normal()).collect();
    IndexMap::from([
        ("lp".to_owned(), Array::real(shape, (0..all).map(|_| noise.normal()).collect())),
        ("treedepth".to_owned(), Array::int(shape, depth.clone())),
        ("n_leapfrog".to_owned(), Array::int(shape, depth.iter().map(|d| (1 << d) - 1).collect())),
        ("divergent".to_owned(), Array::bool(shape, (0..all).map(|i| i % 50 == 7).collect())),
        ("energy".to_owned(), Array::real(shape, energy)),
    ])
}

/// The page of these parameters, and its summary.
pub(crate) fn page(parameters: &IndexMap<String, Array>, statistics: &IndexMap<String, Array>) -> (String, Summary) {
    let chains = parameters.values().next().map_or(0, |array| array.shape[0]);
    let mut summary = Summary::of(parameters, SamplerStatistics::of(statistics, Some(10), 1000, 1.0));
    summary.advise(|advice| format!("autobatch sample m.stan {advice}"));
    let numbers: Vec<usize> = (1..=chains).collect();
    let stepsizes: Vec<f64> = (0..chains).map(|chain| 0.3 + 0.001 * chain as f64).collect();
    let facts = [("Model".to_owned(), "m & n.stan".to_owned())];
    let page = RunPage {
        title: "m <script>",
        facts: &facts,
        partial: None,
        summary: &summary,
        parameters,
        names: &ElementNames::default(),
        statistics,
        stepsizes: &stepsizes,
        numbers: &numbers,
        observed: None,
        stats: None,
        timeline: None,
    };
    (page.render(), summary)
}

/// What holds of every page.
fn check(page: &str) {
    assert!(page.len() <= 1_500_000, "{} bytes", page.len());
    well_formed(page);
    for loads in ["http:", "https:", "<script", "<link", "<img", "@import", "url(", "javascript:", " src=", " onload="]
    {
        assert!(!page.contains(loads), "{loads}");
    }
    // Every picture says what it shows to those who do not see it.
    let pictures = page.matches("<svg id=").count();
    assert_eq!((page.matches("<title id=").count(), page.matches("<desc id=").count()), (pictures, pictures));
    // Words may be of what is infinite; places in pictures are not.
    for tag in page.split('<').filter_map(|rest| rest.split('>').next()).filter(|tag| !tag.starts_with("style")) {
        assert!(!tag.contains("NaN") && !tag.contains("inf"), "{tag}");
    }
    let ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let different: std::collections::BTreeSet<&&str> = ids.iter().collect();
    assert_eq!(different.len(), ids.len(), "ids stand once");
}

#[test]
fn a_page_has_the_numbers_of_the_summary_and_what_was_found_first() {
    let parameters = IndexMap::from([
        ("mu".to_owned(), drawn(4, 200, &[], 1)),
        ("theta".to_owned(), drawn(4, 200, &[3], 2)),
        ("m".to_owned(), drawn(4, 200, &[2, 2], 3)),
    ]);
    let (page, summary) = page(&parameters, &statistics(4, 200));
    check(&page);
    assert!(page.contains("<h1>m &lt;script&gt;</h1>") && page.contains("m &amp; n.stan"));
    for row in summary.to_string().lines().skip(1).take_while(|line| !line.is_empty()) {
        let mut cells = row.split_whitespace();
        let name = cells.next().expect("a name");
        let cells: String = cells.map(|cell| format!("<td>{cell}</td>")).collect();
        assert!(page.contains(&format!("<th scope=\"row\">{name}</th>{cells}")), "{row}");
    }
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(place("id=\"findings\"") < place("id=\"parameters\""));
    assert!(page.contains("R-hat is 1.01 or more for") && page.contains("<pre>autobatch sample m.stan --"));
    for id in [
        "trace-0",
        "strips-0",
        "ecdf-0",
        "autocorrelation",
        "growth",
        "energy",
        "e-bfmi",
        "trees",
        "stepsizes",
        "pairs",
    ] {
        assert!(page.contains(&format!("<svg id=\"{id}\"")), "{id}");
    }
    // The chain that is apart leaves the band, and is the first of the chains.
    assert!(page.contains(" of 4 leave the band: "));
    let chains = page.split("id=\"chains\"").nth(1).and_then(|rest| rest.split("<tbody>").nth(1)).expect("a table");
    assert!(chains.trim_start().starts_with("<tr><th scope=\"row\">2</th>"), "{}", &chains[..80]);
    // Without a sampler's statistics there are the parameters alone.
    let (page, _) = self::page(&parameters, &IndexMap::new());
    check(&page);
    assert!(
        !page.contains("<svg id=\"trees\"") && !page.contains("<svg id=\"energy\"") && page.contains("id=\"pairs\"")
    );
}

#[test]
fn a_page_is_small_for_many_chains_and_parameters() {
    // The pictures of 4,096 chains of 100 draws are as large as those of 24 draws.
    let draws = if effort::all() { 100 } else { 24 };
    let parameters = IndexMap::from([("x".to_owned(), drawn(4096, draws, &[if effort::all() { 50 } else { 9 }], 4))]);
    let (wide, _) = page(&parameters, &statistics(4096, draws));
    check(&wide);
    assert!(wide.contains("4076 more are not shown"), "chains");
    let parameters = IndexMap::from([("with_a_long_name".to_owned(), drawn(4, 100, &[3, 500], 5))]);
    let (long, _) = page(&parameters, &statistics(4, 100));
    check(&long);
    assert!(long.contains("1500 in all, the worst first; 1300 more are not shown"));
    assert!(long.contains("1460 more are not drawn") && long.contains("1492 more are not drawn"));
}

#[test]
fn what_is_odd_has_a_page_too() {
    let one = |array: Array| IndexMap::from([("x".to_owned(), array)]);
    let constant = Array::real([3, 50], vec![2.0; 150]);
    let mut broken = drawn(3, 50, &[2], 6);
    if let autobatch::types::ArrayData::Real(values) = &mut broken.data {
        (values[7], values[8]) = (f64::NAN, f64::INFINITY);
    }
    let apart = Array::real([2, 50], (0..100).map(|i| f64::from(u8::from(i >= 50))).collect());
    let huge = Array::real([3, 50], drawn(3, 50, &[], 8).as_real().unwrap().iter().map(|x| 1e300 * x).collect());
    let tiny = Array::real([3, 50], drawn(3, 50, &[], 9).as_real().unwrap().iter().map(|x| 5.0 + 1e-13 * x).collect());
    let cases = [
        constant,
        broken,
        apart,
        huge,
        tiny,
        drawn(1, 50, &[2], 7),
        drawn(3, 3, &[], 8),
        drawn(3, 1, &[2], 9),
        drawn(2, 8, &[2], 3),
    ];
    for array in cases {
        let (chains, draws) = (array.shape[0], array.shape[1]);
        check(&page(&one(array), &statistics(chains, draws)).0);
    }
    let (nothing, _) = page(&IndexMap::new(), &IndexMap::new());
    check(&nothing);
    assert!(nothing.contains("There are no draws to check"));
}

const MODEL: &str = "parameters { vector[2] x; } model { x[1] ~ normal(0, 1); x[2] ~ normal(x[1], 3); }";

#[test]
fn reports_are_made_of_files_and_of_runs() {
    let folder = Folder::new("reports");
    let model = folder.file("two.stan", MODEL);
    let at = |name: &str| folder.0.join(name).display().to_string();
    let (csv, npz, json, page, of_files) = (at("d.csv"), at("d.npz"), at("d.json"), at("run.html"), at("files.html"));
    let run =
        ["sample", &model, "--chains", "3", "--warmup", "150", "--draws", "60", "--seed", "5", "--codegen", "off"];
    for file in [&npz, &json, &csv] {
        let done = output(&[&run[..], &["--output", file, "--report", &page, "--stats"]].concat());
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let read = |path: &str| std::fs::read_to_string(path).expect("a page");
    let run_page = read(&page);
    check(&run_page);
    assert!(run_page.contains("<dt>Seed</dt><dd>5</dd>") && run_page.contains("<h1>two</h1>"));
    assert!(run_page.contains("id=\"machine\"") && run_page.contains("supersteps; utilization"));
    let table =
        |page: &str| page.split("id=\"parameters\"").nth(1).and_then(|p| p.split("</table>").next()).map(str::to_owned);
    for file in [&npz, &json] {
        let done = output(&["report", file, "-o", &of_files]);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        check(&read(&of_files));
        assert_eq!(table(&read(&of_files)), table(&run_page), "{file}");
    }
    // The files of the chains are found by the name that was given; they have eight digits.
    let done = output(&["report", &csv, "--output", &of_files, "--title", "A & B"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let of_csv = read(&of_files);
    check(&of_csv);
    assert!(of_csv.contains("<h1>A &amp; B</h1>") && of_csv.contains("<dt>Warmup</dt><dd>150</dd>"));
    let said = error(&["report", &npz, "-o", &at("r.pdf")]);
    assert!(said.contains("r.pdf: the name must end in .html"), "{said}");
    assert!(error(&["report", &npz, "-o", &at("no/r.html")]).contains("there is no folder"));
    assert!(error(&["report", &at("missing.npz"), "-o", &of_files]).contains("missing.npz"));
}

#[test]
fn strict_checks_fail_where_there_is_something_to_look_at() {
    let folder = Folder::new("strict");
    let model = folder.file("two.stan", MODEL);
    let npz = folder.0.join("d.npz").display().to_string();
    let run = ["--chains", "4", "--warmup", "300", "--seed", "5", "--codegen", "off", "--output", &npz];
    let strict = |draws: &str| {
        assert!(output(&[&["sample", &model, "--draws", draws], &run[..]].concat()).status.success());
        let done = output(&["diagnose", "--strict", &npz]);
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
    };
    let (code, said) = strict("1000");
    assert_eq!(code, Some(0), "{said}");
    // Each check names what is worst, though nothing is wrong.
    assert!(
        said.contains("ok    R-hat: the chains agree on all parameters; worst: 1.00") && said.contains("(x["),
        "{said}"
    );
    assert!(said.contains("ok    effective sample sizes") && said.contains("in the tails (x["), "{said}");
    let (code, said) = strict("20");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("LOOK  effective sample sizes") && said.contains("; worst: "), "{said}");
    // It is not asked for: whoever reads decides.
    assert_eq!(output(&["diagnose", &npz]).status.code(), Some(0));
}
