// Functions of the program: overloads, recursion, early return, local arrays, void ones, _lp, _lpdf, _lpmf, _jacobian, data arguments.
functions {
  int fib(int n) {
    if (n < 2)
      return n;
    return fib(n - 1) + fib(n - 2);
  }
  real area(real side) {
    return side ^ 2;
  }
  real area(real a, real b) {
    return a * b;
  }
  vector area(vector sides) {
    return square(sides);
  }
  real polynomial(data array[] real c, real x) {
    real s = 0;
    for (k in 1 : size(c))
      s = s * x + c[k];
    return s;
  }
  real clipped(real x) {
    if (x < -1)
      return -1 + 0.1 * x;
    else if (x > 1) {
      return 1 + 0.1 * x;
    }
    return x;
  }
  vector moments(vector x) {
    array[2] real m = rep_array(0.0, 2);
    int n = num_elements(x);
    for (i in 1 : n) {
      m[1] += x[i] / n;
      m[2] += square(x[i]) / n;
    }
    return [m[1], m[2] - square(m[1])]';
  }
  void check(real x) {
    if (x > 1e8)
      reject("too large: ", x);
  }
  void pull_lp(real x, real scale) {
    target += -square(x) / scale;
    x ~ normal(0, scale);
  }
  real centred_lp(real z, real m) {
    z ~ std_normal();
    return m + 2 * z;
  }
  real pareto_like_lpdf(real y, real k) {
    return log(k) - (k + 1) * log1p(y);
  }
  real pareto_like_lpdf(vector y, real k) {
    real s = 0;
    for (i in 1 : num_elements(y))
      s += pareto_like_lpdf(y[i] | k);
    return s;
  }
  real zipf_lpmf(int n, real s) {
    return -s * log(n) - log1p(s);
  }
  real zipf_lpmf(array[] int n, real s) {
    real t = 0;
    for (m in n)
      t += zipf_lpmf(m | s);
    return t;
  }
  real half_jacobian(real x) {
    jacobian += x;
    return exp(x);
  }
  matrix outer(vector a, row_vector b) {
    return a * b;
  }
  array[,] real grid(int n, real step) {
    array[n, 2] real g;
    for (i in 1 : n)
      g[i] = {i * step, i - step};
    return g;
  }
}
data {
  int<lower=0> N;
  array[N] real c;
  array[N] int<lower=1> counts;
}
transformed data {
  int f = fib(9);
  vector[2] m = moments(to_vector(c));
}
parameters {
  real a;
  real b;
  vector<lower=0>[3] v;
  real<lower=0> k;
  real u;
}
transformed parameters {
  real e = half_jacobian(u);
}
model {
  real located = centred_lp(a, b);
  vector[2] mv = moments(v);
  array[3, 2] real g = grid(3, b);
  check(located);
  pull_lp(b, 1.5);
  k ~ gamma(2, 2);
  v ~ pareto_like(k);
  v[1] ~ pareto_like(k + 1);
  counts ~ zipf(k);
  target += zipf_lpmf(3 | k);
  target += zipf_lupmf(2 | k);
  target += -area(located) * 0.1 - area(a, b) * 0.01 - sum(area(v)) + polynomial(c, a) * 0.01;
  target += clipped(a) + clipped(3 * b) + mv[1] - mv[2] * f / 34.0 + m[2];
  target += sum(outer(v, [a, b, e])) * 0.1 - e + g[3, 1] * g[2, 2] - sum(to_array_1d(g));
}
