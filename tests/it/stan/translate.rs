//! Stan programs with their data as programs of the language: what is refused, and what the translation looks like.

use autobatch::program::{Error, StanModel, Terms};
use serde_json::{Map, Value, json};

use super::{read, root};

/// The program and the data, translated.
fn translated(name: &str, program: &str, data: Value) -> Result<StanModel, Error> {
    let folder = std::env::temp_dir().join(format!("autobatch-translate-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let path = folder.join("model.stan");
    std::fs::write(&path, program).expect("a file can be written");
    let data = if let Value::Object(map) = data { map } else { Map::new() };
    let made = StanModel::load(&path, &data, Terms::default());
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
    made
}

/// Code and message of the only error.
fn refused(name: &str, program: &str, data: Value) -> (String, String) {
    let error = translated(name, program, data).expect_err("it is refused");
    let [found] = error.diagnostics() else { panic!("{:?}", error.diagnostics()) };
    (found.code.0.to_owned(), found.message.clone())
}

#[test]
fn all_faults_of_the_data_are_told_but_what_depends_on_one_that_is_not_there() {
    let program = "data { int N; vector<upper=10>[N] y; int K; vector[K] of_k; array[N] int<lower=1> g; simplex[2] p; } \
                   parameters { real m; } model { m ~ normal(0, 1); }";
    let data = json!({"N": 2, "y": [1, 11], "of_k": [1], "g": [1], "p": [0.3, 0.8]});
    let error = translated("faults", program, data).expect_err("it is refused");
    let told: Vec<(&str, &[String])> = error.diagnostics().iter().map(|d| (&*d.message, &d.notes[..])).collect();
    let notes: Vec<bool> = told.iter().map(|(_, notes)| notes[0].starts_with("(in '")).collect();
    assert_eq!(notes, [true; 4], "{told:?}");
    let messages: Vec<&str> = told.iter().map(|(message, _)| *message).collect();
    let wanted = [
        "`y[2]` is 11, but must be at most 10",
        "the data lack `K`, int",
        "`g` has 1 entries, but the program declares array[] int of size 2",
        "`p` is no simplex: its sum is 1.1",
    ];
    assert_eq!(messages, wanted);
}

#[test]
fn every_code_of_the_translator_has_a_program_that_gives_it() {
    let text = read(&root().join("grammar/errors.d/stan_translate.md"));
    for section in text.split("\n## ").map(|section| section.trim_start_matches("## ")) {
        let (code, rest) = section.split_once(':').expect("a heading is `CODE: title`");
        let (_, rest) = rest.split_once("```stan\n").expect("it has a program");
        let (program, _) = rest.split_once("```").expect("the program ends");
        assert_eq!(refused(code, program, json!({})).0, code);
    }
}

#[test]
fn data_that_do_not_fit_are_told_in_the_words_of_both() {
    let program = "data { int<lower=1> N; array[N] real y; } parameters { real mu; } model { y ~ normal(mu, 1); }";
    let cases = [
        (json!({"y": [1]}), "the data lack `N`, int"),
        (json!({"N": 0, "y": []}), "`N` is 0, but must be at least 1"),
        (json!({"N": 1.5, "y": [1]}), "`N` is 1.5, which is no int, as int wants"),
        (json!({"N": 3, "y": [1, 2]}), "`y` has 2 entries, but the program declares array[] real of size 3"),
        (json!({"N": 2, "y": [1, "x"]}), "`y[2]` is \"x\", which is no number"),
        (json!({"N": 2_000_000_000, "y": []}), "a variable of 2000000000 elements has no room"),
    ];
    for (i, (data, words)) in cases.into_iter().enumerate() {
        let (code, message) = refused(&format!("data{i}"), program, data);
        assert_eq!((code.as_str(), message.as_str()), ("E2502", words));
    }
}

#[test]
fn what_is_drawn_of_data_is_that_of_the_seed() {
    let folder = std::env::temp_dir().join(format!("autobatch-drawn-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let path = folder.join("model.stan");
    let program = "transformed data { int n = poisson_rng(9); vector[n] y = to_vector(normal_rng(rep_vector(0, n), 1)); } \
                   parameters { real m; } model { y ~ normal(m, 1); } generated quantities { vector[n] of = y; }";
    std::fs::write(&path, program).expect("a file can be written");
    let of = |seed| {
        let model = StanModel::load_with(&path, &Map::new(), Terms::default(), (&[], seed)).expect("it translates");
        model.program().expect("it compiles");
        model.text().to_owned()
    };
    let [first, again, other] = [1, 1, 2].map(of);
    assert_eq!(first, again);
    assert_ne!(first, other);
    assert!(!first.contains("_rng"), "{first}");
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
}

#[test]
fn a_draw_of_data_that_there_is_not_is_an_error() {
    let program = "transformed data { real x = normal_rng(0, -1); } parameters { real y; } model { y ~ normal(x, 1); }";
    let (code, message) = refused("no_draw", program, json!({}));
    assert_eq!(code, "E2502");
    assert_eq!(message, "normal_rng: Scale parameter is -1, but must be positive finite!");
}

#[test]
fn complex_numbers_of_the_data_are_pairs() {
    let program =
        "data { array[2] complex_vector[1] v; } parameters { complex z; } model { target += -norm(z * v[1, 1]); }";
    let lists = "a complex number is a list of two: [real, imaginary]";
    let cases = [
        (json!({}), "the data lack `v`, array[] complex_vector of size 2, 1".to_owned()),
        (json!({"v": [[1], [[1, 2]]]}), format!("`v[1][1]` is 1, but {lists}")),
        (json!({"v": [[[1, 2]], [[1, 2, 3]]]}), format!("`v[2][1]` is a list of 3, but {lists}")),
        (json!({"v": [[[1, 2]], [[1, "x"]]]}), "`v[2][1]` is \"x\", which is no number".to_owned()),
    ];
    for (i, (data, words)) in cases.into_iter().enumerate() {
        let (code, message) = refused(&format!("complex{i}"), program, data);
        assert_eq!((code.as_str(), message), ("E2502", words));
    }
}

#[test]
fn operators_of_complex_numbers_are_those_of_their_parts() {
    let program = "parameters { complex_vector[3] v; } model { target += sum(get_imag(v * 2i .* v)); }";
    let model = translated("complex", program, json!({})).expect("it translates");
    let text = density(&model).join("\n");
    assert!(text.contains("q[0..6]") && !text.contains("0.0 *"), "{text}");
}

#[test]
fn functions_of_complex_matrices_that_are_not_there_are_named() {
    for (i, (call, name)) in [
        ("eigenvalues(m)", "`eigenvalues`"),
        ("svd_U(m)", "`svd_U`"),
        ("to_vector(complex_schur_decompose_t(m))", "`complex_schur_decompose_t`"),
    ]
    .into_iter()
    .enumerate()
    {
        let program = format!("parameters {{ complex_matrix[2, 2] m; }} model {{ target += get_real(sum({call})); }}");
        let (code, message) = refused(&format!("decomposition{i}"), &program, json!({}));
        assert!(code == "E2501" && message.starts_with(name), "{message}");
    }
}

#[test]
fn indices_that_are_known_are_looked_at_before_the_run() {
    let program = "data { array[2] int k; } parameters { vector[3] x; } model { target += x[k[2]]; }";
    let (code, message) = refused("index", program, json!({"k": [1, 4]}));
    assert_eq!((code.as_str(), message.as_str()), ("E2502", "index 4 is out of range: there are 3"));
}

#[test]
fn what_functions_demand_of_known_arguments_is_said_before_the_run_as_stan_says_it() {
    let cases = [
        ("target += normal_lpdf(x | 0, -1);", "normal_lpdf: Scale parameter is -1, but must be positive!"),
        ("2 ~ bernoulli(p);", "bernoulli_lpmf: n is 2, but must be in the interval [0, 1]"),
        ("k ~ bernoulli(p);", "bernoulli_lpmf: n[2] is 3, but must be in the interval [0, 1]"),
        ("1 ~ bernoulli(2.5);", "bernoulli_lpmf: Probability parameter is 2.5, but must be in the interval [0, 1]"),
        ("k ~ binomial(2, p);", "binomial_lpmf: Successes variable[2] is 3, but must be in the interval [0, 2]"),
        ("-1 ~ poisson(exp(x));", "poisson_lpmf: Random variable is -1, but must be nonnegative!"),
        ("0 ~ gamma(exp(x), 1);", "gamma_lpdf: Random variable is 0, but must be positive finite!"),
        ("k ~ poisson_log_glm([[1], [2]], x, [x]');", ""),
        (
            "k ~ bernoulli_logit_glm([[1], [2]], x, [x]');",
            "bernoulli_logit_glm_lpmf: Vector of dependent variables[2] is 3, but must be in the interval [0, 1]",
        ),
        (
            "3 ~ categorical([p, 1 - p]');",
            "categorical_lpmf: Number of categories is 3, but must be in the interval [1, 2]",
        ),
        (
            "[x, 1]' ~ multi_normal([0, 0]', [[1, 2], [2, 1]]);",
            "multi_normal_lpdf: Covariance matrix is not positive definite",
        ),
        (
            "target += lkj_corr_cholesky_lpdf([[1, 0.5], [0, 1]] | 2.0);",
            "lkj_corr_cholesky_lpdf: Random variable must be lower triangular",
        ),
        (
            "target += lkj_corr_lpdf([[1, 0.5], [0.5, 2]] | 2.0);",
            "lkj_corr_lpdf: Correlation matrix must have a unit diagonal",
        ),
        (
            "target += multi_gp_cholesky_lpdf([[x, 1]] | [[1, 0], [1, 1]], [-1]');",
            "multi_gp_cholesky_lpdf: Kernel scales[1] is -1, but must be positive finite!",
        ),
        ("target += x * inverse_spd([[1, 2], [2, 1]])[1, 1];", "inverse_spd: m is not positive definite"),
        (
            "target += x * mdivide_left_spd([[1, 0.5], [0.4, 1]], [1, 2]')[1];",
            "mdivide_left_spd: A is not symmetric. A[1,2] = 0.5, but A[2,1] = 0.4",
        ),
        (
            "target += x * gp_exp_quad_cov({1.0, 2}, 1.0, -1.5)[1, 2];",
            "gp_exp_quad_cov: length scale is -1.5, but must be positive!",
        ),
        (
            "target += x * gp_periodic_cov({1.0, 2}, 1.0, 2.0, 0.0)[1, 2];",
            "gp_periodic_cov: period is 0, but must be positive!",
        ),
        (
            "target += beta_lcdf(1.5 | exp(x), 3);",
            "beta_lcdf: Random variable is 1.5, but must be in the interval [0, 1]",
        ),
        (
            "target += von_mises_cdf(4 | x, 1);",
            "von_mises_cdf: Random variable is 4, but must be in the interval [-3.14159, 3.14159]",
        ),
        (
            "target += hmm_marginal([[x, 1], [0, 2]], [[0.5, 0.5], [0.5, 0.4]], [0.5, 0.5]');",
            "hmm_marginal: Gamma[2, ] must be a simplex: sum to 1",
        ),
        (
            "target += hmm_marginal([[x, 1], [0, 2]], [[1]], [0.5, 0.5]');",
            "hmm_marginal: Gamma has the size 1 x 1, but must have 2 x 2",
        ),
        (
            "target += wishart_lpdf(exp(x) * identity_matrix(3) | 2, identity_matrix(3));",
            "wishart_lpdf: Degrees of freedom parameter is 2, but must be greater than 2",
        ),
        (
            "k ~ poisson_log_glm([[1], [2]], x, [negative_infinity()]');",
            "poisson_log_glm_lpmf: Weight vector[1] is -inf, but must be finite!",
        ),
        (
            "target += cholesky_decompose([[1, 0.5], [0.25, 1]])[2, 1] * x;",
            "cholesky_decompose: m is not symmetric. m[1,2] = 0.5, but m[2,1] = 0.25",
        ),
    ];
    for (i, (statement, words)) in cases.into_iter().enumerate() {
        let program = format!(
            "transformed data {{ array[2] int k = {{1, 3}}; }} parameters {{ real x; real<lower=0, upper=1> p; }} \
             model {{ {statement} }}"
        );
        if words.is_empty() {
            translated(&format!("support{i}"), &program, json!({})).expect("it translates");
            continue;
        }
        let (code, message) = refused(&format!("support{i}"), &program, json!({}));
        assert_eq!((code.as_str(), message.as_str()), ("E2502", words));
    }
}

#[test]
fn data_are_what_their_constraints_say() {
    for (declared, good, bad, words) in [
        ("simplex[2]", json!([0.5, 0.5]), json!([1.5, -0.5]), "is no simplex: it has -0.5"),
        ("simplex[2]", json!([1, 0]), json!([0.5, "NaN"]), "is no simplex: its sum is NaN"),
        ("ordered[2]", json!([1, 2]), json!([1, 1]), "is not ordered: 1 comes before 1"),
        ("ordered[2]", json!([-1, 0]), json!(["NaN", 1]), "is not ordered: NaN comes before 1"),
        ("positive_ordered[2]", json!([0, 2]), json!([-1, 1]), "is not positive: it begins with -1"),
        ("unit_vector[2]", json!([0.6, 0.8]), json!([1, 1]), "is no unit vector: its squared length is 2"),
        ("sum_to_zero_vector[2]", json!([1, -1]), json!([1, 1]), "does not sum to 0, but to 2"),
        (
            "sum_to_zero_matrix[2, 2]",
            json!([[1, -1], [-1, 1]]),
            json!([[1, -1], [1, -1]]),
            "does not sum to 0, but to 2 in column 1",
        ),
        ("cov_matrix[2]", json!([[2, 1], [1, 2]]), json!([[1, 2], [3, 1]]), "is not symmetric"),
        ("cov_matrix[2]", json!([[2, 1], [1, 2]]), json!([[1, 2], [2, 1]]), "is not positive definite"),
        (
            "corr_matrix[2]",
            json!([[1, 0.5], [0.5, 1]]),
            json!([[1, 0], [0, 2]]),
            "is no correlation matrix: its diagonal has 2",
        ),
        ("corr_matrix[2]", json!([[1, 0], [0, 1]]), json!([[1, 2], [2, 1]]), "is not positive definite"),
        (
            "cholesky_factor_cov[2]",
            json!([[2, 0], [1, 2]]),
            json!([[1, 2], [0, 1]]),
            "is not lower triangular: it has 2 in row 1, column 2",
        ),
        (
            "cholesky_factor_cov[3, 2]",
            json!([[2, 0], [1, 2], [3, 4]]),
            json!([[1, 0], [0, -1], [2, 2]]),
            "is no Cholesky factor: its diagonal has -1",
        ),
        (
            "cholesky_factor_corr[2]",
            json!([[1, 0], [0.6, 0.8]]),
            json!([[1, 0], [0.5, 1]]),
            "is no unit vector: its squared length is 1.25 in row 2",
        ),
        (
            "row_stochastic_matrix[2, 2]",
            json!([[1, 0], [0.5, 0.5]]),
            json!([[1, 0], [0.5, 0.25]]),
            "is no simplex: its sum is 0.75 in row 2",
        ),
        (
            "column_stochastic_matrix[2, 2]",
            json!([[1, 0.5], [0, 0.5]]),
            json!([[1, 0], [0.5, 1]]),
            "is no simplex: its sum is 1.5 in column 1",
        ),
    ] {
        let program = format!("data {{ {declared} s; }} parameters {{ real x; }} model {{ x ~ normal(0, 1); }}");
        translated("constrained-data", &program, json!({"s": good})).expect("it translates");
        let (code, message) = refused("constrained-data", &program, json!({"s": bad}));
        assert_eq!((code.as_str(), message), ("E2502", format!("`s` {words}")), "{declared}");
    }
}

#[test]
fn a_run_says_of_every_function_that_is_not_there_where_it_is_called() {
    let program = "parameters { vector[2] x; } model { x ~ normal(0, 1); } generated quantities { \
                   complex_matrix[2, 2] t = complex_schur_decompose_t([[1, x[1]], [x[2], 1]]); \
                   complex_vector[2] e = eigenvalues([[1, x[1]], [x[2], 1]]); }";
    let error = translated("lacking", program, json!({})).expect_err("it is refused");
    let told = error.diagnostics().iter().map(|d| format!("{} {}", d.code.0, d.message));
    let there = "known, not supported yet";
    let wanted = [format!("W2110 `eigenvalues`: {there}"), format!("E2501 `complex_schur_decompose_t`: {there}")];
    assert_eq!(told.collect::<Vec<_>>(), wanted);
}

/// The lines of the log density, without its head.
fn density(model: &StanModel) -> Vec<&str> {
    let text = model.text().lines().skip_while(|line| !line.starts_with("pub fn log_density"));
    let body = text.skip(1).take_while(|line| *line != "}");
    body.map(str::trim).collect()
}

#[test]
fn turns_that_depend_on_nothing_are_a_sum() {
    let program = "data { array[3] real y; array[3] int k; } parameters { vector[2] a; }
        model { for (i in 1:3) y[i] ~ normal(a[k[i]], 1); }";
    let model = translated("sum", program, json!({"y": [1, 2, 3], "k": [1, 2, 1]})).expect("it translates");
    assert_eq!(
        density(&model),
        ["let a = q[0..2];", "sum(normal_lpdf(y[i], a[data1[i]], 1) for i in 0..3) + 2.7568155996140185"]
    );
}

#[test]
fn elements_of_few_values_are_gathered_from_one_array_of_these() {
    let program = "data { array[12] int k; } parameters { real a; vector[2] b; }
        model { vector[12] x;
            for (i in 1:12) if (k[i] == 0) x[i] = a; else if (k[i] < 3) x[i] = b[k[i]]; else x[i] = 7;
            x ~ logistic(0, 1); target += -dot_self(x); }";
    let k = json!([0, 1, 2, 3, 0, 1, 2, 3, 2, 0, 0, 3]);
    let model = translated("gathered", program, json!({"k": k})).expect("it translates");
    assert_eq!(
        density(&model),
        [
            "let a = q[0];",
            "let b = q[1..3];",
            "let x0 = concat([a], b, fill(7.0, 1));",
            "let x1 = [x0[k[k0]] for k0 in 0..12];",
            "logistic_lpdf(x1, 0, 1) + -dot(x1, x1)"
        ]
    );
}

/// The lines of the functions before the log density.
fn routines(model: &StanModel) -> Vec<&str> {
    let text = model.text().lines().take_while(|line| !line.starts_with("pub fn log_density"));
    text.map(str::trim).filter(|line| !line.is_empty()).collect()
}

#[test]
fn a_loop_whose_turns_parameters_decide_is_a_function() {
    let program = "data { vector[3] y; } parameters { real a; }
        model { real x = a; int k = 0;
            while (x < 1) { k = 1 + k % 3; x += exp(y[k]); target += -x; }
            target += k; }";
    let model = translated("while", program, json!({"y": [1, 2, 3]})).expect("it translates");
    assert_eq!(
        routines(&model),
        [
            "fn loop_1(mut k: int, mut x: real, shared y: real[3]) -> real[3] {",
            "let mut target = 0.0;",
            "while x < 1 {",
            "let k_2 = 1 + k % 3;",
            "let x0 = x + exp(y[k_2 - 1]);",
            "target += -x0;",
            "k = k_2;",
            "x = x0;",
            "}",
            "[real(k), x, target]",
            "}",
        ]
    );
    assert_eq!(density(&model), ["let a = q[0];", "let x0 = loop_1(0, a, y);", "x0[2] + int(x0[0])"]);
}

#[test]
fn a_function_that_calls_itself_where_parameters_say_so_is_a_function() {
    let program = "functions { real f(real x, int depth, real c) {
            if (x < c) return depth * x;
            return f(0.5 * x, depth + 1, c); } }
        parameters { real a; }
        model { target += f(a, 0, 1.5); }";
    let model = translated("recursion", program, json!({})).expect("it translates");
    assert_eq!(
        routines(&model),
        [
            "fn f_1(x: real, depth: int) -> real {",
            "let x0 = int(x < 1.5);",
            "let x1 = if x0 == 0 { f_1(0.5 * x, depth + 1) } else { 0.0 };",
            "select(x0 != 0, depth * x, x1)",
            "}",
        ]
    );
    assert_eq!(density(&model), ["let a = q[0];", "f_1(a, 0)"]);
}

#[test]
fn sizes_do_not_change_where_parameters_decide() {
    let program = |body: &str| {
        format!("functions {{ {body} }} parameters {{ real<lower=0> a; }} model {{ f(a) ~ normal(0, 1); }}")
    };
    let cases = [
        (
            "vector f(real a) { real x = a; vector[2] v = [1, 2]'; while (x < 1) { x += 1; v = append_row(v, x); } return v; }",
            ("E2502", "the variable has the size [2], the value [3]"),
        ),
        (
            "vector f(real a) { int n = 1; while (n < a) n += 1; return rep_vector(1, n); }",
            ("E2501", "a size that depends on parameters and has no bound: known, not supported yet"),
        ),
        (
            "vector f(real a) { if (a < 1) return [1, a]'; return append_row(f(a - 1), 1); }",
            ("E2502", "`f` gives values of different sizes"),
        ),
        (
            "vector f(real a) { if (a < 1) return f(a + 1); return f(a - 1); }",
            ("E2501", "the size of what `f` gives: every way through it calls it again"),
        ),
    ];
    for (i, (body, words)) in cases.into_iter().enumerate() {
        let (code, message) = refused(&format!("sizes{i}"), &program(body), json!({}));
        assert_eq!((code.as_str(), message.as_str()), words);
    }
}

#[test]
fn matrices_that_are_symmetric_by_what_they_are_made_of_are_not_looked_at() {
    let cases = [
        ("add_diag(gp_exp_quad_cov(x, s, 1), 0.1) + diag_matrix(rep_vector(s, 3))", 0),
        ("square(s) * exp(-D / s)", 0),
        ("[[2, s, 0], [s, 2, 1], [0, 1, 2]]", 0),
        ("[[2, s, 0], [-s, 2, 1], [0, 1, 2]]", 1),
        ("gp_exp_quad_cov(x, {s, x[2], x[3]}, s, 1)", 1),
        ("quad_form_diag(gp_exp_quad_cov(x, s, 1), [s, 2, s]')", 0),
        ("quad_form_diag(m, [s, 2, s]')", 1),
        ("diag_post_multiply(diag_pre_multiply([s, 2, 3]', gp_exp_quad_cov(x, s, 1)), [s, 2, s]')", 1),
        ("m * m'", 0),
        ("m[, 1:2] * m[, 1:2]'", 0),
        ("m * m", 1),
        ("exp(m)", 1),
        ("m + m'", 1),
    ];
    for (i, (matrix, checks)) in cases.into_iter().enumerate() {
        let program = format!(
            "data {{ array[3] real x; matrix[3, 3] D; }} parameters {{ real<lower=0> s; matrix[3, 3] m; }}
             model {{ target += cholesky_decompose({matrix})[3, 3]; }}"
        );
        let data = json!({"x": [0.1, 0.7, 1.9], "D": [[0, 0.5, 1.5], [0.5, 0, 0.8], [1.5, 0.8, 0]]});
        let model = translated(&format!("symmetric{i}"), &program, data).expect("it translates");
        let found = density(&model).iter().filter(|line| line.contains("must be symmetric")).count();
        assert_eq!(found, checks, "{matrix}: {:?}", density(&model));
    }
}

#[test]
fn turns_that_depend_on_the_one_before_are_a_loop() {
    let program = "parameters { real a; real x; }
        model { vector[6] z; z[1] = x; for (t in 2:6) z[t] = a * z[t - 1] + t; target += z[6]; }";
    let model = translated("loop", program, json!({})).expect("it translates");
    let text = density(&model).join("\n");
    assert!(text.contains("for t0 in 0..") && text.lines().count() <= 12, "{text}");
}

#[test]
fn zeros_of_both_signs_are_two_values() {
    let program = "parameters { real t; }
        model { real x; if (t > 0) x = 0.0; else x = -0.0; target += atan2(x, -1); }";
    let text = density(&translated("zeros", program, json!({})).expect("it translates")).join("\n");
    assert!(text.contains("-0.0"), "{text}");
}

#[test]
fn a_running_sum_is_a_sum() {
    let program = "data { vector[5] w; } parameters { vector[5] x; }
        model { real s = 0; for (i in 1:5) s = s + w[i] / exp(x[i]); target += -s; }";
    let model = translated("running", program, json!({"w": [1, 2, 3, 4, 5]})).expect("it translates");
    let text = density(&model).join("\n");
    assert!(text.contains("sum(") && !text.contains("for t0"), "{text}");
}

#[test]
fn a_running_sum_of_known_weights_is_a_dot_product() {
    let program = "data { vector[5] w; } parameters { vector[5] x; real a; }
        model { real s = 0; for (i in 1:5) s += w[i] * x[i]; target += s;
          real r = a; for (i in 1:5) r += x[i] * w[i] * a; target += r; }";
    let model = translated("weights", program, json!({"w": [1, 2, 3, 4, 5]})).expect("it translates");
    let text = density(&model).join("\n");
    assert!(text.contains("dot(x, w)") && !text.contains("sum("), "{text}");
}

#[test]
fn convolutions_that_grow_are_loops() {
    let program = "data { vector[20] w; } parameters { vector[3] a; }
        model { matrix[3, 20] x; for (m in 1:3) { x[m, 1] = a[m];
          for (t in 2:20) { real c = 0; for (s in 1:(t - 1)) c += x[m, s] * w[t - s]; x[m, t] = 0.5 * c + x[m, t - 1]; } }
          target += sum(x); }";
    let weights: Vec<f64> = (1..=20).map(|i| 1.0 / f64::from(i)).collect();
    let model = translated("convolution", program, json!({"w": weights})).expect("it translates");
    let text = density(&model).join("\n");
    assert!(text.contains("for t1 in 0..") && text.lines().count() <= 20, "{text}");
}

#[test]
fn nothing_is_cut_off_at_infinity() {
    let of = |bounds: &str| {
        let program = format!("parameters {{ real m; }} model {{ 1.0 ~ exp_mod_normal(m, 1, 1) T[{bounds}]; }}");
        density(&translated("cut", &program, json!({})).expect("it translates")).join("\n")
    };
    assert_eq!(of("0.2, positive_infinity()"), of("0.2,"));
    assert_eq!(of("negative_infinity(), 2"), of(", 2"));
}

#[test]
fn sums_of_ever_more_of_what_is_there_are_products_of_first_elements() {
    let program = "data { vector[20] w; } parameters { vector[20] a; real b; }
        model { vector[20] x = exp(a);
          for (t in 2:20) { real c = b; for (s in 1:(t - 1)) c += x[s] * w[t - s]; c ~ normal(0, 1); } }";
    let weights: Vec<f64> = (1..=20).map(|i| 1.0 / f64::from(i)).collect();
    let model = translated("firsts", program, json!({"w": weights})).expect("it translates");
    assert_eq!(
        density(&model)[3..],
        [
            "let x0 = [b + dot_first(x[0..19], data0[i], i + 1) for i in 0..19];",
            "sum(normal_lpdf(x0[i], 0, 1) for i in 0..19) + 17.45983213088878"
        ]
    );
}
