// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace meshwise {

/// What attention gives, and what its backward needs of it.
template <class Out, class LogSum>
struct Attended {
  Out out;         ///< placed like the queries
  LogSum log_sum;  ///< for each query log(sum of exp(score)), in the accumulate type; -infinity if it sees no key
  std::uint64_t scores = 0;  ///< how many scores this rank has evaluated, in all its batches and heads
};

/// The gradients of attention.
template <class Q, class K, class V>
struct AttentionBackward {
  Q q;
  K k;
  V v;
  std::uint64_t scores = 0;  ///< as in Attended
};

}  // namespace meshwise
