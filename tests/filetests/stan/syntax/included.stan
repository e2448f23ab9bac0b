functions {
  #include parts/twice.stanfunctions
  #include "parts/twice.stanfunctions" // once only
}
data {
#include <parts/sizes.stan>
}
model {
  target += twice(N);
}
