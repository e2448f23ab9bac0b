// A loop that ends where parameters say so.
data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real a;
  real<lower=0> s;
}
model {
  real spent = 0;
  a ~ normal(0, 1);
  s ~ normal(0, 1);
  for (n in 1 : N) {
    spent += square(y[n] - a);
    if (spent > 4 * s)
      break;
    if (y[n] > a)
      continue;
    target += -0.25 * spent;
  }
}
