// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/reshard.hpp"

#include <doctest/doctest.h>

#include <array>

#include "meshwise/layout/plan_volume.hpp"
#include "meshwise/tensor/backward.hpp"
#include "meshwise/tensor/named.hpp"
#include "support.hpp"

// What types add to the laws of conversions, which detail/run_plan.cpp checks for all pairs of layouts.
namespace test {
namespace {

using Square = Dims<d0, d1>;
template <class... Ps>
using T = Tensor<double, Square, On<Ps...>>;

template <class X, class To>
inline constexpr bool can_reshard = requires(const X& x) {
  requires AnyTensor<decltype(reshard<To>(x))>;
};
static_assert(can_reshard<T<Shard<d0, dp, tp>>, On<Shard<d0, tp, dp>>>);
static_assert(!can_reshard<T<>, On<Shard<d2, tp>>>);
static_assert(!can_reshard<T<>, Layout<Mesh<tp>>>);
static_assert(!can_reshard<T<Partial<tp>>, On<Partial<tp, Max>>>);
static_assert(!can_reshard<T<>, On<Shard<d0, Counted<tp>>>>);
static_assert(can_reshard<T<Shard<d0, Counted<tp>>>, On<Shard<d0, Counted<tp>, dp>>>);

Traffic spent(const Rank& rank) {
  const bool wide = rank.mesh.size<dp>() > 1 && rank.mesh.size<tp>() > 1;
  return rank.mesh.traffic<dp>() + rank.mesh.traffic<tp>() + (wide ? rank.mesh.traffic<dp, tp>() : Traffic{});
}

template <class From, class To>
void check_pair(const Rank& rank, const Extents<Square>& extents) {
  const std::string what = name_of<typename From::layout>() + " -> " + name_of<typename To::layout>();
  const From x = rank.integers<From>(extents);
  const std::vector<double> own(x.local().begin(), x.local().end());
  const Traffic before = spent(rank);
  const auto y = reshard<typename To::layout>(x);
  const auto received = (spent(rank) - before).volume;
  static_assert(std::is_same_v<std::remove_const_t<decltype(y)>, To>);
  const auto value = array(x.size(), [](std::size_t i) { return integer(i, 1); });
  require_equal(rank.denoted(y), value, what);
  require(std::equal(own.begin(), own.end(), x.local().begin(), x.local().end()), what + ": the argument");
  require_equal(rank.denoted(reshard<typename From::layout>(To(y))), value, what + " and back");
  constexpr const LayoutPlan& steps = plan<typename From::layout, typename To::layout, Square>;
  const std::array<int, 2> sizes{rank.mesh.size<dp>(), rank.mesh.size<tp>()};
  const std::array<std::size_t, 2> numbers{extents[0], extents[1]};
  require(rank.total(static_cast<double>(received)) ==
              static_cast<double>(plan_volume(steps, sizes, numbers, sizeof(double))),
          what + ": volume");
}

template <class From, class... To>
void check_from(const Rank& rank, const Extents<Square>& extents, detail::list<To...>) {
  (check_pair<From, To>(rank, extents), ...);
}

TEST_CASE("axes that trade places, several at once, other rules: values, there and back, volume") {
  using Ends = detail::list<T<>, T<Shard<d0, tp, dp>>, T<Shard<d0, Zigzag<dp>, tp>>, T<Shard<d1, Striped<tp>>>,
                            T<Partial<dp>, Shard<d0, tp>>, T<Partial<dp>, Partial<tp>>>;
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      for (const Extents<Square>& extents : {Extents<Square>{7, 6}, {2, 9}, {0, 3}}) {
        check_from<T<Shard<d0, dp, tp>>>(rank, extents, Ends{});
        check_from<T<Shard<d0, Chunked<tp>>, Shard<d1, dp>>>(rank, extents, Ends{});
        check_from<T<Partial<dp>, Partial<tp>>>(rank, extents, Ends{});
      }
    });
  }
}

