// Tuples: made, taken apart, as arguments and results.
functions {
  tuple(real, vector) split(vector x) {
    return (x[1], x[2 : ]);
  }
  real total(tuple(real, vector) t) {
    return t.1 + sum(t.2);
  }
}
data {
  tuple(int, vector[2]) given;
}
parameters {
  vector[3] x;
  real<lower=0> s;
}
model {
  tuple(real, vector[2]) t = split(x);
  real first;
  vector[2] others;
  x ~ normal(given.2[1], given.1);
  t.1 += s;
  (first, others) = t;
  s ~ exponential(1);
  target += total(t) * 0.1 + first;
}
