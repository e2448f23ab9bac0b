data {
  int<lower=1> D;
}
parameters {
  vector[D] q;
}
model {
  q ~ std_normal();
}
