// How many elements there are, as parameters decide: ranges read and written, sizes of local variables, several indices.
functions {
  real tot(vector v) { return sum(v) + num_elements(v); }
  vector some(vector v, int k) { return v[1:k]; }
}
data { int N; vector[N] y; array[N] int z; }
parameters { real mu; real<lower=0> s; vector[N] q; }
transformed parameters {

  real a; real b; real c; real d; real e; real f; real g; real h; real ii; vector[N] w = rep_vector(0, N); real j;

  {
    int m = 0;
    for (n in 1:N - 1) if (q[n] > mu) m += 1;
    vector[N] x = q;
    a = sum(q[1:m]);
    b = log_sum_exp(x[m + 1:]);
    c = tot(exp(q[1:m]) * 2 + s);
    d = max(append_row(q[1:m], [mu]'));
    w[1:m] = y[1:m] * 2;
    e = m > 0 ? mean(q[1:m]) : 0;
    f = dot_product(y[1:m], q[1:m]);
    vector[m] loc = q[1:m] + y[1:m];
    g = 0;
    for (n in 1:m) g += loc[n] * n;
    vector[m] loc2;
    for (n in 1:m) loc2[n] = loc[n] ^ 2;
    h = sum(loc2) + norm2(some(q, m));
    ii = 0;
    for (v in q[1:m]) ii += v * v;
    j = sum(z[1:m]);
    if (m > 1) j += sd(q[1:m]) + variance(head(q, m));
    j += sum(segment(q, 1, m)) + sum(tail(q, m));
    j += sum(softmax(q[1:m]) .* q[1:m]);
    j += sum(one_hot_vector(N + 1, m + 1) .* append_row(q, 1.0));
    if (m > 0) j += rank(q, m);
    array[m] int places;
    for (n in 1:m) places[n] = m - n + 1;
    vector[N] turned = q;
    turned[places[1:m]] = q[1:m];
    j += dot_product(turned, y) + sum(square(q[places[1:m]]));
    matrix[2, N] both = [q', y'];
    both[1, 1:m] = 2 * q[1:m]';
    both[2, m + 1:N] = y[m + 1:N]';
    j += sum(both);
    vector[m > 2 ? 2 : 3] few = m > 2 ? q[1:2] : q[2:4];
    j += prod(few) + (m > 2 ? student_t_lpdf(few | 3, q[1:2], s) : 0) + dirichlet_lpdf(softmax(q[1:m + 1]) | rep_vector(1.5, m + 1));
  }
}
model {
  int m = 0;
  for (n in 1:N - 1) if (q[n] > mu) m += 1;
  q ~ normal(0, 1);
  y[1:m] ~ normal(mu, s);
  target += normal_lupdf(y[1:m] | mu, s);
  target += normal_lpdf(q[1:m] | y[1:m], s) + a + b + c * 0.1 + d + e + f + 0.01 * g + 0.02 * h + ii * 0.3 + j + sum(w) * mu;
}
