// Where Stan throws, a point is rejected, also where our density is minus infinity; where Stan has minus infinity, it is that.
// run: log-prob $MODEL --points '[[-1, 0.5], [0, 2], [0, 0.5]]' --format json
// says: [{"rejected":"exponential_lpdf: Inverse scale parameter is 0, but must be positive finite! (in 'no_density.stan', line 11, column 2 to column 25)"}
// says: {"lp":"-Inf"
// says: {"lp":-1.0
parameters {
  real a;
  real b;
}
model {
  1 ~ exponential(a + 1);
  target += uniform_lpdf(b | 0, 1);
}
