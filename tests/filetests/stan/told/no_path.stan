// Where all starts fail it is told why.
// run: pathfinder $MODEL --num-paths 2
// status: 1
// says: no point with a finite log density and gradient in 100 tries: x is 
// run: optimize $MODEL
// status: 1
// says: tries: x is 
parameters {
  real x;
}
model {
  if (x < 100) {
    reject("x is ", x);
  }
  x ~ normal(0, 1);
}
