//! The embedded Laplace approximation where Stan cannot say what it is: draws, and the negative binomial likelihood, which
//! Stan 2.39 does not compile with the precisions that it asks for.

use autobatch::Engine;
use autobatch::mcmc::log_prob::Evaluated;
use autobatch::program::{StanModel, Terms};
use serde_json::{Map, Value};

use crate::language::stan_values::{compiled, distance, evaluated};
use crate::project::cli::{Folder, output};

const FUNCTIONS: &str = "functions {
  matrix covariance(array[] real x, real sigma) { return add_diag(gp_exp_quad_cov(x, sigma, 0.8), 0.1); }
  real counted(vector theta, array[] int y, array[] int at, vector eta, vector mean) {
    return neg_binomial_2_log_lpmf(y | theta[at] + mean[at], eta[at]);
  }
  real seen(vector theta, vector y, real sigma) { return normal_lpdf(y | theta, sigma); }
}
";

#[test]
fn a_negative_binomial_likelihood_is_that_of_a_function_of_the_program() {
    let of = |term: &str| {
        format!(
            "{FUNCTIONS}transformed data {{
  array[3] real x = {{0.1, 0.7, 1.9}};
  array[3] int y = {{3, 2, 8}};
  array[3] int at = {{1, 3, 3}};
  tuple(vector[3], real, int, int, int, int) controls = generate_laplace_options(3);
}}
parameters {{ real<lower=0.2> sigma; vector<lower=0.1>[3] eta; vector[3] mean; }}
model {{
  target += {term};
}}"
        )
    };
    let library = "laplace_marginal_neg_binomial_2_log_lpmf(y | at, eta, mean, 1, covariance, (x, sigma))";
    let with_controls =
        "laplace_marginal_tol_neg_binomial_2_log_lpmf(y | at, eta, mean, 1, covariance, (x, sigma), controls)";
    let own = "laplace_marginal(counted, (y, at, eta, mean), 1, covariance, (x, sigma))";
    let in_one_block = "laplace_marginal(counted, (y, at, eta, mean), 3, covariance, (x, sigma))";
    let folder = Folder::new("laplace-counts");
    let points = [vec![0.0; 7], vec![0.3, -0.2, 0.9, 0.9, 0.4, -0.1, 0.7]];
    let mut found = Vec::new();
    for (i, term) in [library, with_controls, own, in_one_block].into_iter().enumerate() {
        let path = folder.file(&format!("model{i}.stan"), of(term));
        let terms = Terms { constants: true, jacobian: true };
        let model = StanModel::load(path.as_ref(), &Map::new(), terms).expect("it translates");
        let density = compiled(&model, terms).expect("it compiles");
        let values = evaluated(&density, &points, Engine::Pc).expect("it runs");
        let numbers = values.iter().flat_map(|value| match value {
            Evaluated::Density { lp, gradient } => [&[*lp], &gradient[..]].concat(),
            Evaluated::Rejected(why) => panic!("{term}: {why}"),
        });
        found.push(numbers.collect::<Vec<_>>());
    }
    for others in &found[1..] {
        assert!(distance(others, &found[0]) < 1e-10, "{others:?}, {:?}", found[0]);
    }
}

#[test]
fn draws_of_latent_variables_have_the_mean_and_the_variance_of_the_approximation() {
    let folder = Folder::new("laplace-draws");
    let text = format!(
        "{FUNCTIONS}transformed data {{
  array[2] real x = {{0.1, 0.7}};
  vector[2] y = [1.5, -0.4]';
  array[2] int hits = {{2, 0}};
  array[2] int trials = {{3, 4}};
  array[2] int at = {{1, 2}};
  vector[2] zero = rep_vector(0, 2);
}}
parameters {{ real mu; }}
model {{ mu ~ normal(0, 1); }}
generated quantities {{
  vector[2] own = laplace_latent_rng(seen, (y, 0.7), 1, covariance, (x, 1.1));
  vector[2] block = laplace_latent_tol_rng(seen, (y, 0.7), 2, covariance, (x, 1.1), (zero, 1e-8, 100, 1, 10, 1));
  vector[2] odds = laplace_latent_bernoulli_logit_rng(hits, trials, zero, 1, covariance, (x, 1.1));
  vector[2] rates = laplace_latent_poisson_log_rng(hits, at, zero, 1, covariance, (x, 1.1));
  vector[2] means = laplace_latent_neg_binomial_2_log_rng(hits, at, [2, 3]', zero, 1, covariance, (x, 1.1));
}}"
    );
    let model = folder.file("model.stan", text);
    let file = folder.0.join("draws.json").display().to_string();
    let run = ["sample", &model, "--algorithm", "fixed_param", "--chains", "4", "--draws", "500", "--seed", "3"];
    let made = output(&[&run[..], &["--output", &file]].concat());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let arrays: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).expect("an object");
    let column = |name: &str, at: usize| -> Vec<f64> {
        let chains = arrays[name].as_array().expect("chains").iter().flat_map(|chain| chain.as_array().unwrap());
        chains.map(|draw| draw[at].as_f64().expect("a number")).collect()
    };
    let moments = |all: &[f64]| {
        let n = all.len() as f64;
        let mean = all.iter().sum::<f64>() / n;
        (n, mean, all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n)
    };
    // K (K + 0.49)^-1 y, and K - K (K + 0.49)^-1 K.
    let near = 1.21 * (-0.5f64 * (0.6f64 / 0.8).powi(2)).exp();
    let (own, noisy) = (1.31, 1.8);
    let det = noisy * noisy - near * near;
    let inverse = |u: f64, v: f64| ((noisy * u - near * v) / det, (noisy * v - near * u) / det);
    let (a, b) = inverse(1.5, -0.4);
    let means = [own * a + near * b, near * a + own * b];
    let (u, v) = inverse(own, near);
    let variance = own - own * u - near * v;
    for name in ["own", "block"] {
        for (at, expected) in means.into_iter().enumerate() {
            let (n, mean, found) = moments(&column(name, at));
            assert!((mean - expected).abs() < 5.0 * (variance / n).sqrt(), "{name}: {mean}, {expected}");
            assert!((found / variance - 1.0).abs() < 5.0 * (2.0 / n).sqrt(), "{name}: {found}, {variance}");
        }
    }
    for name in ["odds", "rates", "means"] {
        let (_, high, spread) = moments(&column(name, 0));
        let (_, low, _) = moments(&column(name, 1));
        assert!(high > low && spread > 0.1 && spread < own, "{name}: {high}, {low}, {spread}");
    }
}
