//! Functions that Stan has and the library has not: what to write instead. A name that is near such a one may mean something
//! else: `sd` is not `sum`.

/// Names of Stan, and the expression that gives the same here.
const INSTEAD: &[(&str, &str)] = &[
    ("append_col", "a comprehension, or `concat` of the transposed matrices"),
    ("append_row", "`concat(x, y)`"),
    ("binomial_coefficient_log", "`log_choose(n, k)`"),
    ("fabs", "`abs(x)`"),
    ("fmod", "`x % y`"),
    ("logical_negation", "`!x`"),
    ("num_elements", "`len(x)`, times `cols(x)` of a matrix"),
    ("ones_vector", "`ones(n)`"),
    ("rep_array", "`fill(x, n)`"),
    ("rep_matrix", "`fill(x, n, m)`"),
    ("rep_row_vector", "`fill(x, n)`"),
    ("rep_vector", "`fill(x, n)`"),
    ("to_array_1d", "`reshape(x, n)`"),
    ("to_matrix", "`reshape(x, n, m)`"),
    ("to_vector", "`reshape(x, n)`"),
    ("zeros_vector", "`zeros(n)`"),
];

/// Help for a name of Stan that means nothing here; `known` says whether the library has a function.
pub(super) fn help(name: &str, known: impl Fn(&str) -> bool) -> Option<String> {
    if let Ok(at) = INSTEAD.binary_search_by_key(&name, |(stan, _)| stan) {
        return Some(format!("Stan's `{name}` is {} here", INSTEAD[at].1));
    }
    match name {
        "target" | "increment_log_prob" => {
            return Some("add up the log density in a variable, and give that as the result".to_owned());
        }
        "reject" => return Some("return `negative_infinity()` where the density is 0".to_owned()),
        _ => {}
    }
    let density = ["_lpdf", "_lpmf"].map(|ending| format!("{name}{ending}")).into_iter().find(|f| known(f))?;
    let draw = format!("{name}_rng");
    Some(match known(&draw) {
        true => format!("the log density is `{density}`, a draw `{draw}`"),
        false => format!("the log density is `{density}`"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order() {
        assert!(INSTEAD.is_sorted_by_key(|(name, _)| name));
    }

    #[test]
    fn what_stan_has_is_said_in_words_of_this_language() {
        let known = |name: &str| ["normal_lpdf", "normal_rng", "bernoulli_lpmf"].contains(&name);
        assert_eq!(help("fmod", known).as_deref(), Some("Stan's `fmod` is `x % y` here"));
        assert_eq!(help("normal", known).as_deref(), Some("the log density is `normal_lpdf`, a draw `normal_rng`"));
        assert_eq!(help("bernoulli", known).as_deref(), Some("the log density is `bernoulli_lpmf`"));
        assert_eq!(help("log1q", known), None);
    }
}
