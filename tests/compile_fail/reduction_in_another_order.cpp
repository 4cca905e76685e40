// SPDX-License-Identifier: Apache-2.0
// The ranks' shares would be combined in an order that is not that of the rows.
#include "meshwise/tensor/convert.hpp"
#include "meshwise/tensor/reductions.hpp"

#include "vocabulary.hpp"

struct Last {
  static constexpr const char* name = "last";
  static constexpr ReductionKind kind = ReductionKind::user;
  static constexpr bool commutative = false, linear = false;
  template <Element E>
  static constexpr accumulate_t<E> identity() {
    return 0;
  }
  template <class A>
  static constexpr A apply(A a, A b) {
    return b == A(0) ? a : b;
  }
};

// expect: because::needs_the_whole_dim<batch>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<batch, tp>>& x) { return reduce<Last, batch>(x); }
#else
auto user(const On<Rows, Shard<batch, tp>>& x) { return reduce<Last, batch>(convert<Replicate<tp>>(x)); }
#endif
