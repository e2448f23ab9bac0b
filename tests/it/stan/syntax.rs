//! The syntax of Stan: precedences, every construct, what broken programs give, what mutated ones do not.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use autobatch::base::{Diagnostic, SourceMap};
use autobatch::report::render;
use autobatch::stan::syntax::ast::Program;
use autobatch::stan::syntax::{
    Canonical, IncludeFolders, Includes, MAX_WIDTH, NoIncludes, canonicalize, dump, format, parse,
};

use super::root;
use crate::tools::effort;

fn parse_named(name: &str, text: &str, includes: &mut dyn Includes) -> (Program, Vec<Diagnostic>, SourceMap) {
    let mut sources = SourceMap::default();
    let main = sources.add(name, text);
    let (program, diagnostics) = parse(main, &mut sources, includes);
    (program, diagnostics, sources)
}

fn parse_text(text: &str) -> (Program, Vec<Diagnostic>) {
    let (program, diagnostics, _) = parse_named("main.stan", text, &mut NoIncludes);
    (program, diagnostics)
}

fn codes(diagnostics: &[Diagnostic]) -> Vec<&str> {
    diagnostics.iter().map(|d| d.code.0).collect()
}

/// Expressions and their trees, as `stanc --debug-ast` of Stan 2.39 has them.
const EXPRESSIONS: &[(&str, &str)] = &[
    (r"a + b == c || d", r"(|| (== (+ a b) c) d)"),
    (r"a - b - c", r"(- (- a b) c)"),
    (r"a * b / c % d", r"(% (/ (* a b) c) d)"),
    (r"a + b * c", r"(+ a (* b c))"),
    (r"a * b %/% c", r"(* a (%/% b c))"),
    (r"a %/% b * c", r"(* (%/% a b) c)"),
    (r"a %/% b %/% c", r"(%/% (%/% a b) c)"),
    (r"m \ m * m", r"(* (\ m m) m)"),
    (r"m * m \ m", r"(* m (\ m m))"),
    (r"m \ m \ m", r"(\ (\ m m) m)"),
    (r"-a ^ b", r"(- (^ a b))"),
    (r"a ^ -b ^ c", r"(^ a (- (^ b c)))"),
    (r"a ^ b ^ c", r"(^ a (^ b c))"),
    (r"a .^ b ^ c", r"(.^ a (^ b c))"),
    (r"-a * b", r"(* (- a) b)"),
    (r"- - a", r"(- (- a))"),
    (r"!a == b", r"(== (! a) b)"),
    (r"!-a + b", r"(+ (! (- a)) b)"),
    (r"-a %/% b", r"(%/% (- a) b)"),
    (r"+a", r"(+ a)"),
    (r"-m'", r"(- (' m))"),
    (r"m' * m", r"(* (' m) m)"),
    (r"m''", r"(' (' m))"),
    (r"m' ^ 2", r"(^ (' m) 2)"),
    (r"a ^ m'", r"(^ a (' m))"),
    (r"a < b < c", r"(< (< a b) c)"),
    (r"a == b < c", r"(== a (< b c))"),
    (r"a < b == c > d", r"(== (< a b) (> c d))"),
    (r"a <= b != c >= d", r"(!= (<= a b) (>= c d))"),
    (r"a && b || c && d", r"(|| (&& a b) (&& c d))"),
    (r"a || b && c || d", r"(|| (|| a (&& b c)) d)"),
    (r"a == b && c", r"(&& (== a b) c)"),
    (r"a ? b : c", r"(? a b c)"),
    (r"a ? b : c ? d : e", r"(? a b (? c d e))"),
    (r"a ? b ? c : d : e", r"(? a (? b c d) e)"),
    (r"a || b ? c + d : e == f", r"(? (|| a b) (+ c d) (== e f))"),
    (r"m .* m + m ./ m", r"(+ (.* m m) (./ m m))"),
    (r"m .* m * m", r"(* (.* m m) m)"),
    (r"m[1, a ? b : c]", r"(index m 1 (? a b c))"),
    (r"m[a ? b : c : d]", r"(index m (: (? a b c) d))"),
    (r"m[:, 2:, :3, ]", r"(index m : (from 2) (to 3) :)"),
    (r"m[]", r"(index m :)"),
    (r"m[1][2]", r"(index (index m 1) 2)"),
    (r"f(x)[1]", r"(index (f x) 1)"),
    (r"t.1", r"(.1 t)"),
    (r"t.1.2", r"(.2 (.1 t))"),
    (r"t.1[2].3", r"(.3 (index (.1 t) 2))"),
    (r"f(a, b)", r"(f a b)"),
    (r"f(a | b, c)", r"(f a | b c)"),
    (r"f()", r"(f)"),
    (r"normal_lpdf(y |)", r"(normal_lpdf y |)"),
    (r"target()", r"target"),
    (r"{a, {b, c}}", r"({} a ({} b c))"),
    (r"[a, b]'", r"(' ([] a b))"),
    (r"[]", r"([])"),
    (r"(a)", r"(paren a)"),
    (r"(a + b) * c", r"(* (paren (+ a b)) c)"),
    (r"(a, b)", r"(tuple a b)"),
    (r"(a, b).1", r"(.1 (tuple a b))"),
    (r"(a,)", r"(tuple a)"),
    (r"((a))", r"(paren (paren a))"),
    (r"1_000 + 2i + .5 + 1. + 1e-3", r"(+ (+ (+ (+ 1_000 2i) .5) 1.) 1e-3)"),
    (r"x[1.]", r"(index x 1.)"),
    (r"1 .* x", r"(.* 1 x)"),
    (r"1.*x", r"(* 1. x)"),
    (r"1./x", r"(/ 1. x)"),
    (r"-1.0^2", r"(- (^ 1.0 2))"),
    (r"a - -b", r"(- a (- b))"),
    (r"a --b", r"(- a (- b))"),
    (r"a<-1", r"(< a (- 1))"),
    (r"a * -b * c", r"(* (* a (- b)) c)"),
    (r"a * -b ^ c * d", r"(* (* a (- (^ b c))) d)"),
    (r"2^-1", r"(^ 2 (- 1))"),
    (r"a ? -b : !c", r"(? a (- b) (! c))"),
    (r"T + T[1]", r"(+ T (index T 1))"),
    (r"T(1)", r"(T 1)"),
];

