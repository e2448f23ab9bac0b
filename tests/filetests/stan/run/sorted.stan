// The order of elements that depend on parameters.
parameters {
  vector[4] v;
}
model {
  v ~ normal(0, 1);
  target += dot_product(sort_asc(v), [1, 2, 3, 4]');
}