TEST_CASE("convert of several axes is one plan between its ends") {
  on_grid({2, 2}, [](const Rank& rank) {
    const auto x = rank.integers<T<Partial<dp>, Partial<tp>>>({8, 4});
    const Traffic before = rank.mesh.traffic<dp, tp>();
    const T<> y = convert<Replicate<dp>, Replicate<tp>>(x);
    const Traffic both = rank.mesh.traffic<dp, tp>() - before;
    require(both.calls == 1 && rank.mesh.traffic<dp>() == Traffic{} && rank.mesh.traffic<tp>() == Traffic{},
            "one call");
    require(rank.total(static_cast<double>(both.volume)) == 2 * 3 * 32 * 8, "of one group");
    // Gathered and cut: what is cut first is not sent.
    const auto rows = rank.integers<T<Shard<d0, dp>>>({8, 4});
    const Traffic old = rank.mesh.traffic<dp>();
    const T<Shard<d1, tp>> columns = convert<Replicate<dp>, Shard<d1, tp>>(rows);
    require(rank.total(static_cast<double>((rank.mesh.traffic<dp>() - old).volume)) == 4 * 8 * 8, "half of it");
  });
}

TEST_CASE("a tensor that is used up is reduced in place, also along two axes, and freed on the way") {
  on_grid({2, 2}, [](const Rank& rank) {
    auto x = rank.integers<T<Partial<dp>, Partial<tp>>>({8, 4});
    const double* const place = x.local().data();
    const T<> y = reshard<On<>>(std::move(x));
    require(y.local().data() == place, "in place");
    require(contains(error_of([&] { (void)reshard<On<>>(std::move(x)); }), "moved from"), "moved from");
    auto z = rank.integers<T<Partial<dp>, Shard<d0, tp>>>({8, 4});
    const std::uint64_t used = rank.mesh.memory().total().current;
    const T<> whole = reshard<On<>>(std::move(z));
    require(rank.mesh.memory().total().current == used - 16 * 8 + 32 * 8, "only the result is left");
  });
}

TEST_CASE("Zigzag data: positions, the way there and back, another dim") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      using Folded = T<Shard<d0, Zigzag<tp>>>;
      const Folded x = rank.integers<Folded>({11, 3});
      const Positions held = x.positions<d0>();
      const auto n = static_cast<std::size_t>(rank.mesh.size<tp>());
      require(held == zigzag_part(Range{0, 11}, n, static_cast<std::size_t>(rank.mesh.coordinate<tp>())), "positions");
      require(x.ranges()[0].size == held.size() && x.local().size() == 3 * held.size(), "sizes");
      const auto value = array(33, [](std::size_t i) { return integer(i, 1); });
      require_equal(rank.denoted(convert<Shard<d0, tp>>(x)), value, "to contiguous");
      require_equal(rank.denoted(convert<Shard<d0, Zigzag<tp>>>(convert<Shard<d0, tp>>(x))), value, "and back");
      require_equal(rank.denoted(convert<Shard<d1, tp>>(x)), value, "to another dim");
      require_equal(rank.denoted(all_gather<tp>(x)), value, "gathered in global order");
      require_equal(rank.denoted(convert<Partial<tp>>(x)), value, "padded");
      const auto owed = rank.integers<T<Partial<tp>>>({11, 3});
      require_equal(rank.denoted(reduce_scatter<d0, tp>(convert<Replicate<dp>>(owed))), value, "contiguous");
      require_equal(rank.denoted(convert<Shard<d0, Zigzag<tp>>>(owed)), value, "scattered in its order");
      static_assert(!requires { requires std::is_same_v<decltype(x.template range<d0>()), Range>; });
    });
  }
}

