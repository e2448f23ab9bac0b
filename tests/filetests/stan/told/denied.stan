// Warnings about speed that are denied stand in this file.
// run: sample $MODEL --chains 1 --warmup 5 --draws 3 --deny loops
// status: 1
// says: [W0102] Error: this comprehension runs as a loop: it branches on a value that differs between elements
// says: denied.stan:10:5 ]
// says: one element after the other
functions {
  real raised(real x) {
    real y = x;
    while (y < 1) {
      y += 0.5;
    }
    return y;
  }
}
parameters {
  vector[30] x;
}
model {
  x ~ normal(0, 1);
  for (i in 1 : 30) {
    target += raised(x[i]);
  }
}
