// SPDX-License-Identifier: Apache-2.0
#include "meshwise/parallel/fused_projection.hpp"

#include <doctest/doctest.h>

#include "block_support.hpp"

namespace {

using namespace test;

struct Separate : BlockShape {
  using keys = SharedHeads<Along<tp>>;
};
struct Fused : BlockShape {
  using projection = FusedProjection;
};
template <class S, Recompute R = Recompute::none>
struct Form : BlockForm {
  using shape = S;
  static constexpr Recompute recompute = R;
};
using Apart = TransformerBlock<double, Grid, Form<Separate>>;
using Together = TransformerBlock<double, Grid, Form<Fused>>;
using Weight = decltype(Together::Parameters::projection_weight);
using QueryWeight = decltype(Apart::Parameters::query_weight);
using KeyWeight = decltype(Apart::Parameters::key_weight);
static_assert(
    std::is_same_v<Weight, Tensor<double, Dims<hidden, kv, query_key_value, head_dim>, Layout<Grid, Shard<kv, tp>>>>);

template <class T>
concept can_split = requires(const T& x) {
  split_projections(x);
};
template <class Q, class K>
concept can_fuse = requires(const Q& q, const K& k) {
  fuse_projections(q, k, k, 3);
};
static_assert(can_split<Weight> && can_fuse<QueryWeight, KeyWeight>);
static_assert(!can_split<KeyWeight> && !can_fuse<QueryWeight, QueryWeight>);
static_assert(!can_fuse<QueryWeight, Tensor<double, KeyWeight::dims, Layout<Grid>>>, "placed apart");

std::size_t parts_of(const BlockSizes& z) { return 2 + (z.kv == 0 ? 1 : z.heads / z.kv); }

Together::Parameters fused(const Apart::Parameters& w, std::size_t parts) {
  return {w, fuse_projections(w.query_weight, w.key_weight, w.value_weight, parts),
          fuse_projections(w.query_bias, w.key_bias, w.value_bias, parts)};
}

void fused_as_separate(const Grid& mesh, const BlockSizes& z) {
  const auto w = block_parameters<Apart::Parameters>(mesh, z);
  const auto one = fused(w, parts_of(z));
  const auto x = block_input<Apart>(mesh, z), dy = block_upstream<Apart>(mesh, z);
  const Apart::Drop drop{0.2, 11, 12, {0.3, 13}};
  const Together::Drop same{0.2, 11, 12, {0.3, 13}};
  const auto apart = Apart::forward(w, x, drop);
  const auto together = Together::forward(one, x, same);
  require_near(entire(together.first), entire(apart.first), 1e-13, "the result");
  const auto [dx, g] = Apart::backward(w, apart.second, dy, drop);
  const auto [dx_fused, g_fused] = Together::backward(one, together.second, dy, same);
  require_near(entire(dx_fused), entire(dx), 1e-12, "the gradient of the input");
  const auto weights = split_projections(*g_fused.projection_weight);
  require_near(entire(weights.q), entire(*g.query_weight), 1e-12, "the weight of queries");
  require_near(entire(weights.k), entire(*g.key_weight), 1e-12, "the weight of keys");
  require_near(entire(weights.v), entire(*g.value_weight), 1e-12, "the weight of values");
  const auto biases = split_projections(*g_fused.projection_bias);
  require_near(entire(biases.q), entire(*g.query_bias), 1e-12, "the bias of queries");
  require_near(entire(biases.v), entire(*g.value_bias), 1e-12, "the bias of values");
  require_near(entire(*g_fused.norm1_gain), entire(*g.norm1_gain), 1e-12, "the norm's gain");
}

const BlockSizes groups{2, 3, 6, 6, 2, 7, 2}, each_its_own{2, 3, 6, 5, 2, 7, 5}, one_for_all{2, 3, 6, 4, 1, 7, 1};

}  // namespace

TEST_CASE("fused projection: a block with one product for queries, keys and values is the block with three") {
  for (const BlockSizes& z : {groups, each_its_own, one_for_all, BlockSizes{2, 3, 4, 0, 2, 3, 0}}) {
    CHECK_NOTHROW(on_grid({1, 1}, [&](const Grid& mesh) { fused_as_separate(mesh, z); }));
  }
  CHECK_NOTHROW(on_grid({2, 2}, [&](const Grid& mesh) { fused_as_separate(mesh, groups); }));
  // Heads that are their own groups may be split unevenly, and be fewer than ranks.
  CHECK_NOTHROW(on_grid({1, 3}, [&](const Grid& mesh) { fused_as_separate(mesh, each_its_own); }));
  CHECK_NOTHROW(on_grid({1, 7}, [&](const Grid& mesh) { fused_as_separate(mesh, each_its_own); }));
}

TEST_CASE("fused projection: parts are split by themselves, so that the gathered weight is the same for all ranks") {
  for (const int t : {1, 2}) {
    on_grid({1, t}, [](const Grid& mesh) {
      const auto all = entire(drawn<QueryWeight>(mesh, groups, 5, 1));
      const auto query = drawn<QueryWeight>(mesh, groups, 5, 1);
      const auto keys = drawn<KeyWeight>(mesh, groups, 6, 1), values = drawn<KeyWeight>(mesh, groups, 7, 1);
      const Weight one = fuse_projections(query, keys, values, parts_of(groups));
      const auto weight = entire(one), k = entire(keys), v = entire(values);
      const std::size_t parts = parts_of(groups), d = groups.head_dim;
      for (std::size_t i = 0; i < weight.size(); ++i) {
        const std::size_t row = i / (groups.kv * parts * d), group = i / (parts * d) % groups.kv;
        const std::size_t part = i / d % parts, column = i % d;
        const std::size_t head = group * (parts - 2) + part;
        const double expected = part < parts - 2 ? all[(row * groups.heads + head) * d + column]
                                                 : (part == parts - 2 ? k : v)[(row * groups.kv + group) * d + column];
        require(weight[i] == expected, "the order: queries of a group, its key, its value");
      }
      const auto back = split_projections(one);
      require(piece(back.q) == piece(query) && piece(back.k) == piece(keys) && piece(back.v) == piece(values),
              "there and back");
    });
  }
}

TEST_CASE("fused projection: groups that are not whole on a rank are refused, with the remedy") {
  for (const BlockSizes& z : {groups, BlockSizes{2, 3, 6, 5, 2, 7, 2}}) {
    try {
      on_grid({1, 3}, [&](const Grid& mesh) {
        const auto w = block_parameters<Apart::Parameters>(mesh, z);
        static_cast<void>(fused(w, 5));
      });
      FAIL("refused");
    } catch (const std::exception& e) {
      CHECK(std::string(e.what()).find("SeparateProjections") != std::string::npos);
    }
  }
}
