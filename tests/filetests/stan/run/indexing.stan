// Every kind of index, read and written.
data {
  int<lower=0> N;
  array[3] int<lower=1, upper=N> idx;
  matrix[3, 4] X;
  array[2, 3] real table;
}
transformed data {
  array[2] int last_two = {idx[2], idx[3]};
  matrix[2, 2] corner = X[2 : 3, 3 : 4];
  vector[3] third = X[ : , 3];
  row_vector[4] first = X[1];
  int ends = dims(X)[2] + size(table) + num_elements(table[1]);
}
parameters {
  vector[N] v;
  row_vector[4] r;
  matrix[3, 4] m;
  array[2] vector[3] av;
  array[2, 3] real aa;
}
transformed parameters {
  vector[N] w = v;
  matrix[3, 4] n = m;
  array[2] vector[3] aw = av;
  w[2 : 3] = v[{3, 2}];
  w[idx] = w[idx] + third;
  n[1] = r;
  n[2, 2 : 3] = r[1 : 2] .* r[3 : 4];
  n[ : , 4] = av[2];
  n[{1, 3}, 1] = v[last_two];
  n[2 : , : 2] = corner;
  aw[1, 2] = v[1] * r[2];
  aw[ : , 1] = {v[2], r[4]};
  aw[2][3] += 1.5;
}
model {
  v ~ normal(0, 1);
  r ~ normal(first, 2);
  to_vector(m) ~ normal(0, 1);
  v[idx] ~ normal(third, 1.5);
  v[ : 2] ~ normal(0.25, 1);
  v[N] ~ normal(0, 0.5);
  m[2] ~ normal(r, 1);
  m[ : , 3] ~ normal(third, 2);
  m[1 : 2, 4] ~ normal(v[1 : 2], 1);
  m[3, {4, 1}] ~ normal(0, 3);
  to_vector(m[{2, 1}, 2 : 3]) ~ normal(0, ends);
  to_vector(n) ~ normal(0, 3);
  w ~ normal(0, 2);
  for (k in 1 : 2) {
    av[k] ~ normal(0, 1);
    aa[k] ~ normal(table[k], 1);
    aw[k, 2 : 3] ~ normal(k, 1);
    target += -square(av[k][2] - aa[k, 3]);
  }
  aa[ : , 2] ~ normal(table[ : , 1], 0.5);
  to_array_1d(aw[{2, 1, 2}, 3]) ~ normal(0, 1);
}
generated quantities {
  array[3] real picked = to_array_1d(v[idx]);
  matrix[2, 4] rows = m[{3, 1}];
  array[2, 2] real part = aa[ : , 2 : 3];
  vector[0] none = v[3 : 2];
}
