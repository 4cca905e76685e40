// SPDX-License-Identifier: Apache-2.0
// What data parallelism refuses, as `requires` sees it; compile_fail/ has the texts.
#include "meshwise/parallel/fully_shard.hpp"
#include "meshwise/parallel/zero.hpp"

namespace {

using namespace meshwise;

using Grid = Mesh<dp, tp>;
using Rows = Dims<batch, hidden>;
template <class... Ps>
using On = Tensor<float, Rows, Layout<Grid, Ps...>>;
using Model = Zero<Zero3<dp>, float, Grid>;

template <class T>
concept can_be_in_a_unit = requires(Model& model, const T& w) {
  { model.add(w) } -> std::same_as<Model::Ticket<T>>;
  { model.add_frozen(w) } -> std::same_as<Model::FrozenTicket<T>>;
};
static_assert(can_be_in_a_unit<On<>> && can_be_in_a_unit<On<Shard<hidden, tp>>>);
static_assert(!can_be_in_a_unit<On<Shard<batch, dp>>> && !can_be_in_a_unit<On<Partial<dp>>>);
static_assert(!can_be_in_a_unit<Tensor<double, Rows, Layout<Grid>>>);

template <class Ticket, class G>
concept can_give = requires(Model::Gradients& gradients, const Ticket& ticket, const G& dw) {
  gradients.add(ticket, dw);
};
static_assert(can_give<Model::Ticket<On<>>, On<Partial<dp>>>);
static_assert(!can_give<Model::Ticket<On<>>, On<>> && !can_give<Model::Ticket<On<>>, On<Partial<dp>, Partial<tp>>>);
static_assert(!can_give<Model::FrozenTicket<On<>>, On<Partial<dp>>>);
static_assert(can_give<Model::Ticket<On<Shard<hidden, tp>>>, On<Partial<dp>, Shard<hidden, tp>>>);

template <class T>
concept can_be_split = requires(const T& w) {
  requires AnyTensor<decltype(fully_shard<dp>(w))>;
};
static_assert(can_be_split<On<>> && can_be_split<On<Shard<batch, tp>>>);
static_assert(!can_be_split<On<Shard<batch, dp>>> && !can_be_split<On<Partial<dp>>>);

template <class T>
concept can_be_gathered = requires(const T& w) {
  start_unshard<dp>(w).wait();
};
static_assert(can_be_gathered<On<Shard<batch, dp>>> && can_be_gathered<On<Shard<batch, tp, dp>>>);
static_assert(!can_be_gathered<On<Shard<batch, dp, tp>>>);

template <class G>
concept can_be_reduced = requires(const G& dw) {
  start_shard_gradient<dp>(dw).wait();
};
static_assert(can_be_reduced<On<Partial<dp>>> && can_be_reduced<On<Partial<dp>, Shard<batch, tp>>>);
static_assert(!can_be_reduced<On<>> && !can_be_reduced<On<Shard<batch, dp>>> && !can_be_reduced<On<Partial<tp>>>);

}  // namespace
