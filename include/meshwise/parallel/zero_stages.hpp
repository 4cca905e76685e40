// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/layout/plan.hpp"
#include "meshwise/parallel/detail/data_axes.hpp"
#include "meshwise/tensor/detail/started.hpp"

namespace meshwise {

// The stages of ZeRO as layouts. A unit is a flat vector of parameters; a stage says how the data-parallel ranks hold
// it, as layouts on the mesh of their axes, which stand in the mesh's order:
//
//   parameters  at rest, between steps
//   kept        between the forward and the backward of a unit
//   gradients   while micro-batches add to them
//   state       the optimizer's state, and the gradients that it uses
//
// The forward and the backward have whole parameters, and gradients come as sums that are owed. Everything that is
// sent is a conversion from one of these layouts to another one, and has to be one collective at most.

/// Everything on every rank: an all_reduce of the gradients. Bytes sent per parameter and rank: 2(n-1)/n b, with b
/// bytes each for parameters and gradients; held with AdamW in mixed precision: 2 + 2 + 12.
template <Axis... As>
struct DataParallel {
  using parameters = Layout<Mesh<As...>>;
  using kept = parameters;
  using gradients = detail::owed_on<Mesh<As...>>;
  using state = parameters;
};

/// Stage 1, optimizer state is split: a reduce_scatter of the gradients, an all_gather of the parameters after the
/// step. Sent: 2(n-1)/n b; held: 2 + 2 + 12/n.
template <Axis... As>
struct Zero1 {
  using parameters = Layout<Mesh<As...>>;
  using kept = parameters;
  using gradients = detail::owed_on<Mesh<As...>>;
  using state = Layout<Mesh<As...>, Shard<flat, As...>>;
};

/// Stage 2, gradients are split too: reduced in each of m micro-batches. Sent: (n-1)/n (m + 1) b; held: 2 + 2/n + 12/n.
template <Axis... As>
struct Zero2 {
  using parameters = Layout<Mesh<As...>>;
  using kept = parameters;
  using gradients = Layout<Mesh<As...>, Shard<flat, As...>>;
  using state = gradients;
};

/// Stage 3, parameters are split too (FSDP): gathered before the forward and again before the backward. Sent:
/// (n-1)/n 3m b; held: 16/n.
template <Axis... As>
struct Zero3 {
  using parameters = Layout<Mesh<As...>, Shard<flat, As...>>;
  using kept = parameters;
  using gradients = parameters;
  using state = parameters;
};

/// Stage 3 without resharding after the forward: gathered once for both. Sent: (n-1)/n 2m b; held while the loss is
/// computed: 2 + 14/n.
template <Axis... As>
struct Zero3Unresharded {
  using parameters = Layout<Mesh<As...>, Shard<flat, As...>>;
  using kept = Layout<Mesh<As...>>;
  using gradients = parameters;
  using state = parameters;
};

/// Stage 3 inside a node, replicas across (HSDP): gathers and reduce_scatters over Inner, of n ranks, and one
/// all_reduce of what they leave over Outer, of r ranks, in the last micro-batch. Sent: (n-1)/n 3m b over Inner,
/// 2(r-1)/r b/n over Outer; held: 16/n.
template <Axis Outer, Axis Inner>
struct HybridZero3 {
  using parameters = Layout<Mesh<Outer, Inner>, Shard<flat, Inner>>;
  using kept = parameters;
  using gradients = Layout<Mesh<Outer, Inner>, Partial<Outer>, Shard<flat, Inner>>;
  using state = parameters;
};

/// Stage 3 over both axes, of which Inner's part is kept between forward and backward (ZeRO++'s secondary shards): only
/// the forward gathers over Outer. Sent per micro-batch with N ranks in all, n along Inner: 2(N-1)/N b over both axes,
/// (n-1)/n b over Inner; held: 16/N + 2/n.
template <Axis Outer, Axis Inner>
struct SecondaryZero3 {
  using parameters = Layout<Mesh<Outer, Inner>, Shard<flat, Inner, Outer>>;
  using kept = Layout<Mesh<Outer, Inner>, Shard<flat, Inner>>;
  using gradients = parameters;
  using state = parameters;
};

namespace detail {

template <class From, class To>
inline constexpr LayoutPlan flat_plan = plan<From, To, Dims<flat>>;

/// Whether a flat vector goes from one layout to another by one collective at most.
template <class From, class To>
concept OneCollective = OnTheMeshOf<From, To> &&(flat_plan<From, To>.possible&& is_startable(flat_plan<From, To>));
/// Whether it goes there without any.
template <class From, class To>
concept FreeToReach = OneCollective<From, To> && !flat_plan<From, To>.communicates();

template <class L>
concept OwesNothing = AnyLayout<L> && !has_partial<L>;

}  // namespace detail

/// Four layouts of a flat vector that a stage consists of.
template <class S>
concept ZeroStage = detail::OwesNothing<typename S::parameters> && detail::OwesNothing<typename S::kept> &&
                    detail::OwesNothing<typename S::state> && AnyLayout<typename S::gradients> &&
                    detail::OneCollective<typename S::parameters, Layout<detail::grid_of<typename S::parameters>>> &&
                    detail::OneCollective<typename S::kept, Layout<detail::grid_of<typename S::parameters>>> &&
                    detail::FreeToReach < Layout<detail::grid_of<typename S::parameters>>,
typename S::kept >
    &&detail::OneCollective<detail::owed_on<detail::grid_of<typename S::parameters>>, typename S::gradients>&&
        detail::OneCollective<typename S::gradients, typename S::state>&&
            detail::FreeToReach<typename S::parameters, typename S::state>&&
                detail::OneCollective<typename S::state, typename S::parameters>;

}  // namespace meshwise
