// SPDX-License-Identifier: Apache-2.0
// The steps themselves run in run_plan.cpp, for every pair of layouts; here what they share.
#include "meshwise/tensor/detail/collective_steps.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "../support.hpp"
#include "meshwise/layout/plan.hpp"

namespace test {
namespace {

TEST_CASE("the parts of a list by every rule are those that layouts of one axis hold") {
  for (const SplitRule rule :
       {SplitRule::contiguous, SplitRule::chunked, SplitRule::zigzag, SplitRule::striped, SplitRule::counted}) {
    for (const int parts : {1, 2, 3, 5}) {
      for (const std::size_t n : small_sizes) {
        LayoutValue layout;
        layout.axes = layout.dims = 1;
        layout.shard(0, 0, rule);
        std::vector<std::size_t> counts(static_cast<std::size_t>(parts), 0);
        counts.back() = n / 3;
        counts[counts.size() / 2] += n - n / 3;
        std::size_t all = 0;
        for (int part = 0; part < parts; ++part) {
          const std::array<int, 1> sizes{parts}, at{part};
          const Positions held = held_positions(layout, 0, n, sizes, at, counts);
          CHECK(detail::part_by(rule, Range{0, n}, static_cast<std::size_t>(parts), static_cast<std::size_t>(part),
                                counts) == held);
          all += held.size();
        }
        CHECK(all == n);
      }
    }
  }
}

/// A gather of parts that are no runs, by itself.
class Gather : public detail::CollectiveSteps {
 public:
  Gather(const detail::Conversion& conversion, const Range* held, detail::LocalPiece piece)
      : CollectiveSteps(conversion, held, piece) {}
  void run(const LayoutPlan& steps, const detail::LocalShape& after) { all_gather(steps.steps[0], steps.from, after); }
};

TEST_CASE("parts that are no runs are gathered into their places") {
  using From = Tensor<double, Dims<d0, d1>, On<Shard<d1, Zigzag<tp>>>>;
  constexpr const LayoutPlan& steps = plan<From::layout, On<>, From::dims>;
  static_assert(steps.is(Transition::all_gather) && !steps.steps[0].dense);
  for (const int n : {2, 3}) {
    on_grid({1, n}, [](const Rank& rank) {
      for (const Extents<From::dims>& extents : {Extents<From::dims>{3, 7}, {2, 1}, {0, 4}, {2, 0}}) {
        const From x = rank.integers<From>(extents);
        detail::ConversionKind kind{steps};
        kind.element = {ElementKind::f64, sizeof(double)};
        const detail::Conversion conversion{kind, x.mesh().view(), x.extents().data(), x.extents().data()};
        detail::LocalShape whole{};
        for (std::size_t d = 0; d < 2; ++d) whole[d] = {0, extents[d].size()};
        Storage storage = x.storage();
        std::size_t offset = x.offset();
        Gather(conversion, x.ranges().data(), {storage, offset, false}).run(steps, whole);
        const auto* const data = reinterpret_cast<const double*>(storage.data()) + offset;
        for (std::size_t i = 0; i < x.size(); ++i) require(data[i] == integer(i, 1), "in its place");
      }
    });
  }
}

}  // namespace
}  // namespace test
