// SPDX-License-Identifier: Apache-2.0
// The stages are layouts: everything about them is known when they are compiled.
#include "meshwise/parallel/zero_stages.hpp"

#include <doctest/doctest.h>

namespace {

using namespace meshwise;

static_assert(ZeroStage<DataParallel<dp>> && ZeroStage<Zero1<dp>> && ZeroStage<Zero2<dp>> && ZeroStage<Zero3<dp>>);
static_assert(ZeroStage<Zero3Unresharded<dp>> && ZeroStage<HybridZero3<dp, cp>> && ZeroStage<SecondaryZero3<dp, cp>>);
static_assert(ZeroStage<DataParallel<dp, cp>> && ZeroStage<Zero1<dp, cp>> && ZeroStage<Zero2<dp, cp>> &&
              ZeroStage<Zero3<dp, cp>> && ZeroStage<Zero3Unresharded<dp, cp>>);

using Both = Mesh<dp, cp>;

// Gradients that are used in parts of one axis, but owed over both: two collectives at once.
struct Hasty : HybridZero3<dp, cp> {
  using gradients = Layout<Both, Partial<dp>, Partial<cp>>;
};
static_assert(!ZeroStage<Hasty>);
// State that is not a part of what a rank has at rest: it would have to be gathered to be updated.
struct StateApart : Zero3<dp, cp> {
  using state = Layout<Both, Shard<flat, cp>>;
};
static_assert(!ZeroStage<StateApart>);
// A sum that is owed is no place to keep parameters.
struct OwedParameters : Zero1<dp> {
  using parameters = Layout<Mesh<dp>, Partial<dp>>;
};
static_assert(!ZeroStage<OwedParameters>);
// What is kept between forward and backward is a part of the whole that is there after the forward, but other layouts
// on the way back must be one collective.
struct KeptStriped : Zero3<dp> {
  using kept = Layout<Mesh<dp>, Shard<flat, Striped<dp>>>;
};
static_assert(!ZeroStage<KeptStriped>);
struct OtherMesh : Zero3<dp> {
  using state = Layout<Mesh<cp>, Shard<flat, cp>>;
};
static_assert(!ZeroStage<OtherMesh> && !ZeroStage<int>);

// A stage of the user's own: parameters split, gradients added up whole, reduced once (no_sync of FSDP).
struct Zero3Accumulating : Zero3<dp> {
  using gradients = Layout<Mesh<dp>, Partial<dp>>;
};
static_assert(ZeroStage<Zero3Accumulating>);
// And one whose replicas across nodes share the optimizer's work.
struct HybridShared : HybridZero3<dp, cp> {
  using state = Layout<Both, Shard<flat, cp, dp>>;
};
static_assert(ZeroStage<HybridShared>);

constexpr Transition only(const LayoutPlan& steps) {
  return steps.count == 0 ? Transition::equal : steps.steps[0].what;
}

}  // namespace

TEST_CASE("zero stages: what each of them sends is what its layouts say") {
  using Whole = Layout<Mesh<dp>>;
  using Owed = Layout<Mesh<dp>, Partial<dp>>;
  CHECK(only(detail::flat_plan<DataParallel<dp>::gradients, DataParallel<dp>::state>) == Transition::all_reduce);
  CHECK(only(detail::flat_plan<Zero1<dp>::gradients, Zero1<dp>::state>) == Transition::reduce_scatter);
  CHECK(only(detail::flat_plan<Zero1<dp>::state, Zero1<dp>::parameters>) == Transition::all_gather);
  CHECK(only(detail::flat_plan<Owed, Zero2<dp>::gradients>) == Transition::reduce_scatter);
  CHECK(only(detail::flat_plan<Zero2<dp>::gradients, Zero2<dp>::state>) == Transition::equal);
  CHECK(only(detail::flat_plan<Zero3<dp>::parameters, Whole>) == Transition::all_gather);
  CHECK(only(detail::flat_plan<Zero3<dp>::state, Zero3<dp>::parameters>) == Transition::equal);
  using H = HybridZero3<dp, cp>;
  CHECK(only(detail::flat_plan<Layout<Both, Partial<dp>, Partial<cp>>, H::gradients>) == Transition::reduce_scatter);
  CHECK(only(detail::flat_plan<H::gradients, H::state>) == Transition::all_reduce);
  CHECK(only(detail::flat_plan<HybridShared::gradients, HybridShared::state>) == Transition::reduce_scatter);
}
