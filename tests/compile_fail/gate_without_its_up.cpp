// SPDX-License-Identifier: Apache-2.0
// A gated MLP is split by features: a rank with gates only has nothing to multiply them by.
#include "meshwise/parallel/gated_mlp.hpp"

#include "vocabulary.hpp"

// expect: because::needs_the_whole_dim<gate_and_up>, try_<convert_<Replicate<tp>>>
using H = On<Dims<batch, gate_and_up, ffn>, Shard<gate_and_up, tp>>;
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const H& h) { return swiglu(h); }
#else
auto user(const H& h) { return swiglu(convert<Replicate<tp>>(h)); }
#endif
