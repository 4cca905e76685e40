// SPDX-License-Identifier: Apache-2.0
// Split rules, counts and reductions are part of a layout's type: what does not fit is refused, and `requires` sees it.
#include <type_traits>

#include "meshwise/layout/dual.hpp"
#include "meshwise/layout/plan.hpp"
#include "meshwise/tensor/convert.hpp"
#include "meshwise/tensor/elementwise.hpp"
#include "meshwise/tensor/named.hpp"
#include "meshwise/tensor/tensor.hpp"

namespace meshwise {
namespace {

using Grid = Mesh<dp, tp>;
using Rows = Dims<batch, hidden>;
template <class... Ps>
using On = Tensor<float, Rows, Layout<Grid, Ps...>>;

template <class T>
concept can_construct = requires(const Grid& mesh, const Extents<Rows>& extents) {
  T(mesh, extents);
};
template <class T, class... Ps>
concept can_convert = requires(const T& x) {
  convert<Ps...>(x);
};
template <class T, class... Ps>
concept can_view_as = requires(const T& x) {
  view_as<Ps...>(x);
};
template <class T, class A>
concept can_all_gather = requires(const T& x) {
  all_gather<A>(x);
};
template <class A, class B>
concept can_add = requires(const A& a, const B& b) {
  a + b;
};

// Data by one rule is no data by another.
using Zig = On<Shard<batch, Zigzag<tp>>>;
using Plain = On<Shard<batch, tp>>;
static_assert(!std::is_convertible_v<Zig, Plain> && !std::is_convertible_v<Plain, Zig>);
static_assert(!std::is_convertible_v<Zig, On<Shard<batch, Striped<tp>>>>);
static_assert(!can_view_as<Zig, Shard<batch, tp>> && !can_view_as<Plain, Shard<batch, Zigzag<tp>>>);
static_assert(!can_view_as<On<Shard<batch, Chunked<tp>>>, Shard<batch, tp>>);
static_assert(can_view_as<Zig, Shard<batch, Zigzag<tp>>> && can_view_as<On<>, Shard<batch, Zigzag<tp>>>);
static_assert(can_convert<Zig, Shard<batch, tp>> && can_convert<Zig, Replicate<tp>> && can_all_gather<Zig, tp>);
static_assert(!can_add<Zig, Plain> && can_add<Zig, Zig>);

// Counts are of a whole dim.
static_assert(!can_construct<On<Shard<batch, dp, Counted<tp>>>> && can_construct<On<Shard<batch, Counted<dp>, tp>>>);
static_assert(!can_convert<On<Shard<batch, dp>>, Shard<batch, Counted<tp>>>);
static_assert(can_convert<On<Shard<batch, Counted<dp>>>, Shard<batch, tp>>);

// One axis, one place, whatever the rule.
static_assert(!can_construct<On<Shard<batch, Zigzag<tp>, tp>>>);
static_assert(!can_construct<On<Shard<batch, Zigzag<tp>>, Shard<hidden, tp>>>);

// One reduction in a layout.
static_assert(!can_construct<On<Partial<dp>, Partial<tp, Max>>> &&
              can_construct<On<Partial<dp, Max>, Partial<tp, Max>>>);
static_assert(!can_convert<On<Partial<tp>>, Partial<dp, Max>> && can_convert<On<Partial<tp>>, Partial<dp>>);
static_assert(can_convert<On<Partial<tp>>, Replicate<tp>, Partial<dp, Max>>);

// A maximum has no gradient.
static_assert(!AnyLayout<Owed<Layout<Grid, Partial<tp, Max>>>> && AnyLayout<Owed<Layout<Grid, Partial<tp>>>>);

// Plans are between layouts on one mesh.
template <class From, class To>
concept can_plan = requires {
  plan<From, To>;
};
static_assert(can_plan<Layout<Grid>, Layout<Grid, Partial<tp>>> && !can_plan<Layout<Grid>, Layout<Mesh<tp, dp>>>);

}  // namespace
}  // namespace meshwise
