// SPDX-License-Identifier: Apache-2.0
// A call for tests of how calls are written down and compared.
#pragma once

#include "meshwise/collective/call.hpp"

namespace test {

/// A call in which nothing that ranks compare has its default.
inline meshwise::Call sample() {
  meshwise::Call call;
  call.verb = "all_reduce";
  call.shape = meshwise::Shape{meshwise::Operation::all_reduce, 4, 3, true};
  call.element = meshwise::ElementKind::bf16;
  call.element_size = 2;
  call.reduction = meshwise::ReductionKind::max;
  call.algorithm = meshwise::Algorithm::ring;
  call.count = 77;
  call.signature = 5;
  return call;
}

}  // namespace test