TEST_CASE("Counted: counts at run time, empty parts, other counts, gradients") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      const auto n = static_cast<std::size_t>(rank.mesh.size<tp>());
      std::vector<std::size_t> counts(n, 0), others(n, 0);
      counts[n - 1] = 7;
      others[0] = 4;
      others[n / 2] += 3;
      const auto value = array(14, [](std::size_t i) { return integer(i, 1); });
      const auto x = rank.integers<T<Shard<d1, tp>>>({7, 2});
      using Routed = T<Shard<d0, Counted<tp>>>;
      const Routed y = convert<Shard<d0, Counted<tp>>>(x, counts);
      const auto me = static_cast<std::size_t>(rank.mesh.coordinate<tp>());
      require(y.range<d0>().size == counts[me], "the own part");
      require(std::ranges::equal(y.extents()[0].counts(), counts) && y.extents() != x.extents(), "the counts");
      require_equal(rank.denoted(y), value, "counted");
      const Routed z = convert<Shard<d0, Counted<tp>>>(y, others);
      require(z.range<d0>().size == others[me], "counted anew");
      require_equal(rank.denoted(z), value, "counted anew");
      const T<> whole = all_gather<tp>(z);
      require(!whole.extents()[0].counted() && whole.extents() == T<>(rank.mesh, {7, 2}).extents(), "counts are gone");
      require_equal(rank.denoted(whole), value, "gathered");
      const auto back = backward_to<Routed>(rank.integers<T<Partial<tp>>>({7, 2}), y.extents());
      require(back.extents() == y.extents() && back.ranges() == y.ranges(), "a gradient is placed like its value");
      require_equal(rank.denoted(back), value, "gradient");
      const auto nested = reshard<On<Shard<d0, Counted<tp>, dp>>>(y);
      require_equal(rank.denoted(nested), value, "nested");

      counts.push_back(0);
      require(contains(error_of([&] { (void)convert<Shard<d0, Counted<tp>>>(x, counts); }),
                       "expected " + std::to_string(n) + " counts"),
              "too many counts");
      counts.pop_back();
      counts[0] += 1;
      require(contains(error_of([&] { (void)convert<Shard<d0, Counted<tp>>>(x, counts); }),
                       "expected 7 indices in all, the extent of the dim, found 8"),
              "another sum");
      require(contains(error_of([&] { Routed(rank.mesh, {7, 2}); }), "found an extent without counts"), "no counts");
    });
  }
}

/// What a conversion receives on all ranks is what its plan says, given the counts at both ends.
template <class To, class X>
auto foreseen(const Rank& rank, const X& x, const Extents<Square>& after) {
  const Traffic before = spent(rank);
  const auto y = reshard<typename To::layout>(x, after);
  const double received = rank.total(static_cast<double>((spent(rank) - before).volume));
  constexpr const LayoutPlan& steps = plan<typename X::layout, typename To::layout, Square>;
  const std::array<int, 2> sizes{rank.mesh.size<dp>(), rank.mesh.size<tp>()};
  const std::array<std::size_t, 2> numbers{x.extents()[0], x.extents()[1]};
  const std::array<DimCounts, 2> counts{
      {{x.extents()[0].counts(), after[0].counts()}, {x.extents()[1].counts(), after[1].counts()}}};
  require(received == static_cast<double>(plan_volume(steps, sizes, numbers, sizeof(double), counts)),
          name_of<typename X::layout>() + " -> " + name_of<typename To::layout>() + ": volume");
  require_equal(rank.denoted(y), array(x.size(), [](std::size_t i) { return integer(i, 1); }), "value");
  return y;
}

