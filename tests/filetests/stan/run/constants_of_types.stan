// What is left out in functions goes by the types of a call: parts that are ints say nothing, the parts of a tuple have
// levels of their own, and so do calls of calls, sums in parts and functions that call themselves.
functions {
  real sized_lpdf(vector y, vector mu, real sg) {
    return normal_lupdf(y | mu, rep_vector(sg, rows(mu))) + normal_lupdf(y | mu, sg > 1 ? sg : 2 * sg);
  }
  real pair_lpdf(real y, tuple(real, real) p) {
    return normal_lupdf(y | p.1, p.2) + cauchy_lupdf(y | (p.1), p.2 + 1);
  }
  real part_lpdf(array[] real slice, int start, int end, real mu, real sg) {
    return normal_lupdf(slice | mu, sg) - 0.5 * (end - start);
  }
  real apart_lpdf(array[] real all, real mu, real sg) {
    return reduce_sum(part_lupdf, all, 1, mu, sg);
  }
  real halved_lpdf(real y, real mu, real sg) {
    if (mu > 0.75) return halved_lupdf(y | 0.5 * mu, sg);
    return normal_lupdf(y | mu, sg);
  }
  void walked_lp(array[] real each, data array[] real known, real x) {
    for (e in each) x ~ normal(0, e);
    for (e in known) x ~ normal(0, e);
    for (i in 1:size(each)) x ~ normal(0, each[i]);
  }
  void none_lp() {
    real sg = 2;
    0.5 ~ normal(1, sg);
  }
}
data {
  int<lower=0> N;
  vector[N] y;
  array[N] real z;
  array[2] real<lower=0> sd;
}
transformed data {
  real sg = 2.5;
}
parameters {
  vector[N] mu;
  real x;
}
model {
  real local = 2.5;
  mu ~ normal(0, 1);
  x ~ normal(0, 1);
  y ~ sized(mu, sg);
  y ~ sized(mu, local);
  x ~ pair((x, sg));
  y[1] ~ pair((x, local));
  z ~ apart(x, sg);
  z ~ apart(x, local);
  target += reduce_sum(part_lupdf, z, 1, x, local);
  target += reduce_sum(part_lupdf, z, 1, x, sg);
  y[1] ~ halved(x, sg);
  y[2] ~ halved(x, local);
  walked_lp(sd, sd, x);
  walked_lp({local, sg}, sd, x);
  none_lp();
}
