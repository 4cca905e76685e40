// SPDX-License-Identifier: Apache-2.0
// The harness with a library that returns one wrong value: linked in place of benchmarks/bench/no_fault.cpp.
#include "../../benchmarks/bench/verify.hpp"

void harness::before_verification(const Work& work) {
  const std::size_t after = (work.own_begin() + 1) * work.element_bytes();
  if (work.rank == work.root) work.out[after - 1] ^= std::byte{0x40};
}
