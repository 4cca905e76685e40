// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/attention_mask.hpp"

namespace meshwise {
namespace {

static_assert(AttentionMask<NoMask> && AttentionMask<CausalMask> && AttentionMask<WindowMask>);
static_assert(AttentionMask<Range (*)(std::size_t)> && !AttentionMask<bool (*)(std::size_t, std::size_t)>);
static_assert(NoMask{}(7) == Range{0, ~std::size_t{0}});
static_assert(CausalMask{}(0) == Range{0, 1} && CausalMask{}(7) == Range{0, 8});
static_assert(WindowMask{3}(0) == Range{0, 1} && WindowMask{3}(1) == Range{0, 2} && WindowMask{3}(2) == Range{0, 3});
static_assert(WindowMask{3}(3) == Range{1, 3} && WindowMask{1}(9) == Range{9, 1} && WindowMask{0}(9).size == 0);
static_assert(WindowMask{~std::size_t{0}}(9) == CausalMask{}(9));

}  // namespace
}  // namespace meshwise
