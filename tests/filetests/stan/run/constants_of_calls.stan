// What `~` and `_lupdf` leave out goes by types: a variable of a loop over data is data; in a function, parameters are
// what they are given, and its own reals are data only where all arguments are.
functions {
  real own_lpdf(vector y, real mu, real scale) {
    real nu = 4;
    real s = scale;
    return student_t_lupdf(y | nu, mu, s) + gamma_lupdf(exp(mu) | scale, s);
  }
  real given_lpdf(real y, real mu, real scale) {
    return own_lupdf([y, 2 * y]' | mu, scale) + normal_lupdf(y | mu, scale);
  }
  void prior_lp(real x, real scale) {
    real location = 3;
    int count = 2;
    x ~ normal(location, scale);
    location ~ cauchy(0, scale);
    count ~ poisson(scale);
  }
}
data {
  int<lower=0> N;
  vector[N] y;
  array[N] real<lower=0> each;
  array[N] int counts;
}
transformed data {
  real known = 2.5;
}
parameters {
  real x;
  real<lower=0> s;
}
model {
  for (e in each) x ~ normal(0, e);
  for (e in y) e ~ student_t(4, x, 1.5);
  for (n in counts) n ~ poisson(s);
  y ~ own(1, 2);
  y ~ own(x, 2);
  y ~ own(known, s);
  y[1] ~ given(x, known);
  y[1] ~ given(known, known);
  real local = 2;
  y[2] ~ given(local, known);
  prior_lp(x, s);
  prior_lp(x, known);
  prior_lp(known, 2);
  target += own_lupdf(y | x, known);
}