#[test]
fn expressions_have_the_trees_of_stanc() {
    for (text, wanted) in EXPRESSIONS {
        let (program, diagnostics) = parse_text(&format!("model {{ print({text}); }}"));
        assert!(diagnostics.is_empty(), "{text}: {diagnostics:#?}");
        assert_eq!(dump(&program), format!("(model\n  (print {wanted}))\n"), "{text}");
    }
}

#[test]
fn spans_are_those_of_the_text() {
    use autobatch::stan::syntax::ast::{ExprKind, StmtKind};
    let text = "model { x[ 1, 2 ] = -a \' * (b + c ) ; }";
    let (program, diagnostics) = parse_text(text);
    assert!(diagnostics.is_empty(), "{diagnostics:#?}");
    let of = |span: autobatch::base::Span| &text[span.start as usize..span.end as usize];
    let block = program.model.as_ref().unwrap();
    assert_eq!(of(block.span), text);
    assert_eq!(of(block.stmts[0].span), "x[ 1, 2 ] = -a \' * (b + c ) ;");
    let StmtKind::Assign { place, value, .. } = &block.stmts[0].kind else { panic!("{}", dump(&program)) };
    assert_eq!(of(place.span), "x[ 1, 2 ]");
    let ExprKind::Binary(_, a, b) = &value.kind else { panic!("{}", dump(&program)) };
    assert_eq!((of(value.span), of(a.span), of(b.span)), ("-a \' * (b + c )", "-a \'", "(b + c )"));
}

/// The programs of `tests/filetests/stan/syntax`, by name.
fn corpus() -> Vec<(String, String)> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in ["tests/filetests/stan/syntax", "tests/filetests/stan/syntax/parts"] {
        paths.extend(std::fs::read_dir(root().join(folder)).unwrap().map(|e| e.unwrap().path()));
    }
    paths.retain(|p| p.extension().is_some_and(|e| e == "stan" || e == "stanfunctions") && !p.ends_with("sizes.stan"));
    paths.sort();
    assert!(paths.len() >= 8);
    let named = |p: PathBuf| (p.display().to_string(), std::fs::read_to_string(&p).unwrap());
    paths.into_iter().map(named).collect()
}

