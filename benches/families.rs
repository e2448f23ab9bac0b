//! Programs that grow in one way, for what measures how compile time grows: `compile.rs` here, and
//! `tests/it/compiler/compile_time.rs`. Each has `f(x: real, c: real, k: int) -> real`.

use std::fmt::Write as _;

/// A family of programs: its name, and the one of a size.
pub(super) type Family = (&'static str, fn(usize) -> String);

/// Calls `f`.
pub(super) const VALUE: &str = "pub fn main(x: real, c: real, k: int) -> real { f(x, c, k) }\n";
/// Calls its derivative.
pub(super) const GRADIENT: &str = "pub fn main(x: real, c: real, k: int) -> real { grad(f)(x, c, k) }\n";

const HEAD: &str = "pub fn f(x: real, c: real, k: int) -> real {";

/// A head, so many lines, and the rest.
fn program(head: &str, line: &str, n: usize, rest: &str) -> String {
    format!("{HEAD}\n{head}{}{rest}", format!("    {line}\n").repeat(n))
}

/// The same with lines that differ.
fn lines(head: &str, line: impl Fn(usize) -> String, n: usize, rest: &str) -> String {
    let lines: String = (0..n).map(|i| format!("    {}\n", line(i))).collect();
    format!("{HEAD}\n{head}{lines}{rest}")
}

/// Assignments to two variables in turns.
pub(super) fn assignments(n: usize) -> String {
    let head = "    let mut a = x;\n    let mut b = c;\n";
    lines(head, |i| ["b = 0.5 * a + sin(b) * c;", "a = 0.5 * b + sin(a) * c;"][i % 2].to_owned(), n, "    a + b\n}\n")
}

/// Variables that are set once.
pub(super) fn lets(n: usize) -> String {
    let line = |i| format!("let y{} = 0.5 * y{i} + sin(y{}) * c;", i + 1, i / 2);
    lines("    let y0 = x;\n", line, n, &format!("    y{n}\n}}\n"))
}

/// `if`s with two arms, one after another.
pub(super) fn branches(n: usize) -> String {
    let line = "if a > c { a = a - log(a + 9.0); } else { a = a * 1.5 + c; }";
    program("    let mut a = x;\n", line, n, "    a\n}\n")
}

/// One `if` with many arms.
pub(super) fn else_ifs(n: usize) -> String {
    let line = |i| format!("else if x < {}.0 {{ x * {i}.5 + c }}", i + 1);
    lines("    if x < 0.0 { c }\n", line, n, "    else { x }\n}\n")
}

/// One sum of many terms.
pub(super) fn terms(n: usize) -> String {
    lines("    c\n", |i| format!("+ sin(x * {i}.5)"), n, "}\n").replace("\n    +", " +\n       ").replace("+\n}", "\n}")
}

/// Loops that may be left, one after another.
pub(super) fn loops(n: usize) -> String {
    let line = "for i in 0..k { a = 0.5 * a + c; if a > 3.0 { break; } }";
    program("    let mut a = x;\n", line, n, "    a\n}\n")
}

/// Functions of six lines that each call the one before.
pub(super) fn chain(n: usize) -> String {
    let mut text = "fn f0(x: real, k: int) -> real { x }\n".to_owned();
    for i in 1..=n {
        let last = i - 1;
        let _ = write!(
            text,
            "fn f{i}(x: real, k: int) -> real {{\n    if x > 50.0 {{ return x; }}\n    let mut a = x;\n    let mut j = 0;\n    \
             while j < k {{ a = a * 0.9 + 0.1; j += 1; }}\n    f{last}(a, k) + 1.0\n}}\n"
        );
    }
    text + &format!("{HEAD} f{n}(x + c, k) }}\n")
}

/// Functions of one line that each call the one before.
pub(super) fn plain_chain(n: usize) -> String {
    let mut text = "fn f0(x: real) -> real { x * x }\n".to_owned();
    (1..=n).for_each(|i| _ = writeln!(text, "fn f{i}(x: real) -> real {{ f{}(x) + 1.0 }}", i - 1));
    text + &format!("{HEAD} f{n}(x) + c }}\n")
}

/// A recursion over a dimension: as many functions as it has numbers.
pub(super) fn dimensions(n: usize) -> String {
    let recursion = "fn r[n](x: real[n]) -> real { if n == 0 { 0.0 } else { x[0] * x[0] + r(x[1..]) } }\n";
    format!("{recursion}{HEAD} r(fill(x, {n})) + c }}\n")
}

/// Functions of twelve lines with loops over arrays, called one after another.
pub(super) fn arrays(n: usize) -> String {
    let mut text = String::new();
    for i in 0..n {
        let _ = write!(
            text,
            "fn g{i}(x: real[4], c: real) -> real[4] {{\n    let mut a = x;\n    let mut s = 0.0;\n    for i in 0..4 {{\n        \
             a[i] = a[i] * 0.9 + c;\n        s += a[i];\n    }}\n    if s > 3.0 {{\n        for i in 0..4 {{ a[i] = a[i] - 0.1 * s; }}\n    \
             }}\n    a\n}}\n"
        );
    }
    text + &lines("    let mut a = fill(x, 4);\n", |i| format!("a = g{i}(a, c);"), n, "    sum(a)\n}\n")
}

/// Steps over a long row axis, all of which may run tile by tile.
pub(super) fn rows(n: usize) -> String {
    program("    let mut v = fill(x, 600);\n", "v = 0.5 * v + sin(v) * c;", n, "    sum(v)\n}\n")
}

/// Steps over a long row axis, each of which waits for a sum over the rows.
pub(super) fn row_sums(n: usize) -> String {
    let head = "    let v = fill(x, 600);\n    let mut s = 0.0;\n";
    program(head, "s = s + sum(exp(v * s));", n, "    s\n}\n")
}

/// A function that calls itself with many arguments, which change places.
pub(super) fn arguments(n: usize) -> String {
    let params: String = (0..n).map(|i| format!("a{i}: real, ")).collect();
    let turned: String = (0..n).map(|i| format!("a{}, ", (i + 1) % n)).collect();
    let first: String = (0..n).map(|i| format!("x * {i}.0, ")).collect();
    let sum: String = (0..n).map(|i| format!(" + {i}.5 * a{i}")).collect();
    format!(
        "fn r({params}k: int) -> real {{ if k == 0 {{ 0.0{sum} }} else {{ 2.0 * r({turned}k - 1) }} }}\n{HEAD} r({first}k) + c }}\n"
    )
}

/// A comprehension with many `if`s in its element.
pub(super) fn comprehension(n: usize) -> String {
    let line = "if a > c { a = a - log(a + 9.0); } else { a = a * 1.5 + c; }";
    let head = "    let v = fill(x, 30);\n    sum({ let mut a = v[i];\n";
    program(head, line, n, "    a } for i in 0..30)\n}\n")
}

/// Functions of twenty lines with a bit of everything, called one after another: a program of about so many lines.
pub(super) fn mixed(n: usize) -> String {
    let units = n / 20;
    let mut text = String::new();
    for i in 0..units {
        let _ = write!(
            text,
            "fn unit{i}(x: real, c: real, k: int) -> real {{
    let mut a = x + {i}.0 * c;
    let mut b = c;
    b = 0.5 * a + sin(b) * c;
    a = 0.3 * b + exp(-a * a);
    if a > b {{
        a = a - log(b * b + 9.0);
    }} else {{
        a = a * 1.5 + c;
    }}
    for i in 0..k {{
        a = 0.5 * a + c;
        if a > 3.0 {{ break; }}
    }}
    let v = [a * real(i) + b for i in 0..4];
    let w = v * v + {i}.5;
    a = a + sum(w) * 0.01;
    if a < 0.0 {{ return b; }}
    a + b
}}
"
        );
    }
    text + &lines("    let mut a = x;\n", |i| format!("a = unit{i}(a, c, k);"), units, "    a\n}\n")
}
