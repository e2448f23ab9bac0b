// Overloads, declarations ahead, recursion, and every suffix that means something.
functions {
  real area(real a, real b) {
    return a * b;
  }
  real area(real r) {
    return pi() * square(r);
  }
  int factorial(int n) {
    return n < 2 ? 1 : n * factorial(n - 1);
  }
  vector exp(vector x, int times) {
    vector[rows(x)] y = x;
    for (i in 1:times) {
      y = exp(y);
    }
    return y;
  }
  real halfway_lpdf(real y, real mu) {
    return normal_lupdf(y | mu, 0.5);
  }
  real halfway_lcdf(real y, real mu) {
    return normal_lcdf(y | mu, 0.5);
  }
  real halfway_lccdf(real y, real mu) {
    return normal_lccdf(y | mu, 0.5);
  }
  real halfway_rng(real mu) {
    return normal_rng(mu, 0.5);
  }
  real coin_lpmf(array[] int y, real p) {
    if (p < 0 || p > 1) {
      reject("p is ", p);
    } else {
      return bernoulli_lpmf(y | p);
    }
  }
  void centre_lp(vector x) {
    target += normal_lpdf(sum(x) | 0, 0.1);
    x ~ std_normal();
    print("target is ", target());
  }
  real positive_jacobian(real x) {
    jacobian += x;
    return exp(x);
  }
  int first_above(data array[] real x, real limit) {
    while (1) {
      for (i in 1:size(x)) {
        if (x[i] > limit) {
          return i;
        }
      }
      return 0;
    }
  }
}
data {
  int<lower=0> n;
  array[n] int<lower=0, upper=1> y;
  vector[n] x;
  array[n] real limits;
}
transformed data {
  real whole = area(2) + area(2, 3.5);
  int many = factorial(5);
  vector[n] twice = exp(x, 2);
  int at = first_above(limits, 0);
  real draw = halfway_rng(0);
}
parameters {
  real<lower=0, upper=1> p;
  real raw;
  vector[n] beta;
  real<lower=-1> z;
}
transformed parameters {
  real scale = positive_jacobian(raw);
}
model {
  y ~ coin(p);
  target += coin_lupmf(y | p);
  z ~ halfway(scale) T[-1, ];
  z ~ halfway(scale) T[-1, 2];
  z ~ normal({0.5, 1}[1], sum({1, 2})) T[-1, ];
  centre_lp(beta);
}
generated quantities {
  real again = halfway_rng(scale);
  real density = halfway_lpdf(again | scale);
}
