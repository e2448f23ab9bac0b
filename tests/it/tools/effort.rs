//! How much is tried where many cases differ little: a part by default, so that the tests take some minutes, and
//! all with `AUTOBATCH_TESTS=all`.

/// Whether all is tried.
pub(crate) fn all() -> bool {
    std::env::var("AUTOBATCH_TESTS").is_ok_and(|value| value == "all")
}

/// Whether the case of this number is tried: each one in so many, or all.
pub(crate) fn tried(number: usize, one_in: usize) -> bool {
    number.is_multiple_of(one_in) || all()
}

/// So many cases, or all of them.
pub(crate) fn part<T>(some: T, of_all: T) -> T {
    if all() { of_all } else { some }
}
