//! `print`, and the values in what `reject` says.

use crate::project::cli::{Folder, output};

const PROGRAM: &str = "data { int N; }
transformed data { vector[2] k = [1, 0.5]'; print(\"N is \", N, \", k is \", k); }
parameters { real x; }
transformed parameters { real y = 2 * x; print(\"y is \", y); }
model {
  for (i in 1:N) if (x > 2) reject(\"turn \", i, \": x is \", x, \" and y \", [y, 1]);
  if (x > 0) print(\"above: \", {x, y});
  x ~ normal(0, 1);
}
generated quantities { real z = y + 1; print(\"z is \", z); }
";

fn said(arguments: &[&str]) -> (String, String) {
    let found = output(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&found.stdout), text(&found.stderr))
}

#[test]
fn a_density_prints_at_every_point_and_data_once() {
    let folder = Folder::new("prints");
    let (model, data) = (folder.file("m.stan", PROGRAM), folder.file("d.json", "{\"N\": 3}"));
    let points = "[[0.5], [-1], [2.5]]";
    let (shown, stderr) = said(&["log-prob", &model, "--data", &data, "--points", points, "--format", "json"]);
    let mut lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.remove(0), "N is 3, k is [1, 0.5]", "{stderr}");
    lines.sort_unstable();
    let wanted = ["[point 0] above: [0.5, 1]", "[point 0] y is 1", "[point 1] y is -2", "[point 2] y is 5"];
    assert_eq!(lines, wanted, "{stderr}");
    assert!(shown.contains("{\"rejected\":\"turn 1: x is 2.5 and y [5, 1] (in '"), "{shown}");
    assert!(shown.contains(", line 6, column ") && !shown.contains("function"), "{shown}");
}

#[test]
fn chains_print_at_every_evaluation_and_of_every_draw_up_to_a_limit() {
    let folder = Folder::new("prints-chains");
    let (model, data) = (folder.file("m.stan", PROGRAM), folder.file("d.json", "{\"N\": 1}"));
    let how = ["--data", &data, "--chains", "2", "--warmup", "5", "--draws", "3"];
    let (_, stderr) = said(&[&["sample", &model][..], &how].concat());
    let of = |what: &str| stderr.lines().filter(|line| line.contains(what)).count();
    assert_eq!((of("N is 1"), of("] z is ")), (1, 6), "{stderr}");
    assert!(of("[chain 0] y is ") > 8 && of("[draw 2 of chain 1] z is ") == 1, "{stderr}");
    assert_eq!(of("more lines"), 0, "{stderr}");
    let how = ["--data", &data, "--chains", "50", "--warmup", "30", "--draws", "30"];
    let (_, stderr) = said(&[&["sample", &model][..], &how].concat());
    let of = |what: &str| stderr.lines().filter(|line| line.starts_with(what)).count();
    assert_eq!((of("[chain "), of("[draw ")), (1000, 1000), "{stderr}");
    assert!(stderr.contains(" more lines of `print`"), "{stderr}");
}
