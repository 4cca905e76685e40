// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace meshwise {

/// The ways of combining elements at run time; `none` where an operation combines nothing, `user` for an operation that
/// the library does not define (see `reduction_signature`). The values are stable.
enum class ReductionKind : std::uint8_t {
  none,
  sum,
  product,
  min,
  max,
  bit_and,
  bit_or,
  bit_xor,
  logical_and,
  logical_or,
  logical_xor,
  average,
  pre_multiplied_sum,
  user,
};

/// The name of a kind, such as "sum"; "unknown" for a value that is none.
constexpr const char* reduction_name(ReductionKind kind) {
  switch (kind) {
    case ReductionKind::none: return "none";
    case ReductionKind::sum: return "sum";
    case ReductionKind::product: return "product";
    case ReductionKind::min: return "min";
    case ReductionKind::max: return "max";
    case ReductionKind::bit_and: return "bit_and";
    case ReductionKind::bit_or: return "bit_or";
    case ReductionKind::bit_xor: return "bit_xor";
    case ReductionKind::logical_and: return "logical_and";
    case ReductionKind::logical_or: return "logical_or";
    case ReductionKind::logical_xor: return "logical_xor";
    case ReductionKind::average: return "average";
    case ReductionKind::pre_multiplied_sum: return "pre_multiplied_sum";
    case ReductionKind::user: return "user";
  }
  return "unknown";
}

}  // namespace meshwise
