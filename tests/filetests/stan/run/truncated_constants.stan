// Truncation whose normalising constant depends on no parameter.
parameters {
  real<lower=-2> mu;
  real<lower=0> sigma;
}
model {
  mu ~ normal(0, 2) T[-2, ];
  sigma ~ cauchy(0, 1) T[0, ];
}
