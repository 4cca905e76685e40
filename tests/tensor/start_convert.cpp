// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/start_convert.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "meshwise/tensor/accumulate.hpp"
#include "meshwise/trace/ledger.hpp"
#include "support.hpp"

// The law: what is started and waited for is what convert gives, to the bit and to the byte.
namespace test {
namespace {

using Cube = Dims<d0, d1, d2>;
template <class... Ps>
using T = Tensor<float, Cube, On<Ps...>>;
using Kinds = detail::list<Replicate<tp>, Shard<d0, tp>, Shard<d1, tp>, Shard<d2, tp>, Partial<tp>, Partial<tp, Max>>;

template <class X>
bool same_bits(const X& a, const X& b) {
  return a.extents() == b.extents() &&
         std::equal(a.local().begin(), a.local().end(), b.local().begin(), b.local().end());
}

/// Whether any traffic of the mesh differs between two programs.
template <class F, class G>
void require_same_traffic(const Rank& rank, const F& one, const G& other, const std::string& what) {
  const auto spent = [&](const auto& program) {
    const auto axes = traffic_of(rank.mesh);
    const auto groups = group_traffic_of(rank.mesh);
    program();
    auto result = group_traffic_of(rank.mesh);
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = result[i] - groups[i];
    const auto after = traffic_of(rank.mesh);
    for (std::size_t i = 0; i < after.size(); ++i) result.push_back(after[i] - axes[i]);
    return result;
  };
  const auto a = spent(one), b = spent(other);
  for (std::size_t i = 0; i < a.size(); ++i) {
    require(a[i].calls == b[i].calls, what + ": calls");
    require(a[i].volume == b[i].volume, what + ": volume");
  }
}

template <class From, class... To>
void check_conversion(const Rank& rank, const Extents<Cube>& extents, const std::string& what) {
  const auto x = rank.reals<From>(extents);
  const From before = x;
  std::optional<decltype(convert<To...>(x))> expected, kept, used;
  require_same_traffic(
      rank, [&] { expected = convert<To...>(x); }, [&] { kept = start_convert<To...>(x).wait(); }, what);
  require(same_bits(*kept, *expected), what + ", of an lvalue");
  require(same_bits(x, before), what + ": the argument");
  From own = rank.reals<From>(extents);
  used = start_convert<To...>(std::move(own)).wait();
  require(same_bits(*used, *expected), what + ", of an rvalue");
  static_assert(std::is_same_v<decltype(start_convert<To...>(x)), Pending<std::decay_t<decltype(convert<To...>(x))>>>);
}

template <class From, class To>
void check_pair(const Rank& rank, const Extents<Cube>& extents) {
  if constexpr (detail::is_accepted<detail::convert_verdict<T<From>, To>>) {
    check_conversion<T<From>, To>(rank, extents, name_of<From>() + " -> " + name_of<To>());
  }
}
template <class From, class... To>
void check_from(const Rank& rank, const Extents<Cube>& extents, detail::list<To...>) {
  (check_pair<From, To>(rank, extents), ...);
}
template <class... From>
void check_all(const Rank& rank, const Extents<Cube>& extents, detail::list<From...> kinds) {
  (check_from<From>(rank, extents, kinds), ...);
}

TEST_CASE("start_convert: every pair of placements of one axis, small and beyond small messages") {
  for (const GridSize size : {GridSize{1, 1}, GridSize{1, 2}, GridSize{2, 2}, GridSize{1, 5}}) {
    on_grid(size, [&](const Rank& rank) {
      for (const Extents<Cube>& extents : {Extents<Cube>{5, 3, 7}, {2, 1, 3}, {0, 3, 2}, {3, 1, 0}, {37, 11, 13}}) {
        check_all(rank, extents, Kinds{});
      }
    });
  }
}

TEST_CASE("start_convert: beside other axes, and over both at once") {
  for (const GridSize size : {GridSize{1, 1}, GridSize{2, 2}, GridSize{3, 2}, GridSize{1, 3}, GridSize{2, 1}}) {
    on_grid(size, [&](const Rank& rank) {
      for (const Extents<Cube>& extents : {Extents<Cube>{7, 3, 2}, {1, 2, 1}, {0, 3, 2}, {40, 17, 9}}) {
        for (int repeated = 0; repeated < 2; ++repeated) {  // the first one may have made a communicator
          check_conversion<T<Partial<dp>, Shard<d0, tp>>, Replicate<dp>>(rank, extents, "all_reduce of a shard");
          check_conversion<T<Partial<dp>, Shard<d0, tp>>, Shard<d0, dp>>(rank, extents, "reduce_scatter in a shard");
          check_conversion<T<Shard<d0, tp, dp>>, Replicate<dp>>(rank, extents, "all_gather in a shard");
          check_conversion<T<Partial<dp>, Partial<tp>>, Replicate<dp>, Replicate<tp>>(rank, extents, "all_reduce");
          check_conversion<T<Partial<dp>, Partial<tp>>, Shard<d0, dp, tp>>(rank, extents, "reduce_scatter");
          check_conversion<T<Partial<dp>, Partial<tp>>, Shard<d1, tp, dp>>(rank, extents, "reduce_scatter, turned");
          check_conversion<T<Shard<d0, dp, tp>>, Replicate<tp>, Replicate<dp>>(rank, extents, "all_gather");
          check_conversion<T<Shard<d1, tp, dp>>, Replicate<dp>, Replicate<tp>>(rank, extents, "all_gather, turned");
          check_conversion<T<Shard<d0, Zigzag<dp>>, Partial<tp>>, Replicate<tp>>(rank, extents, "all_reduce, zigzag");
        }
      }
    });
  }
}

TEST_CASE("start_convert: many in flight on two axes, waited for in any order, beside blocking conversions") {
  for (const GridSize size : {GridSize{2, 2}, GridSize{3, 1}, GridSize{2, 3}}) {
    on_grid(size, [&](const Rank& rank) {
      const Extents<Cube> extents{9, 5, 3};
      const auto over_tp = rank.integers<T<Partial<tp>>>(extents, 1);
      const auto over_dp = rank.integers<T<Partial<dp>>>(extents, 2);
      std::vector<Pending<T<>>> sums;
      std::vector<Pending<T<Shard<d0, dp>>>> parts;
      for (int i = 0; i < 12; ++i) {
        sums.push_back(start_convert<Replicate<tp>>(over_tp));
        parts.push_back(start_convert<Shard<d0, dp>>(over_dp));
      }
      const auto blocking = convert<Replicate<tp>>(over_tp);
      const bool forwards = rank.mesh.world().rank() % 2 == 0;  // the ranks wait in different orders
      for (std::size_t i = 0; i < 12; ++i) {
        const std::size_t at = forwards ? i : 11 - i;
        require(same_bits(sums[at].wait(), blocking), "a sum");
        require(same_bits(parts[at].wait(), convert<Shard<d0, dp>>(rank.integers<T<>>(extents, 2))), "a part");
      }
    });
  }
}

TEST_CASE("start_convert: what is in flight keeps what it reads, whoever writes or drops the tensor") {
  for (const std::size_t large : {std::size_t{3}, std::size_t{4000}}) {
    on_grid({1, 3}, [&](const Rank& rank) {
      auto x = rank.integers<T<Partial<tp>>>({large, 2, 1});
      const auto expected = convert<Replicate<tp>>(x);
      auto pending = start_convert<Replicate<tp>>(x);
      std::fill(x.mutable_local().begin(), x.mutable_local().end(), 1e9F);
      require(same_bits(pending.wait(), expected), "written meanwhile");

      auto shared = rank.integers<T<Partial<tp>>>({large, 2, 1});
      const auto other = shared;
      auto of_shared = start_convert<Replicate<tp>>(std::move(shared));  // may not sum in place
      require(same_bits(of_shared.wait(), expected), "of one of two");
      require(same_bits(other, rank.integers<T<Partial<tp>>>({large, 2, 1})), "the other one");

      std::optional<T<Partial<tp>>> dropped = rank.integers<T<Partial<tp>>>({large, 2, 1});
      auto of_dropped = start_convert<Shard<d0, tp>>(*dropped);
      dropped.reset();
      require(same_bits(of_dropped.wait(), convert<Shard<d0, tp>>(expected)), "dropped meanwhile");
    });
  }
}

TEST_CASE("start_convert: in place for an rvalue, nothing at all in a group of one") {
  on_grid({1, 2}, [&](const Rank& rank) {
    auto x = rank.integers<T<Partial<tp>>>({64, 8, 3});
    const float* const place = x.local().data();
    const std::size_t bytes = rank.mesh.memory().total().current;
    auto pending = start_convert<Replicate<tp>>(std::move(x));
    require(rank.mesh.memory().total().current == bytes, "no memory of the heap");
    const auto y = pending.wait();
    require(y.local().data() == place, "in place");
  });
  on_grid({2, 1}, [&](const Rank& rank) {
    const auto x = rank.integers<T<Partial<tp>>>({64, 8, 3});
    auto pending = start_convert<Replicate<tp>>(x);
    require(pending.test(), "complete at once");
    require(pending.wait().local().data() == x.local().data(), "no copy");
    require(start_convert<Shard<d0, tp>>(x).test(), "a reduce_scatter as well");
  });
}

TEST_CASE("start_convert: a Pending that nobody waits for, one that is used up, an empty tensor") {
  on_grid({1, 2}, [&](const Rank& rank) {
    auto x = rank.integers<T<Partial<tp>>>({400, 2, 1});
    { const auto unused = start_convert<Replicate<tp>>(x); }
    auto pending = start_convert<Replicate<tp>>(std::move(x));
    const auto y = pending.wait();
    require_equal(rank.denoted(y), array(800, [](std::size_t i) { return integer(i, 1); }), "after one was dropped");
    require(contains(error_of([&] { pending.wait(); }), "a collective in flight"), "waited for twice");
    require(contains(error_of([&] { (void)start_convert<Replicate<tp>>(x); }), "moved from"), "an argument used up");
  });
}

TEST_CASE("start_convert: a rank that fails meanwhile ends the others' waits") {
  CHECK_THROWS_WITH_AS(on_grid({1, 3},
                               [&](const Rank& rank) {
                                 const auto x = rank.integers<T<Partial<tp>>>({4000, 2, 1});
                                 auto pending = start_convert<Replicate<tp>>(x);
                                 if (rank.mesh.world().rank() == 1) throw std::runtime_error("no more");
                                 (void)pending.wait();
                                 (void)convert<Replicate<tp>>(x);
                               }),
                       doctest::Contains("no more"), std::exception);
}

TEST_CASE("start_convert: in communicating checks a difference is found before anything is in flight") {
  on_grid({1, 2}, [&](const Rank& rank) {
    rank.mesh.set_checks(Checks::communicating);
    const T<Partial<tp>> x(rank.mesh, {rank.mesh.coordinate<tp>() == 0 ? 4U : 5U, 2, 1});
    require(contains(error_of([&] { (void)start_convert<Replicate<tp>>(x); }), "start_convert"), "the text");
  });
}

}  // namespace
}  // namespace test