#[test]
fn the_corpus_of_stan_parses() {
    let mut shown = String::new();
    for (path, text) in corpus() {
        let (program, diagnostics, sources) = parse_named(&path, &text, &mut IncludeFolders::default());
        let name = Path::new(&path).file_name().unwrap().to_string_lossy().into_owned();
        assert!(name == "old.stan" || diagnostics.is_empty(), "{}", render(&diagnostics, &sources, false));
        assert!(diagnostics.iter().all(|d| !d.is_error()), "{}", render(&diagnostics, &sources, false));
        shown.push_str(&format!("== {name}\n{}", dump(&program)));
    }
    insta::assert_snapshot!(shown);
}

/// Old syntax makes the tree of what replaced it.
#[test]
fn old_programs_mean_what_new_ones_do() {
    let model = |text: &str| format!("model {{ {text} }}");
    let same = [
        ("x <- 1;", "x = 1;"),
        ("x[1].2 <- -1;", "x[1].2 = -1;"),
        ("if (a) x <- 1; else x <- 2;", "if (a) x = 1; else x = 2;"),
        ("increment_log_prob(1 + 2);", "target += 1 + 2;"),
        ("print(get_lp());", "print(target());"),
        ("print(if_else(a, b, c));", "print((a ? b : c));"),
        ("print(normal_log(a, b, c));", "print(normal_lpdf(a | b, c));"),
        ("print(poisson_log(a, b));", "print(poisson_lpmf(a | b));"),
        ("print(poisson_log_log(a, b));", "print(poisson_log_lpmf(a | b));"),
        ("print(normal_ccdf_log(a, 0, 1));", "print(normal_lccdf(a | 0, 1));"),
        ("print(multiply_log(a, b));", "print(lmultiply(a, b));"),
        ("# a comment\nx = 1;", "x = 1;"),
    ];
    for (old, new) in same {
        let (old_program, warnings) = parse_text(&model(old));
        let (new_program, nothing) = parse_text(&model(new));
        assert!(!warnings.is_empty() && warnings.iter().all(|d| !d.is_error()), "{old}: {warnings:#?}");
        assert!(nothing.is_empty(), "{new}: {nothing:#?}");
        assert_eq!(dump(&old_program), dump(&new_program), "{old}");
    }
    // a comparison, not an assignment
    let (_, diagnostics) = parse_text(&model("if (x<-1) x = 1; y = x<-1;"));
    assert!(diagnostics.is_empty(), "{diagnostics:#?}");
    // functions of the program are its own
    let own = "functions { real normal_log(real x) { return x; } real if_else(real a, real b, real c) { return a; } }";
    let (_, diagnostics) = parse_text(&format!("{own} model {{ print(normal_log(1), if_else(1, 2, 3)); }}"));
    assert!(diagnostics.is_empty(), "{diagnostics:#?}");
}

#[test]
fn an_else_belongs_to_the_nearest_if() {
    let (program, diagnostics) = parse_text("model { if (a) if (b) x = 1; else x = 2; while (a) if (b) ; else ; }");
    assert!(diagnostics.is_empty(), "{diagnostics:#?}");
    let wanted = "(model\n  (if a\n    (if b\n      (= x 1)\n      (= x 2)))\n  (while a\n    (if b\n      skip\n      skip)))\n";
    assert_eq!(dump(&program), wanted);
}

/// The sections of `grammar/errors.d/stan_syntax.md`: code and program.
fn documented() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(root().join("grammar/errors.d/stan_syntax.md")).unwrap();
    let sections = text.split("\n## ").map(|s| s.trim_start_matches("## "));
    sections
        .map(|section| {
            let (code, _) = section.split_once(':').unwrap();
            let (_, rest) = section.split_once("```stan\n").unwrap();
            let (program, _) = rest.split_once("\n```").unwrap();
            (code.to_owned(), program.to_owned())
        })
        .collect()
}

/// Knows the program itself, by the name that it has.
struct Itself<'a>(&'a str);

impl Includes for Itself<'_> {
    fn load(&mut self, _from: &str, path: &str) -> Result<(String, Arc<str>), String> {
        match path {
            "main.stan" => Ok((path.to_owned(), self.0.into())),
            _ => Err("there is no such file".to_owned()),
        }
    }
}

