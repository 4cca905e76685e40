// SPDX-License-Identifier: Apache-2.0
// What a rank holds of a vector that is cut into stripes is no run of its elements.
#include "meshwise/train/weight_decay.hpp"

#include "vocabulary.hpp"

template <class... Ps>
using Flat = On<Dims<flat>, Ps...>;
using Stripes = Flat<Shard<flat, Striped<dp>>>;
using Parts = Flat<Shard<flat, dp>>;

// expect: because::dim_is_not_contiguous<flat>, try_<cut_it_into_contiguous_parts>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Stripes& w, const Stripes& dw, AdamWState<Stripes>& state, std::span<const Range> vectors) {
  adamw_step(w, dw, state, 1, {}, 1.0, vectors);
}
#else
void user(Parts& w, const Parts& dw, AdamWState<Parts>& state, std::span<const Range> vectors) {
  adamw_step(w, dw, state, 1, {}, 1.0, vectors);
}
#endif
