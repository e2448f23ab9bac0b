// Every bound of a scalar, a vector, an array and a matrix; bounds of data, of parameters and of vectors.
data {
  int<lower=1> N;
  real<lower=0> top;
  vector[N] floors;
  array[N] real<upper=10> ceilings;
}
transformed data {
  real<lower=top> twice = 2 * top;
  vector<lower=floors>[N] above = floors + 2;
}
parameters {
  real free;
  real<lower=0> positive;
  real<upper=top> below;
  real<lower=-1, upper=twice> between;
  real<lower=positive, upper=positive + 2> chained;
  real<lower=negative_infinity(), upper=3> half_open;
  vector<lower=floors>[N] by_vector;
  vector<lower=floors, upper=floors + 2>[N] by_vectors;
  vector<lower=0, upper=above>[N] mixed;
  array[N] real<upper=ceilings> by_array;
  row_vector<upper=by_vector'>[N] by_parameters;
  matrix<lower=0>[2, 3] positives;
  array[2] vector<lower=-1, upper=1>[2] boxes;
  real<offset=top, multiplier=positive> scaled;
  vector<offset=floors>[N] shifted;
  vector<multiplier=2.5>[N] stretched;
  array[2] vector<offset=free, multiplier=3>[2] moved;
}
model {
  free ~ normal(below, positive);
  below ~ normal(0, 1);
  between ~ normal(0.5, 2);
  chained ~ normal(0, 1);
  half_open ~ normal(0, 1);
  by_vector ~ normal(0, 2);
  by_vectors ~ normal(1, 2);
  mixed ~ normal(above, 2);
  by_array ~ normal(0, 3);
  by_parameters ~ normal(0, 2);
  positive ~ gamma(2, 3);
  to_vector(positives) ~ exponential(1.5);
  for (k in 1 : 2) {
    boxes[k] ~ normal(k, 1);
    moved[k] ~ normal(0, 4);
  }
  scaled ~ normal(1, 2);
  shifted ~ normal(0, 1.5);
  stretched ~ normal(0, 2.5);
}
generated quantities {
  real spread = max(by_vector) - min(by_vectors);
  real area = sum(positives) * prod(boxes[1]);
}
