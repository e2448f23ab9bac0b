// A regression of one count that several rows have: Stan subtracts lgamma(n + 1) once, which is no density of three counts;
// poisson_log_lpmf of the same three subtracts it three times, and so does this. By tests/scripts/instead.py:
// instead: 0 -12.534161491043837 [9.0, 2.1, -0.9]
// instead: 1 -25.336752309277324 [11.122369181766513, 2.5334886499552505, -1.0546270589422206]
// instead: 2 -22.252282139301055 [10.847119351742782, 2.4496205965902567, -0.99177560609502279]
data {
  int n;
  matrix[3, 2] x;
}
parameters {
  real a;
  vector[2] b;
}
model {
  target += poisson_log_glm_lpmf(n | x, a, b);
}
