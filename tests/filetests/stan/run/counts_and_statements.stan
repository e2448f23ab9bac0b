// Elements whose number parameters decide in loops that are left, targets of assignments, and statements with `~`.
data {
  vector[3] y;
  array[4] int z;
  matrix[3, 2] X;
}
parameters {
  vector[3] q;
}
transformed parameters {
  real a = 0;
  real b = 0;
  real c = 0;
  real d;
  {
    int m = 0;
    for (n in 1 : 3)
      if (q[n] > 0)
        m += 1;
    for (v in q[1 : m]) {
      if (v > 1.5)
        break;
      if (v > 1)
        continue;
      a += v;
    }
    for (x in X[1 : m])
      b += x * q[1];
    vector[min({m, 2})] w = q[1 : min({m, 2})];
    matrix[m, 2] M;
    M[ : , 2] = q[1 : m];
    M[ : , 1] = 2 * q[1 : m];
    array[3] int places = {3, 1, 2};
    c += sum(w) + sum(M) + sum(X[places[1 : m],  : ] * q[2 : 3]);
    vector[m] x = q[1 : m];
    int x__count = m + 1;
    int k = 0;
    while (k < x__count && k < m + q[1]) {
      k += 1;
      c += x__count;
      if (k <= m)
        c += x[k];
    }
    if (q[1] > 10)
      c += sum(x[5 : 7]);
    d = sd(q[1 : 1]) + variance(q[2 : 2]) + q[3];
  }
}
model {
  int m = 0;
  for (n in 1 : 3)
    if (q[n] > 0)
      m += 1;
  array[3] vector[2] A = {q[1 : 2], q[2 : 3], q[1 : 2]};
  A[1 : m] ~ multi_normal([0, 1]', identity_matrix(2));
  if (m == 2) {
    softmax(q[1 : m]) ~ dirichlet([2, 3]');
  }
  q[1 : m] ~ von_mises(0, 2);
  y[1 : m] ~ normal(0, 2);
  y[1 : m] ~ normal_id_glm(X[1 : m], q[1], q[2 : 3], 1.5);
  z[1 : m] ~ ordered_logistic(q[1 : m], [0.2, 0.3]');
  target += normal_lupdf(y[1 : m] | q[1 : m], 2) + a + 2 * b + 3 * c + d;
  q ~ std_normal();
}
