// Vectors that are in order, alone and in arrays.
data {
  int<lower=2> K;
}
parameters {
  ordered[K] cutpoints;
  positive_ordered[K] rates;
  array[2] ordered[3] several;
  array[2, 2] positive_ordered[2] grid;
}
model {
  cutpoints ~ normal(0, 3);
  rates ~ gamma(2, 1.5);
  for (i in 1 : 2) {
    several[i] ~ student_t(4, i, 2);
    for (j in 1 : 2)
      grid[i, j] ~ exponential(i + j);
  }
  target += -square(cutpoints[K] - rates[1]);
}
