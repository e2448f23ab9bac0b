// A loop whose turns parameters decide, which rejects where it takes too long.
parameters {
  real a;
  real<lower=0> s;
}
model {
  real x = s;
  int k = 0;
  a ~ normal(0, 1);
  while (x > 0.503) {
    x *= 0.9;
    k += 1;
    if (k > 12)
      reject("no end after ", k);
    if (a < -5)
      print("far away: ", x);
  }
  target += -x - 0.1 * k;
}
