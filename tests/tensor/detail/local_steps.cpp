// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/detail/local_steps.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "../support.hpp"
#include "meshwise/layout/plan.hpp"

namespace test {
namespace {

using Square = Dims<d0, d1>;
template <class... Ps>
using T = Tensor<double, Square, On<Ps...>>;

/// The steps, one at a time, of a rank alone.
class Steps : public detail::LocalSteps {
 public:
  Steps(const detail::Conversion& conversion, const Range* held, detail::LocalPiece piece)
      : LocalSteps(conversion, held, piece) {}
  void run(const PlanStep& step, const LayoutValue& before, const detail::LocalShape& after) {
    if (step.what == Transition::slice) slice(step, before, after);
    if (step.what == Transition::keep_first) keep_first(step);
    if (step.what == Transition::pad) pad(step, before, after);
  }
};

void fill_minus_one(std::byte* out, std::size_t n) { std::fill_n(reinterpret_cast<double*>(out), n, -1.0); }

/// What becomes of a piece in the one step between two layouts, and whether it is shared.
struct Outcome {
  std::vector<double> values;
  bool shared = false;
};
template <class From, class To>
Outcome step_of(const T<From>& x) {
  constexpr const LayoutPlan& steps = plan<On<From>, On<To>, Square>;
  static_assert(steps.count == 1 && !steps.communicates());
  detail::ConversionKind kind{steps};
  kind.element = {ElementKind::f64, sizeof(double)};
  kind.reductions.fill = &fill_minus_one;  // not zero, so that it is seen
  const detail::Conversion conversion{kind, x.mesh().view(), x.extents().data(), x.extents().data()};
  const T<To> like(x.mesh(), x.extents());
  detail::LocalShape after{};
  std::copy(like.ranges().begin(), like.ranges().end(), after.begin());
  Storage storage = x.storage();
  std::size_t offset = x.offset();
  Steps(conversion, x.ranges().data(), {storage, offset, false}).run(steps.steps[0], steps.from, after);
  const auto* const data = reinterpret_cast<const double*>(storage.data()) + offset;
  return {{data, data + like.local().size()}, storage.data() == x.storage().data()};
}

std::vector<double> numbers_of(const Rank& rank, const Extents<Square>& extents, auto like) {
  const auto x = rank.fill<decltype(like)>(extents, [](std::size_t i) { return static_cast<double>(i); });
  return {x.local().begin(), x.local().end()};
}

template <class P>
void check_slice(const Rank& rank, const Extents<Square>& extents, bool runs) {
  const auto whole = rank.fill<T<Replicate<tp>>>(extents, [](std::size_t i) { return static_cast<double>(i); });
  const Outcome cut = step_of<Replicate<tp>, P>(whole);
  const T<P> like(rank.mesh, extents);
  require_equal(cut.values, numbers_of(rank, extents, like), name_of<P>());
  require(!runs || cut.shared, name_of<P>() + ": one run is shared");
}

TEST_CASE("a slice is the own part; what is one run is shared, whatever the rule") {
  for (const int n : {2, 3}) {
    on_grid({1, n}, [](const Rank& rank) {
      for (const Extents<Square>& extents : {Extents<Square>{7, 5}, {2, 3}, {0, 2}, {3, 0}, {1, 1}}) {
        check_slice<Shard<d0, tp>>(rank, extents, true);
        check_slice<Shard<d0, Chunked<tp>>>(rank, extents, true);
        check_slice<Shard<d1, tp>>(rank, extents, extents[0].size() <= 1);
        check_slice<Shard<d0, Zigzag<tp>>>(rank, extents, false);
        check_slice<Shard<d1, Striped<tp>>>(rank, extents, false);
      }
    });
  }
}

TEST_CASE("the first coordinate keeps the value, others hold the identity; a part is padded with it") {
  on_grid({1, 3}, [](const Rank& rank) {
    for (const Extents<Square>& extents : {Extents<Square>{4, 2}, {1, 5}, {0, 3}}) {
      const auto whole = rank.integers<T<Replicate<tp>>>(extents);
      const Outcome kept = step_of<Replicate<tp>, Partial<tp>>(whole);
      const bool keeps = rank.mesh.coordinate<tp>() == 0;
      require(kept.shared == keeps, "one keeps what it has");
      for (std::size_t i = 0; i < kept.values.size(); ++i) {
        require(kept.values[i] == (keeps ? integer(i, 1) : -1.0), "kept");
      }
      const auto check_pad = [&]<class P>(detail::type<P>) {
        const auto x = rank.integers<T<P>>(extents);
        const std::vector<double> padded = step_of<P, Partial<tp>>(x).values;
        std::vector<double> wanted(extents[0] * extents[1], -1.0);
        for (const std::size_t at : describe(x).positions()) wanted[at] = integer(at, 1);
        require_equal(padded, wanted, "padded");
      };
      check_pad(detail::type<Shard<d0, tp>>{});
      check_pad(detail::type<Shard<d1, tp>>{});
      check_pad(detail::type<Shard<d0, Zigzag<tp>>>{});
    }
  });
}

}  // namespace
}  // namespace test
