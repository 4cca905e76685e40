// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/assume.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "support.hpp"

namespace test {
namespace {

using Square = Dims<d0, d1>;
template <class... Ps>
using T = Tensor<double, Square, On<Ps...>>;

template <class X, class... Ps>
concept can_claim = requires(const X& x) {
  requires AnyTensor<decltype(assume<Ps...>(x))>;
};
static_assert(can_claim<T<Shard<d0, tp>>, Shard<d0, Zigzag<tp>>> && can_claim<T<>, Partial<tp>>);
static_assert(can_claim<T<>, Partial<tp, Max>> && can_claim<T<Partial<tp>>, Partial<tp>>);
static_assert(!can_claim<T<Partial<tp>>, Replicate<tp>> && !can_claim<T<Partial<tp>>, Shard<d0, tp>>);
static_assert(!can_claim<T<Partial<tp>>, Partial<tp, Max>>);
static_assert(!can_claim<T<>, Shard<d0, tp>> && !can_claim<T<Shard<d0, tp>>, Replicate<tp>>);
static_assert(!can_claim<T<Shard<d0, tp>>, Shard<d1, tp>> && !can_claim<T<Shard<d0, tp>>, Partial<tp>>);
static_assert(!can_claim<T<Shard<d0, tp>>, Shard<d0, Counted<tp>>>);
static_assert(can_claim<T<Shard<d0, dp, tp>>, On<Shard<d0, tp, dp>>> && !can_claim<T<>, On<Shard<d0, tp>>>);
static_assert(!can_claim<T<Partial<tp>>, On<>> && !can_claim<T<>, Layout<Mesh<tp>>>);

TEST_CASE("a tensor of data from outside, and pieces of another size") {
  for (const GridSize size : few_grids) {
    for (const Checks checks : {Checks::light, Checks::communicating}) {
      on_grid(size, [checks](const Rank& rank) {
        rank.mesh.set_checks(checks);
        using X = T<Shard<d0, dp>, Partial<tp>>;
        const auto x = rank.integers<X>({5, 3});
        const X y = assume<X>(rank.mesh, x.extents(), x.local());
        require(y.local().data() != x.local().data(), "a copy");
        require_equal(rank.denoted(y), rank.denoted(x), "the same");
        const auto named = assume<Square, Shard<d0, dp>, Partial<tp>>(rank.mesh, x.extents(), x.local());
        static_assert(std::is_same_v<std::remove_const_t<decltype(named)>, X>);
        require_equal(rank.denoted(named), rank.denoted(x), "the same");
        const auto whole = assume<Square>(rank.mesh, {2, 2}, std::vector<float>{1, 2, 3, 4});
        static_assert(std::is_same_v<std::remove_const_t<decltype(whole)>, Tensor<float, Square, On<>>>);
        require_equal(rank.denoted(whole), {1, 2, 3, 4}, "whole");
        const X none = assume<X>(rank.mesh, {0, 3}, {});
        require(none.local().empty(), "empty");

        const std::vector<double> wrong(x.local().size() + 1);
        const std::string text = error_of([&] { assume<X>(rank.mesh, x.extents(), std::span<const double>(wrong)); });
        require(contains(text, "assume (rank ") && contains(text, std::to_string(wrong.size() - 1) + " elements, this"),
                text);
      });
    }
  }
}

TEST_CASE("claims share the piece, and mean what the layout says") {
  for (const GridSize size : few_grids) {
    for (const Checks checks : {Checks::light, Checks::communicating}) {
      on_grid(size, [checks](const Rank& rank) {
        rank.mesh.set_checks(checks);
        const auto n = static_cast<std::size_t>(rank.mesh.size<tp>());
        // Sizes that both rules cut alike, with rows that a loader has dealt out the other way.
        const auto dealt = rank.integers<T<Shard<d0, Zigzag<tp>>>>({2 * n, 3});
        T<Shard<d0, tp>> wrong(rank.mesh, {2 * n, 3});
        std::copy(dealt.local().begin(), dealt.local().end(), wrong.mutable_local().begin());
        const auto right = assume<Shard<d0, Zigzag<tp>>>(wrong);
        require(right.local().data() == wrong.local().data(), "shared");
        require_equal(rank.denoted(right), rank.denoted(dealt), "zigzag");
        require_equal(rank.denoted(assume<On<Shard<d0, Zigzag<tp>>>>(wrong)), rank.denoted(dealt), "by layout");

        // What each rank has written is a summand. The replicas never existed, so nothing compares them.
        T<> mine(rank.mesh, {1, 1});
        mine.mutable_local()[0] = 1 + rank.mesh.coordinate<tp>();
        const auto owed = assume<Partial<tp>>(mine);
        require_equal(rank.denoted(owed), {static_cast<double>(n * (n + 1) / 2)}, "sum");
        require_equal(rank.denoted(assume<Partial<dp>, Partial<tp>>(mine)),
                      {static_cast<double>(n * (n + 1) / 2) * rank.mesh.size<dp>()}, "two sums");
      });
    }
  }
}

TEST_CASE("a claim whose rule gives other sizes is an error of the ranks that have them, and no rank waits") {
  for (const Checks checks : {Checks::light, Checks::communicating}) {
    on_grid({1, 2}, [checks](const Rank& rank) {
      rank.mesh.set_checks(checks);
      const T<Shard<d0, tp>> x(rank.mesh, {3, 2});  // 1 and 2 rows; chunks have 2 and 1
      const std::string text = error_of([&] { static_cast<void>(assume<Shard<d0, Chunked<tp>>>(x)); });
      require(contains(text, "elements, this rank's piece, found "), text);
    });
  }
  // Only one of the ranks: the others hear of it.
  on_grid({1, 3}, [](const Rank& rank) {
    rank.mesh.set_checks(Checks::communicating);
    const std::vector<double> data(rank.mesh.coordinate<tp>() == 1 ? 5 : 6);
    const std::string text = error_of([&] { static_cast<void>(assume<Square>(rank.mesh, {2, 3}, data)); });
    const std::string refusal = "expected 6 elements, this rank's piece, found 5 elements";
    require(contains(text, refusal), text);
    require(contains(text, "stopped by rank 1") == (rank.mesh.coordinate<tp>() != 1), text);
    require_equal(rank.denoted(assume<Square>(rank.mesh, {1, 1}, std::vector<double>{4})), {4}, "goes on");
  });
}

/// The error of claiming that all ranks of a line hold `value`, where one of them holds another one.
template <class E>
std::string error_of_drift(const Rank& rank, E value, E drifted, int where) {
  std::vector<E> data(60, value);
  if (rank.mesh.world().rank() == where) data[47] = drifted;
  return error_of([&] { static_cast<void>(assume<Dims<d0, d1>>(rank.mesh, {5, 12}, data)); });
}

TEST_CASE("replicas that differ in one bit on one rank are found and named, in communicating checks only") {
  for (const GridSize size : {GridSize{1, 2}, {1, 3}, {2, 1}, {2, 2}}) {
    for (int where = 0; where < size.dp * size.tp; ++where) {
      on_grid(size, [size, where](const Rank& rank) {
        const int n = size.dp * size.tp;
        const int odd = n == 2 ? 1 : where, other = n == 2 || where != 0 ? 0 : 1;
        const auto name = [&](int r, const char* value) {
          const std::string dp = "dp " + std::to_string(r / size.tp), tp = "tp " + std::to_string(r % size.tp);
          return std::string(value) + " on rank " + std::to_string(r) + " (" +
                 (size.dp == 1   ? tp
                  : size.tp == 1 ? dp
                                 : dp + ", " + tp) +
                 ")";
        };
        const auto check = [&](const std::string& text, const char* value, const char* drifted) {
          const char* const reference = other == where ? drifted : value;
          const char* const dissenting = odd == where ? drifted : value;
          require(contains(text, "assume (rank "), text);
          require(contains(text, "expected the same bits in all replicas, found at test::d0 3, test::d1 11 first " +
                                     name(other, reference) + " and " + name(odd, dissenting) + ";"),
                  text);
        };
        rank.mesh.set_checks(Checks::light);
        require(error_of_drift(rank, 0.0, -0.0, where).empty(), "light");
        rank.mesh.set_checks(Checks::communicating);
        check(error_of_drift(rank, 0.0, -0.0, where), "0 (0x0000000000000000)", "-0 (0x8000000000000000)");
        check(error_of_drift(rank, 1.0f, std::bit_cast<float>(std::uint32_t{0x3f800001}), where), "1 (0x3f800000)",
              "1.00000012 (0x3f800001)");
        check(error_of_drift(rank, std::bit_cast<float>(std::uint32_t{0x7fc00000}),
                             std::bit_cast<float>(std::uint32_t{0x7fc00001}), where),
              "nan (0x7fc00000)", "nan (0x7fc00001)");
        check(error_of_drift(rank, bf16(2.0f), bf16(-2.0f), where), "2 (0x4000)", "-2 (0xc000)");
        check(error_of_drift<std::int8_t>(rank, 5, -6, where), "5 (0x05)", "-6 (0xfa)");
        check(error_of_drift<std::uint64_t>(rank, 7, 1ull << 63, where), "7 (0x0000000000000007)",
              "9223372036854775808 (0x8000000000000000)");
        require(error_of_drift(rank, 0.0, 0.0, where).empty(), "and the ranks go on");
      });
    }
  }
}

TEST_CASE("layouts and extents that differ across ranks are named") {
  on_grid({1, 3}, [](const Rank& rank) {
    rank.mesh.set_checks(Checks::communicating);
    const bool odd = rank.mesh.coordinate<tp>() == 1;
    const std::vector<double> none;
    std::string text = error_of([&] { static_cast<void>(assume<Square>(rank.mesh, {0, odd ? 5u : 4u}, none)); });
    require(contains(text, "expected the same extents on all ranks, found ") &&
                contains(text, "\"test::d0 0, test::d1 4\" on rank 0 and \"test::d0 0, test::d1 5\" on rank 1"),
            text);
    text = error_of([&] {
      if (odd) {
        static_cast<void>(assume<Square, Shard<d0, tp>>(rank.mesh, {0, 4}, none));
      } else {
        static_cast<void>(assume<Square, Partial<tp>>(rank.mesh, {0, 4}, none));
      }
    });
    require(contains(text, "the same layout on all ranks, found \"sum owed over tp\" on rank 0 and ") &&
                contains(text, "d0 over tp\" on rank 1"),
            text);
    text = error_of([&] {
      const Extent parts =
          Extent::of_parts(odd ? std::vector<std::size_t>{0, 0, 2} : std::vector<std::size_t>{2, 0, 0});
      const std::vector<double> own(rank.mesh.coordinate<tp>() == 0 ? 2 : 0);
      static_cast<void>(assume<Square, Shard<d0, Counted<tp>>>(rank.mesh, {parts, 1}, own));
    });
    require(contains(text, "d0 2 in parts of 2 0 0, ") && contains(text, "d0 2 in parts of 0 0 2, "), text);
  });
}

TEST_CASE("only replicas are compared: what axes cut or owe differs, and may") {
  on_grid({2, 2}, [](const Rank& rank) {
    rank.mesh.set_checks(Checks::communicating);
    const auto k = rank.mesh.coordinate<dp>();
    const std::vector<double> mine{1.0 + rank.mesh.coordinate<tp>(), 2};
    static_cast<void>(assume<Square, Partial<tp>>(rank.mesh, {1, 2}, mine));
    static_cast<void>(assume<Square, Shard<d0, tp>>(rank.mesh, {2, 2}, mine));
    std::vector<double> drifted = mine;
    drifted[1] += k;
    const std::string text = error_of([&] {
      static_cast<void>(assume<Square, Shard<d0, tp>>(rank.mesh, {2, 2}, drifted));
    });
    const std::string row = std::to_string(rank.mesh.coordinate<tp>());
    require(contains(text, "d0 " + row + ", ") && contains(text, "d1 1 first 2 (") && contains(text, " and 3 (") &&
                contains(text, "(dp 1)") && contains(text, "axis dp"),
            text);
  });
}

}  // namespace
}  // namespace test