TEST_CASE("the bytes of counts are foreseen: to other ones, by another axis, with what else changes on the way") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      const auto counts = [](int parts, std::size_t of, bool backwards) {
        std::vector<std::size_t> result(static_cast<std::size_t>(parts), 0);
        result[backwards ? 0 : result.size() - 1] = of - of / 3;
        result[result.size() / 2] += of / 3;
        return Extent::of_parts(result);
      };
      using Parts = T<Shard<d0, Counted<tp>>>;
      const int n = rank.mesh.size<tp>(), m = rank.mesh.size<dp>();
      const auto rows = foreseen<Parts>(rank, rank.integers<T<Shard<d1, tp>>>({7, 4}), {counts(n, 7, false), 4});
      const auto anew = foreseen<Parts>(rank, rows, {counts(n, 7, true), 4});
      const auto cut = foreseen<T<Shard<d0, Counted<tp>, dp>>>(rank, anew, {counts(n, 7, false), 4});
      foreseen<Parts>(rank, cut, {counts(n, 7, true), 4});
      foreseen<T<Shard<d0, Counted<dp>>>>(rank, rows, {counts(m, 7, true), 4});
      const auto two = foreseen<T<Shard<d0, Counted<tp>>, Shard<d1, Counted<dp>>>>(
          rank, rows, {counts(n, 7, true), counts(m, 4, false)});
      foreseen<T<Shard<d0, Counted<dp>>, Shard<d1, Counted<tp>>>>(rank, two, {counts(m, 7, false), counts(n, 4, true)});
      foreseen<Parts>(rank, rank.integers<T<Shard<d0, Counted<tp>>, Partial<dp>>>({counts(n, 7, false), 4}),
                      {counts(n, 7, true), 4});
      foreseen<T<>>(rank, two, {7, 4});
    });
  }
}

TEST_CASE("counts that differ between ranks are a mismatch, not wrong data") {
  const std::string text = error_of([] {
    on_grid({1, 2}, [](const Rank& rank) {
      rank.mesh.set_checks(Checks::light);
      const auto x = rank.integers<T<Shard<d1, tp>>>({7, 2});
      const std::vector<std::size_t> counts =
          rank.mesh.coordinate<tp>() == 0 ? std::vector<std::size_t>{3, 4} : std::vector<std::size_t>{4, 3};
      (void)convert<Shard<d0, Counted<tp>>>(x, counts);
    });
  });
  CHECK(contains(text, "exchange"));
}

TEST_CASE("counts that differ between ranks which only slice: communicating checks find them") {
  on_grid({1, 2}, [](const Rank& rank) {
    const bool first = rank.mesh.coordinate<tp>() == 0;
    rank.mesh.set_checks(Checks::communicating);
    const auto x = rank.integers<T<>>({7, 2});
    const std::vector<std::size_t> counts = first ? std::vector<std::size_t>{3, 4} : std::vector<std::size_t>{4, 3};
    const std::string text = error_of([&] { static_cast<void>(convert<Shard<d0, Counted<tp>>>(x, counts)); });
    require(contains(text, "in parts of 3 4") && contains(text, "in parts of 4 3"), text);
    const std::vector<std::size_t> same{4, 3};
    require_equal(rank.denoted(convert<Shard<d0, Counted<tp>>>(x, same)), rank.denoted(x), "the same counts");
  });
}

TEST_CASE("extents that are not the tensor's are errors, whatever the layouts and the level of checks") {
  for (const Checks level : {Checks::none, Checks::light, Checks::communicating}) {
    on_grid({1, 2}, [level](const Rank& rank) {
      rank.mesh.set_checks(level);
      const auto x = rank.integers<T<Shard<d0, tp>>>({4, 3});
      const Extents<Square> other{4, 300};
      const auto refused = [](const std::string& text, std::string_view verb) {
        require(contains(text, verb) && contains(text, "3 indices in all") && contains(text, "found 300"), text);
      };
      refused(error_of([&] { static_cast<void>(reshard<On<Shard<d1, tp>>>(x, other)); }), "reshard");
      refused(error_of([&] { static_cast<void>(reshard<On<Shard<d0, tp>>>(x, other)); }), "reshard");
      refused(error_of([&] { static_cast<void>(reshard<On<Partial<tp>>>(x, other)); }), "reshard");
      refused(error_of([&] { static_cast<void>(backward_to<T<Shard<d1, tp>>>(x, other)); }), "backward_to");
      require_equal(rank.denoted(reshard<On<Shard<d1, tp>>>(x, {4, 3})), rank.denoted(x), "its own");
    });
  }
}

}  // namespace
}  // namespace test
