// SPDX-License-Identifier: Apache-2.0
// No dim of this tensor counts samples.
#include "meshwise/train/loader.hpp"

#include "vocabulary.hpp"

inline constexpr auto number = [](std::uint64_t sample, const auto&) { return sample; };

// expect: because::dim_not_in_the_tensor<batch>, try_<name_a_dim_of_this_tensor>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const GlobalBatch& b, const Grid& mesh) { return b.read<On<Weight>>(mesh, {b.size(), 2}, number); }
#else
auto user(const GlobalBatch& b, const Grid& mesh) { return b.read<On<Weight>, hidden>(mesh, {b.size(), 2}, number); }
#endif
