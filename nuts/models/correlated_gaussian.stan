// A Gaussian of known mean and precision; correlated_gaussian.ab is the same in autobatch's language.
data {
  int<lower=1> d;
  vector[d] mean;
  matrix[d, d] precision;
}
parameters {
  vector[d] x;
}
model {
  x ~ multi_normal_prec(mean, precision);
}
