//! The sets of processor features that loops are compiled for.

/// Compiles functions for AVX-512, AVX2 with FMA, and the base processor; which of them runs is chosen while running,
/// and does not change a result. The crate that uses it needs `multiversion` among its dependencies.
#[macro_export]
macro_rules! multiversioned {
    ($($item:item)+) => {
        $(
            #[multiversion::multiversion(targets(
                "x86_64+avx512f+avx512dq+avx512bw+avx512vl+avx2+fma",
                "x86_64+avx2+fma",
            ))]
            $item
        )+
    };
}