#[test]
fn every_code_of_the_syntax_of_stan_has_a_program_that_gives_it() {
    let documented = documented();
    for (code, program) in &documented {
        let (_, diagnostics, _) = parse_named("main.stan", program, &mut Itself(program));
        assert_eq!(codes(&diagnostics), [code], "{program}\n{diagnostics:#?}");
    }
    let mut used: Vec<String> = Vec::new();
    let files = std::fs::read_dir(root().join("src/stan/syntax")).unwrap().map(|e| e.unwrap().path());
    for file in files.filter(|path| path.is_file()) {
        let text = std::fs::read_to_string(file).unwrap();
        let is_code = |w: &&str| w.len() == 5 && (w.starts_with("E20") || w.starts_with("W20"));
        used.extend(text.split('"').filter(is_code).map(str::to_owned));
    }
    used.sort();
    used.dedup();
    let mut known: Vec<String> = documented.into_iter().map(|d| d.0).collect();
    known.sort();
    assert_eq!(known, used);
}

/// Slips that people make, beside those of the sections.
const SLIPS: &[&str] = &[
    "data { int<lower=0> N, real y; }",
    "data { real data; }",
    "data { real<lower=0 y; }",
    "data { real<lower=a < b> y; }",
    "data { real<low=0> y; }",
    "data { simplex<lower=0>[3] y; }",
    "data { vector[2, 2] y; }",
    "data { real y[3, ]; }",
    "data { array real y; }",
    "data { tuple(real) y; }",
    "parameters { real<lower=0, offset=1> x; }",
    "model { target = 1; }",
    "model { x == 1; }",
    "model { f(x) = 1; }",
    "model { normal_lpdf(x | 0, 1); }",
    "model { if x > 1 { } }",
    "model { if (x) then { } }",
    "model { else x = 1; }",
    "model { for (int i in 1:3) { } }",
    "model { for (i = 1:3) { } }",
    "model { for i in 1:3 { } }",
    "model { print(1,); }",
    "model { real x = {}; }",
    "model { x = y ** 2; }",
    "model { x = a and b; }",
    "model { x = a | b; }",
    "model { x++; }",
    "model { x = \"text\"; }",
    "model { y ~ normal(0, 1) }",
    "model { y ~ normal(0, 1;\n y ~ normal(0, 1); }",
    "model { y ~ normal(0, 1) T[0]; }",
    "model { int x = while; }",
    "model { (x + 1) = 2; }",
    "model { void x; }",
    "functions { real f(vector[3] x) { return 1; } }",
    "functions { real f(simplex x) { return 1; } }",
    "functions { real f(real<lower=0> x) { return 1; } }",
    "functions { real f(real x) return x; }",
    "functions { f(real x) { return x; } }",
    "functions { real f(real) { return 1; } }",
    "data { int N;\nparameters { real x; }\nmodel { }",
    "model { if (x) { y = 1; }\n",
    "data int N;\nmodel { }",
    "model { };",
    "transformed\ndata { }",
    "modle { real x = 1; }",
    "generated quantites { real x = 1; }",
    "model { x = 3 y; }",
    "model { x = a.b; }",
    "model { real _x; }",
    "model { x = 1..3; }",
    "model { x = 2x; }",
];

