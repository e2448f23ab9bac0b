// A function that returns from a loop where parameters say so.
functions {
  real first_above(vector x, real t) {
    for (i in 1 : num_elements(x)) {
      if (x[i] > t)
        return x[i] * i;
    }
    return sum(x);
  }
}
parameters {
  vector[4] v;
  real t;
}
model {
  v ~ normal(0, 1);
  t ~ normal(0, 1);
  target += first_above(v, t);
}
