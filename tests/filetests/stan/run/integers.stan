// Arithmetic of whole numbers, conversions, and logic.
data {
  int a;
  int b;
  array[4] int x;
}
transformed data {
  int quotient = a %/% b;
  int remainder = a % b;
  int negative = -a %/% b;
  int negative_remainder = -a % b;
  int power = b;
  int extremes = max(x) - min(x) + sum(x);
  int most = max(a, b) * min(a, b) + abs(-a);
  int logic = (a > b && b != 0) + (!a || 0) + (a == 17) + (a <= b);
  int counted = 0;
  array[4] int sorted = sort_asc(x);
  array[4] int ranks = sort_indices_desc(x);
  array[6] int joined = append_array(x, {a, b});
  array[4] int backwards = reverse(x);
  int whole = to_int(2.9);
  real ratio = 1.0 * a / b;
  real powered = a ^ b + 2 ^ -1 + b ^ 0.5;
  int positive = a > 0 ? 1 : -1;
  int bits = size(x) * num_elements(joined) + rank(x, 2) + int_step(0.5);
  for (i in 1 : 4) {
    if (x[i] % 2 == 1)
      counted += x[i] * i;
    else
      counted -= i;
    power *= 2;
  }
}
parameters {
  real u;
}
model {
  array[4] int copy = x;
  copy[2] = 9;
  copy[{1, 3}] = {b, a};
  u ~ normal(quotient + remainder * 0.1 + negative * 0.01 + negative_remainder * 0.001, power);
  target += extremes * u + most * 0.1 * u + logic * square(u) * 0.01 + counted * u;
  target += sum(copy) * u / ratio + u ^ b + powered * 0.01 * u + a * u + u / a + u ^ 3 + b ^ u;
  for (i in sorted)
    target += -0.01 * square(u - i);
}
generated quantities {
  array[4] int order = ranks;
  array[6] int all = joined;
  array[4] int last = backwards;
  int halves = a %/% 2;
  int mixed = positive + whole + bits;
  array[2] int made = {sorted[4] - 1, x[ranks[1]]};
}
