// Functions on sizes, slices of arrays of arrays, local types of every kind, sizes that are expressions, sizes of 0.
functions {
  vector scaled(vector x, real by) {
    int n = rows(x);
    vector[n] out;
    for (i in 1 : n)
      out[i] = x[i] * by;
    return out;
  }
  int count_above(array[] int x, int limit) {
    int n = 0;
    for (value in x)
      n += value > limit;
    return n;
  }
  array[] int where_above(array[] int x, int limit) {
    array[count_above(x, limit)] int found;
    int at = 1;
    for (i in 1 : size(x)) {
      if (x[i] > limit) {
        found[at] = i;
        at += 1;
      }
    }
    return found;
  }
}
data {
  int<lower=0> G;
  array[G] int<lower=0> sizes;
  vector[sum(sizes)] y;
  array[2, G] int codes;
  array[0] real nothing;
  matrix[G, 0] narrow;
}
transformed data {
  int N = sum(sizes);
  array[G] int ends = cumulative_sum(sizes);
  array[count_above(sizes, 1)] int large = where_above(sizes, 1);
  array[N] int group;
  array[G, 2] int range;
  for (g in 1 : G) {
    range[g] = {ends[g] - sizes[g] + 1, ends[g]};
    for (n in range[g, 1] : range[g, 2])
      group[n] = g;
  }
}
parameters {
  vector[G] mu;
  vector<lower=0>[size(large)] tau;
  array[G, 2] real z;
  vector[0] empty;
  array[2] matrix[2, 2] m;
  vector[cols(narrow)] none;
}
transformed parameters {
  vector[N] fitted = mu[group];
  array[G] vector[2] pairs;
  for (g in 1 : G)
    pairs[g] = scaled(to_vector(z[g]), tau[1]);
}
model {
  matrix[2, G] local = rep_matrix(0.5, 2, G);
  row_vector[3] line = [mu[1], 2, tau[1]];
  array[2, 2] vector[2] deep = {{[1, 2]', pairs[1]}, {pairs[2], [mu[2], 0.5]'}};
  local[1] = mu';
  local[2, 2 : ] += tau[1];
  y ~ normal(fitted, 1.5);
  mu + narrow * none ~ normal(0, 2);
  for (g in 1 : G) {
    y[range[g, 1] : range[g, 2]] ~ normal(mu[g], 1);
    segment(y, range[g, 1], sizes[g]) ~ student_t(3, pairs[g, 1], 1);
    z[g] ~ normal(codes[1, g], codes[2, g] + 0.5);
  }
  mu[large] ~ normal(tau, 1);
  tau ~ exponential(1);
  empty ~ normal(0, 1);
  none ~ normal(0, 1);
  nothing ~ normal(mu[1], 1);
  for (matrix_ in m)
    to_vector(matrix_) ~ normal(0, 1);
  for (value in m[1])
    target += -0.1 * value ^ 2;
  for (row in z)
    target += -0.1 * sum(row);
  target += sum(local * mu) + line * line' * -0.1 + dot_product(deep[1, 2], deep[2][1]) + sum(deep[ : , 2][1]);
  target += sum(m[1, : , 2]) + m[2][2, 1] + sum(m[ : , 1, 1]) - sum(append_row(m[1], m[2]) * -0.2);
}
