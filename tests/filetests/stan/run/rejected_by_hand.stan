// Lanes that call `reject`, in a function, too.
functions {
  real checked(real x) {
    if (x > 1)
      reject("too large: ", x);
    return 2 * x;
  }
}
parameters {
  real a;
}
model {
  a ~ normal(0, 1);
  if (a < -1) {
    reject("too small: ", a);
  }
  target += checked(a);
}
