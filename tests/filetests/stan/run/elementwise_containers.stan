// Functions of two numbers on containers of both kinds: a number goes with every element.
data {
  array[2] int n;
  array[2, 2] int k;
}
parameters {
  vector<lower=0.1, upper=3>[2] x;
  matrix<lower=0.2, upper=2>[2, 2] m;
}
transformed parameters {
  vector[2] trigammas = trigamma(x);
  matrix[2, 2] lower_gamma = gamma_p(m, 1.2);
  matrix[2, 2] upper_gamma = gamma_q(0.7, m);
  array[2] vector[2] owens = owens_t({x, 2 * x}, {x + 1, x});
  vector[2] first_kind = bessel_first_kind(n, x);
  vector[2] second_kind = bessel_second_kind(1, x);
  matrix[2, 2] modified = modified_bessel_first_kind(k, m);
  array[2] real modified_second = modified_bessel_second_kind(n, x[1]);
  matrix[2, 2] log_modified = log_modified_bessel_first_kind(m, x[1]);
  vector[2] many_gammas = lmgamma(n, x + 2);
  vector[2] falling = falling_factorial(x, n);
  matrix[2, 2] rising = rising_factorial(m, 2);
  vector[2] branch = lambert_w0(x);
  vector[2] lower_branch = lambert_wm1(-0.1 * x);
  vector[2] quantiles = std_normal_log_qf(-x);
  matrix[2, 2] shifted = ldexp(m, k);
  array[2] real rests = fmod({x[1], 2.5}, {0.7, x[2]});
  array[2, 1] real nested = fmod({{x[1]}, {x[2]}}, 0.4);
  vector[2] losses = binary_log_loss({1, 0}, inv_logit(x));
  real mixed = log_mix(softmax(x), {-x, 2 * x, [0.1, x[1]]'});
  real mixed_lists = log_mix({0.3, 0.7}, {x[1], x[2]});
}
model {
  target += sum(trigammas) + sum(lower_gamma) + sum(upper_gamma) + sum(owens[1]) + sum(owens[2]);
  target += sum(first_kind) + sum(second_kind) + sum(modified) + sum(modified_second) + sum(log_modified);
  target += sum(many_gammas) + sum(falling) + sum(rising) + sum(branch) + sum(lower_branch) + sum(quantiles);
  target += sum(shifted) + sum(rests) + nested[1, 1] + nested[2, 1] + sum(losses) + mixed + mixed_lists;
}
generated quantities {
  array[2] int ways = choose(5, n);
  array[2, 2] int pairs = choose(k, 1);
  array[2] int products = rising_factorial(n, 2);
  array[2] real known = fmod({5.5, -5.5}, 2.0);
  array[3] int whole = to_int({1.7, -1.7, 2});
  real series = hypergeometric_2F1(0.3, 0.6, 1.7, 0.1 * x[1]) + hypergeometric_1F0(0.4, 0.1 * x[2]);
  real long_series = hypergeometric_pFq([0.4, 0.5]', [0.8]', 0.2 * x[1])
                     + hypergeometric_3F2({1.1, 0.5, 0.7}, {1.2, 0.9}, 0.2);
}
