// Recurrences in the turns of an outer loop, whose first turns differ, and convolutions with all that came before.
data {
  int<lower=1> M;
  int<lower=3> T;
  vector[T] w;
  array[M] int<lower=1> seen;
  matrix[T, M] y;
}
parameters {
  vector[M] a;
  real<lower=0> b;
  vector[M] noise;
}
transformed parameters {
  matrix[M, T] x;
  matrix[T, M] z = rep_matrix(0, T, M);
  matrix[T, M] expected = rep_matrix(0, T, M);
  for (m in 1 : M) {
    matrix[T, M] total = rep_matrix(0, T, M);
    x[m, 1] = a[m];
    for (t in 2 : T) {
      if (t == 3) {
        x[m, t] = exp(0.1 * x[m, t - 1]);
      } else {
        x[m, t] = 0.5 * b * x[m, t - 1] + a[m];
      }
    }
    z[1 : 2, m] = rep_vector(exp(a[m]), 2);
    total[2, m] = z[2, m];
    for (t in 3 : T) {
      real convolution = dot_product(sub_col(z, 1, m, t - 1), reverse(head(w, t - 1)));
      total[t, m] = total[t - 1, m] + z[t - 1, m];
      z[t, m] = (50 - total[t, m]) / 50 * convolution;
    }
    expected[1, m] = 0.1 * z[1, m];
    for (t in 2 : T) {
      for (s in 1 : (t - 1)) {
        expected[t, m] += z[s, m] * w[t - s] * noise[m];
      }
    }
  }
}
model {
  a ~ normal(0, 1);
  b ~ normal(0, 1);
  noise ~ normal(1, 0.5);
  for (m in 1 : M) {
    y[1 : seen[m], m] ~ normal(expected[1 : seen[m], m], 1);
    target += -0.01 * square(sum(x[m]));
  }
}
generated quantities {
  array[M] real last;
  for (m in 1 : M) {
    real running = 0;
    for (t in 1 : T) {
      running = 0.5 * running + z[t, m] * w[t];
    }
    last[m] = running;
  }
}
