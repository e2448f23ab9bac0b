// A standard normal distribution of d dimensions; standard_normal.ab is the same in autobatch's language.
data {
  int<lower=0> d;
}
parameters {
  vector[d] x;
}
model {
  x ~ std_normal();
}