#[test]
fn slips_in_stan_as_the_user_sees_them() {
    let mut shown = String::new();
    let documented = documented().into_iter().filter(|(code, _)| code != "E2013").map(|d| d.1);
    for program in documented.chain(SLIPS.iter().map(|s| (*s).to_owned())) {
        let (_, diagnostics, sources) = parse_named("main.stan", &program, &mut Itself(&program));
        assert!(!diagnostics.is_empty(), "{program}");
        shown.push_str(&render(&diagnostics, &sources, false));
        shown.push('\n');
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn one_run_reports_several_slips_of_stan() {
    let text = "data {\n  int N\n  vector y;\n  real x = 1;\n}\nparameters {\n  real mu;\n}\nmodel {\n  mu ~ normal(0, ;\n  \
                y ~ normal(mu, 1);\n  if (mu = 1) {\n    mu ~ normal(0 1);\n  }\n  y[1] ~ normal(0, 1);\n}\ndata { }\n";
    let (program, diagnostics) = parse_text(text);
    let wanted = ["E2006", "E2021", "E2016", "E2007", "E2005", "E2014", "E2011"];
    assert_eq!(codes(&diagnostics)[..4], wanted[..4], "{diagnostics:#?}");
    assert!(codes(&diagnostics).contains(&"E2014") && codes(&diagnostics).contains(&"E2011"), "{diagnostics:#?}");
    let tree = dump(&program);
    assert!(tree.contains("(~ y normal mu 1)") && tree.contains("(~ (index y 1) normal 0 1)"), "{tree}");
}

#[test]
fn nesting_of_stan_is_limited() {
    let n = 100_000;
    let texts = [
        "(".repeat(n),
        "{".repeat(n),
        format!("model {{ x = {}1{}; }}", "(".repeat(n), ")".repeat(n)),
        format!("model {{ x = {}1{}; }}", "{".repeat(n), "}".repeat(n)),
        format!("model {{ {}{} }}", "{".repeat(n), "}".repeat(n)),
        format!("model {{ x = {}1; }}", "- ".repeat(n)),
        format!("model {{ x = 1{}; }}", " + 1".repeat(n)),
        format!("model {{ x = 1{}; }}", " ^ 1".repeat(n)),
        format!("model {{ x = x{}; }}", "\'".repeat(n + 1)),
        format!("model {{ x = x{}; }}", "[1]".repeat(n)),
        format!("model {{ x = x{}; }}", ".1".repeat(n)),
        format!("model {{ x = {}1; }}", "a ? 1 : ".repeat(n)),
        format!("model {{ {} ; }}", "if (a) ; else ".repeat(n)),
        format!("model {{ {} ; }}", "if (a) ".repeat(n)),
        format!("model {{ {} ; }}", "while (a) ".repeat(n)),
        format!("functions {{ void f({}real{} x); }}", "tuple(".repeat(n), ",)".repeat(n)),
        format!("model {{ {}real{} x; }}", "tuple(".repeat(n), ",)".repeat(n)),
    ];
    for text in texts {
        let (_, diagnostics) = parse_text(&text);
        let limited = diagnostics.iter().any(|d| d.code.0 == "E2013");
        assert!(limited, "{} … {diagnostics:#?}", &text[..40]);
    }
    // what is long is not deep
    for part in ["x = 1 + 2 * 3;", "if (a) ; else { }", "{ }", "real x = {1, 2}[1];", "while (a) x += 1;"] {
        let (_, diagnostics) = parse_text(&format!("model {{ {} }}", part.repeat(20_000)));
        assert!(diagnostics.is_empty(), "{part} {diagnostics:#?}");
    }
    // deep, and within the limits
    let sum = format!("model {{ x = 1{}; }}", " + 1".repeat(30_000));
    let (program, diagnostics) = parse_text(&sum);
    assert!(diagnostics.is_empty() && dump(&program).len() > 100_000, "{diagnostics:#?}");
}

/// Words that a mutation may put in.
const WORDS: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    ":",
    "?",
    "|",
    "~",
    "=",
    "<-",
    "+=",
    ".*=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "%/%",
    "\\",
    ".*",
    "./",
    "^",
    ".^",
    "\'",
    "!",
    "==",
    "<",
    ">",
    ">=",
    "&&",
    "||",
    "&",
    "**",
    "++",
    "data {",
    "model {",
    "transformed data {",
    "functions {",
    "generated quantities",
    "if (",
    "else",
    "while (",
    "for (i in 1:2)",
    "in",
    "return",
    "break;",
    "print(",
    "reject(",
    "target",
    "target() ",
    "jacobian += ",
    "profile(\"p\") {",
    "void",
    "int",
    "real ",
    "vector[",
    "array[",
    "tuple(",
    "simplex[3] ",
    "<lower=0>",
    "lower",
    "offset",
    "x",
    "f(",
    "T[1, 2]",
    "T",
    "0",
    "1.5",
    "1.",
    ".5",
    ".1",
    "2i",
    "3px",
    "1..2",
    "\"",
    "\"text\"",
    "/*",
    "*/",
    "//",
    "#",
    "#include x\n",
    "\n",
    "é",
    "$",
    "_",
    "y ~ normal(0, 1);",
    "real x[3];",
    "increment_log_prob(1);",
    "normal_log(x, 0, 1)",
];

/// A program with a few random edits.
fn mutated(
    u: &mut arbtest::arbitrary::Unstructured<'_>,
    programs: &[(String, String)],
) -> arbtest::arbitrary::Result<String> {
    let mut text = u.choose(programs)?.1.clone();
    for _ in 0..u.int_in_range(1..=6)? {
        let place = |at: usize, text: &str| (at..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap();
        let at = place(u.choose_index(text.len() + 1)?, &text);
        let end = place((at + u.int_in_range(0..=12)?).min(text.len()), &text);
        match u.int_in_range(0..=3)? {
            0 => text.replace_range(at..end, ""),
            1 => text.insert_str(at, u.choose(WORDS)?),
            2 => text.replace_range(at..end, u.choose(WORDS)?),
            _ => {
                let part = text[at..end].to_owned();
                let to = place(u.choose_index(text.len() + 1)?, &text);
                text.insert_str(to, &part);
            }
        }
    }
    Ok(text)
}

/// Parses, dumps and renders: none of it may panic, whatever the text.
fn swallow(text: &str) {
    let (program, diagnostics, sources) = parse_named("main.stan", text, &mut Itself(text));
    dump(&program);
    render(&diagnostics, &sources, false);
    if diagnostics.iter().all(|d| !d.is_error()) {
        check_format("main.stan", text, &mut Itself(text));
        rewritten("main.stan", text, &mut Itself(text), ALL);
    }
}

#[test]
fn mutated_programs_of_stan_never_panic() {
    let programs = corpus();
    arbtest::arbtest(|u| {
        swallow(&mutated(u, &programs)?);
        Ok(())
    })
    .budget_ms(effort::part(400, 1500));
}

#[test]
fn random_words_of_stan_never_panic() {
    arbtest::arbtest(|u| {
        let mut text = String::from(*u.choose(&["", "model { ", "functions { ", "data { "])?);
        for _ in 0..u.int_in_range(0..=80)? {
            text.push_str(u.choose(WORDS)?);
            text.push(' ');
        }
        swallow(&text);
        Ok(())
    })
    .budget_ms(effort::part(200, 500));
}

fn formatted(name: &str, text: &str, includes: &mut dyn Includes) -> String {
    let mut sources = SourceMap::default();
    let main = sources.add(name, text);
    match format(main, &mut sources, includes) {
        Ok(formatted) => formatted,
        Err(diagnostics) => panic!("{name}:\n{text}\n{}", render(&diagnostics, &sources, false)),
    }
}

/// The comments of a text in their order: all that stands behind `//` and `#` and in `/* */`, without blanks.
fn comments(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['/', '#', '"']) {
        rest = &rest[at..];
        let (comment, length) = if rest.starts_with("//") || (rest.starts_with('#') && !rest.starts_with("#include ")) {
            (true, rest.find('\n').unwrap_or(rest.len()))
        } else if let Some(inside) = rest.strip_prefix("/*") {
            (true, inside.find("*/").map_or(rest.len(), |i| i + 4))
        } else if let Some(inside) = rest.strip_prefix('"') {
            (false, inside.find('"').map_or(rest.len(), |i| i + 2))
        } else if rest.starts_with("#include") {
            (false, rest.find('\n').unwrap_or(rest.len()))
        } else {
            (false, 1)
        };
        if comment {
            found.push(rest[..length].split_whitespace().collect());
        }
        rest = &rest[length..];
    }
    found.sort();
    found
}

/// Formats a program and checks what must hold of the result.
fn check_format(name: &str, text: &str, includes: &mut dyn Includes) -> String {
    let once = formatted(name, text, includes);
    let tree = |text: &str, includes: &mut dyn Includes| dump(&parse_named(name, text, includes).0);
    assert_eq!(tree(text, includes), tree(&once, includes), "{name}: the tree changed\n{text}\n{once}");
    assert_eq!(comments(text), comments(&once), "{name}: the comments changed\n{text}\n{once}");
    let twice = formatted(name, &once, includes);
    assert_eq!(once, twice, "{name}: not idempotent\n{text}");
    once
}

#[test]
fn formatting_stan_keeps_tree_and_comments_and_is_idempotent() {
    let mut shown = String::new();
    for (path, text) in corpus() {
        let once = check_format(&path, &text, &mut IncludeFolders::default());
        for line in once.lines() {
            assert!(line.chars().count() <= MAX_WIDTH && line == line.trim_end(), "{path}: {line}");
        }
        shown.push_str(&format!("== {}\n{once}", Path::new(&path).file_name().unwrap().to_string_lossy()));
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn long_lines_of_stan_are_broken() {
    let sum = ["some_variable[i, j] * another_one"; 4].join(" + ");
    let long = format!(
        "functions {{ real f(real first_parameter, array[,] real second_parameter, data vector third_parameter, int k) {{\n\
         return g({sum}); }} }}\nmodel {{ y ~ normal({sum}, sigma) T[0, ]; x = condition_of_it == 1 ? {sum} : \
         fallback_value; }}"
    );
    insta::assert_snapshot!(check_format("long.stan", &long, &mut NoIncludes));
}

const ALL: Canonical = Canonical { deprecations: true, parentheses: true, braces: true, includes: true };

fn rewritten(name: &str, text: &str, includes: &mut dyn Includes, what: Canonical) -> String {
    let canonical = |text: &str, includes: &mut dyn Includes| {
        let mut sources = SourceMap::default();
        let main = sources.add(name, text);
        match canonicalize(main, &mut sources, includes, what) {
            Ok(text) => text,
            Err(diagnostics) => panic!("{name}:\n{text}\n{}", render(&diagnostics, &sources, false)),
        }
    };
    let once = canonical(text, includes);
    assert_eq!(once, canonical(&once, includes), "{name}: not idempotent\n{text}");
    once
}

#[test]
fn old_programs_are_rewritten() {
    let mut shown = String::new();
    for (path, text) in corpus() {
        let once = rewritten(&path, &text, &mut IncludeFolders::default(), ALL);
        let (_, diagnostics, sources) = parse_named(&path, &once, &mut NoIncludes);
        assert!(diagnostics.is_empty(), "{once}\n{}", render(&diagnostics, &sources, false));
        assert!(comments(&text).len() <= comments(&once).len(), "{path}");
        shown.push_str(&format!("== {}\n{once}", Path::new(&path).file_name().unwrap().to_string_lossy()));
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn braces_close_before_an_old_comment() {
    let text = "model { if (1 > 0) target += 1;# one\n else target += 2; }";
    let made = rewritten("comment.stan", text, &mut NoIncludes, ALL);
    assert!(made.contains("target += 1;") && made.contains("} // one") || made.contains("// one\n"), "{made}");
    assert_eq!((made.matches('{').count(), made.matches('}').count()), (3, 3), "{made}");
}

#[test]
fn parts_of_numbers_keep_their_parentheses() {
    let text = "model { print((12).2, ((3)).1, (x).1); }";
    assert_eq!(rewritten("parts.stan", text, &mut NoIncludes, ALL), "model {\n  print((12).2, ((3)).1, x.1);\n}\n");
}

#[test]
fn names_that_stand_at_brackets_stay_names() {
    let text = "functions { real[,]f(real[]x, int[]k) { return x; } }";
    let expected = "functions {\n  array[,] real f(array[] real x, array[] int k) {\n    return x;\n  }\n}\n";
    assert_eq!(rewritten("brackets.stan", text, &mut NoIncludes, ALL), expected);
}

/// Expressions, and what is left of their parentheses. As `stanc --print-canonical` of Stan 2.39 has them.
#[test]
fn parentheses_that_change_nothing_go() {
    let only = Canonical { parentheses: true, ..Canonical::default() };
    let cases = [
        ("((a))", "a"),
        ("(a) + (b)", "a + b"),
        ("(a + b) * (c)", "(a + b) * c"),
        ("((a + b)) * c", "(a + b) * c"),
        ("(f(a))", "f(a)"),
        ("f((a + b), (c))", "f(a + b, c)"),
        ("-(-a)", "-(-a)"),
        ("(a)\'", "a\'"),
        ("x[(i + 1)]", "x[i + 1]"),
        ("x[(i + 1) : (n)]", "x[(i + 1) : n]"),
        ("a < b < c", "(a < b) < c"),
        ("{(a), [(b)]}", "{a, [b]}"),
        ("(a ? (b) : c)", "a ? b : c"),
        ("a ? (b + c) : (-d)", "a ? (b + c) : (-d)"),
    ];
    for (text, wanted) in cases {
        let program = format!("model {{\n  print({text});\n}}\n");
        let wanted = format!("model {{\n  print({wanted});\n}}\n");
        assert_eq!(rewritten("main.stan", &program, &mut NoIncludes, only), wanted);
    }
}

/// The programs below a folder, in the order of their names.
fn programs_below(folder: PathBuf) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "stan" || e == "stanfunctions") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn parses(path: &Path) -> bool {
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let folder = path.parent().unwrap();
    let mut includes = IncludeFolders { folders: vec![folder.join("included"), folder.to_owned()] };
    let (_, diagnostics, _) = parse_named(&path.display().to_string(), &text, &mut includes);
    diagnostics.iter().all(|d| !d.is_error())
}

/// For a checkout of stanc3, named by `STANC3`: what it parses we parse, and what it refuses as a syntax error we refuse,
/// but for old syntax, which we take with a warning.
#[test]
fn stanc3_syntax() {
    let Some(checkout) = std::env::var_os("STANC3").map(PathBuf::from) else {
        eprintln!("skipped: STANC3 names no checkout of stanc3");
        return;
    };
    let tests = checkout.join("test/integration");
    let good = programs_below(tests.join("good"));
    let refused: Vec<&PathBuf> = good.iter().filter(|p| !parses(p)).collect();
    assert!(good.len() > 1000 && refused.is_empty(), "{} of {} refused: {refused:#?}", refused.len(), good.len());
    let (mut wrong, mut syntax, mut others, mut other_refused) = (Vec::new(), 0, 0, Vec::new());
    for path in programs_below(tests.join("bad")) {
        let old = path.components().any(|c| c.as_os_str() == "removed_features");
        match expected(&path) {
            Some(said) if said.contains("Syntax error") => {
                syntax += 1;
                if parses(&path) && !old {
                    wrong.push(path);
                }
            }
            Some(_) => {
                others += 1;
                if !parses(&path) {
                    other_refused.push(path);
                }
            }
            None => {}
        }
    }
    let mut formattable = 0;
    for path in &good {
        let (Ok(text), Some(folder)) = (std::fs::read_to_string(path), path.parent()) else { continue };
        let mut includes = IncludeFolders { folders: vec![folder.join("included"), folder.to_owned()] };
        if !text.contains("#include") {
            check_format(&path.display().to_string(), &text, &mut includes);
            rewritten(&path.display().to_string(), &text, &mut includes, ALL);
            formattable += 1;
        }
    }
    println!("{formattable} of them keep their trees when they are formatted");
    println!(
        "{} good programs parse; of {syntax} syntax errors {} parse; of {others} others {} are refused",
        good.len(),
        wrong.len(),
        other_refused.len()
    );
    assert!(syntax > 500 && wrong.is_empty(), "{wrong:#?}");
    assert!(other_refused.len() * 20 < others, "{other_refused:#?}");
}

/// What stanc says about a program: the text behind its command in a file `….expected` beside it.
fn expected(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    for entry in std::fs::read_dir(path.parent()?).ok()? {
        let file = entry.ok()?.path();
        if file.extension().is_some_and(|e| e == "expected") {
            let text = format!("\n{}", String::from_utf8_lossy(&std::fs::read(&file).ok()?));
            let mut parts =
                text.split("\n  $ ").filter(|p| p.lines().next().is_some_and(|l| l.ends_with(&format!(" {name}"))));
            if let Some(part) = parts.next() {
                return Some(part.to_owned());
            }
        }
    }
    None
}

/// For a checkout of posteriordb, named by `POSTERIORDB`.
#[test]
fn posteriordb_syntax() {
    let Some(checkout) = std::env::var_os("POSTERIORDB").map(PathBuf::from) else {
        eprintln!("skipped: POSTERIORDB names no checkout of posteriordb");
        return;
    };
    let below = ["posterior_database/models/stan", "models/stan"].map(|f| checkout.join(f));
    let folder = below.into_iter().find(|f| f.is_dir()).expect("a checkout has models");
    let programs = programs_below(folder);
    let refused: Vec<&PathBuf> = programs.iter().filter(|p| !parses(p)).collect();
    for path in &programs {
        let text = std::fs::read_to_string(path).unwrap();
        check_format(&path.display().to_string(), &text, &mut IncludeFolders::default());
        rewritten(&path.display().to_string(), &text, &mut IncludeFolders::default(), ALL);
    }
    println!("{} programs of posteriordb", programs.len());
    assert!(programs.len() >= 100 && refused.is_empty(), "{refused:#?}");
}
