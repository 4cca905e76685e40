// SPDX-License-Identifier: Apache-2.0
// Wrong results of sizes that do not divide. What each rank holds is published as a formula, Tensor::positions, and
// nothing is padded. The numbers in the comments are what went wrong.
#include <doctest/doctest.h>

#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "meshwise/tensor/assume.hpp"
#include "meshwise/tensor/convert.hpp"
#include "meshwise/tensor/inside.hpp"
#include "meshwise/tensor/reductions.hpp"
#include "pieces.hpp"

namespace test {
namespace {

using namespace pieces;

template <class... Ps>
using Square = Doubles<Dims<d0, d1>, Ps...>;

std::vector<double> counting(std::size_t n) {
  return array(n, [](std::size_t i) { return static_cast<double>(i); });
}
/// A tensor of the numbers of its elements.
template <class X>
X numbered(const Rank& rank, const Extents<typename X::dims>& extents) {
  return rank.fill<X>(extents, [](std::size_t i) { return static_cast<double>(i); });
}
template <class D, class X>
std::vector<double> indices(const X& x) {
  const Positions held = x.template positions<D>();
  return array(held.size(), [&](std::size_t i) { return static_cast<double>(held.at(i)); });
}

TEST_CASE("five rows over four ranks are five rows when they are gathered") {
  // Parts that are padded to ceil(5 / 4) = 2 give 8.
  const auto check = []<class X>(const Rank& rank, const X& x) {
    require_equal(local(convert<Replicate<tp>>(x)), counting(x.size()), "gathered");
    require_equal(local(convert<Replicate<tp>>(convert<Shard<d1, tp>>(x))), counting(x.size()), "over the other dim");
    require_equal(rank.denoted(convert<Partial<tp>>(x)), counting(x.size()), "padded with zeros, which are no rows");
  };
  on_grid({1, 4}, [check](const Rank& rank) {
    const auto rows = numbered<Row<Shard<d0, tp>>>(rank, {5});
    require_equal(local(convert<Replicate<tp>>(rows)), {0, 1, 2, 3, 4}, "five");
    check(rank, numbered<Square<Shard<d0, tp>>>(rank, {5, 3}));
    check(rank, numbered<Square<Shard<d0, Chunked<tp>>>>(rank, {5, 3}));
    check(rank, numbered<Square<Shard<d0, Zigzag<tp>>>>(rank, {5, 3}));
    check(rank, numbered<Square<Shard<d0, Striped<tp>>>>(rank, {5, 3}));
  });
}

TEST_CASE("sizes that the caller gives are the sizes, in this order") {
  // 2, 3, 4 and 5 rows are 14; cut by ceil they would be 4, 4, 4 and 2, and 4 times a rank's own 8, 12, 16 or 20.
  using Parts = Row<Shard<d0, Counted<tp>>>;
  on_grid({1, 4}, [](const Rank& rank) {
    const auto k = static_cast<std::size_t>(rank.mesh.coordinate<tp>());
    const std::array<std::size_t, 4> begins{0, 2, 5, 9};
    Tensor<double, Dims<d0>, Layout<Mesh<dp>>> own(rank.mesh.without<tp>(), {k + 2});
    std::iota(own.mutable_local().begin(), own.mutable_local().end(), static_cast<double>(begins[k]));
    const Parts parts = outside<Shard<d0, Counted<tp>>>(rank.mesh, own);
    require(parts.extent<d0>() == 14 && parts.range<d0>() == Range{begins[k], k + 2}, "the sum of the sizes");
    require_equal(local(convert<Replicate<tp>>(parts)), counting(14), "in order");
    const auto even = convert<Shard<d0, tp>>(parts);
    require(even.range<d0>() == split(14, 4, k), "cut anew");
    require_equal(local(even), indices<d0>(even), "and moved");
    require_equal(local(convert<Replicate<tp>>(convert<Partial<tp>>(parts))), counting(14), "there and back");
    // What only looks like the even split is not taken for it.
    const std::string text = error_of([&] { static_cast<void>(outside<Shard<d0, tp>>(rank.mesh, own, 14)); });
    require(contains(text, "this rank's part of 14, found " + std::to_string(k + 2)), text);
  });
}

TEST_CASE("a dim over two axes is as long as all its parts") {
  // Two rows on each of 2 x 2 ranks are 8; multiplied by the size of one axis they are 4.
  on_grid({2, 2}, [](const Rank& rank) {
    using X = Row<Shard<d0, dp, tp>>;
    const int number = 2 * rank.mesh.coordinate<dp>() + rank.mesh.coordinate<tp>();
    const std::vector<double> own{2.0 * number, 2.0 * number + 1};
    const X x = assume<X>(rank.mesh, {8}, own);
    require_equal(local(convert<Replicate<tp>, Replicate<dp>>(x)), counting(8), "eight");
    const std::string text = error_of([&] { static_cast<void>(assume<X>(rank.mesh, {4}, own)); });
    require(contains(text, "expected 1 elements, this rank's piece, found 2"), text);
  });
}

TEST_CASE("parts of ceil(m / n): offsets 0, 2, 4 and 5, and the empty one stands nowhere") {
  // An empty part that begins at 0, or at 6 of 5, has been taken for one that holds something.
  const std::array<std::vector<double>, 4> wanted{{{0, 1}, {2, 3}, {4}, {}}};
  on_grid({1, 4}, [wanted](const Rank& rank) {
    const auto k = static_cast<std::size_t>(rank.mesh.coordinate<tp>());
    const auto x = numbered<Row<Shard<d0, Chunked<tp>>>>(rank, {5});
    require_equal(indices<d0>(x), wanted[k], "indices");
    require_equal(local(x), wanted[k], "values");
    require(chunk(5, 4, k).begin == std::array<std::size_t, 4>{0, 2, 4, 5}[k], "offsets");
    require(x.positions<d0>().find(0) == (k == 0 ? 0 : x.local().size()), "who has index 0");
    // One row more along another dim: nothing of it stands at the empty part either.
    const auto y = numbered<Square<Shard<d0, Chunked<tp>>>>(rank, {5, 2});
    require(y.local().size() == 2 * wanted[k].size(), "rows");
    require_equal(local(convert<Shard<d0, tp>>(y)), local(numbered<Square<Shard<d0, tp>>>(rank, {5, 2})), "cut anew");
  });
}

/// Every index is held exactly once along two axes; the parts of contiguous rules follow each other.
template <class X>
void check_owners(const Rank& rank, std::size_t n) {
  const X x(rank.mesh, {n});
  std::vector<double> owners(n, 0);
  for (const double i : indices<d0>(x)) owners[static_cast<std::size_t>(i)] = 1;
  const auto all = convert<Replicate<dp>, Replicate<tp>>(assume<Row<Partial<dp>, Partial<tp>>>(rank.mesh, {n}, owners));
  require_equal(local(all), std::vector<double>(n, 1), "once");
}

TEST_CASE("five rows over 2 x 2 ranks: the formula says who holds which, nested or at once") {
  // Two answers are in use elsewhere: {0, 1, 3} and {2, 4} of ceil in ceil, or {0, 1, 3, 4} and {2}. Here the first one
  // is what Chunked inside of Chunked is, and contiguous axes cut like one axis of four.
  on_grid({2, 2}, [](const Rank& rank) {
    const auto a = static_cast<std::size_t>(rank.mesh.coordinate<tp>());
    const auto b = static_cast<std::size_t>(rank.mesh.coordinate<dp>());
    const auto nested = numbered<Row<Shard<d0, Chunked<tp>, Chunked<dp>>>>(rank, {5});
    const std::vector<double> mine[2][2] = {{{0, 1}, {2}}, {{3}, {4}}};
    require_equal(local(nested), mine[a][b], "ceil of ceil");
    require_equal(local(convert<Replicate<dp>>(nested)), by<tp>(rank, {0, 1, 2}, {3, 4}), "what the outer cut gives");

    const auto x = numbered<Row<Shard<d0, tp, dp>>>(rank, {5});
    const std::size_t begin = (2 * a + b) * 5 / 4, end = (2 * a + b + 1) * 5 / 4;
    require(x.range<d0>() == Range{begin, end - begin} && x.range<d0>() == split(5, 4, 2 * a + b), "floor(k N / n)");
    const Range outer = split(5, 2, a);
    require(outer.begin <= begin && end <= outer.end(), "inside of what the first axis gives");
  });
  for (const GridSize size : {GridSize{2, 2}, {2, 3}, {3, 1}}) {
    on_grid(size, [](const Rank& rank) {
      for (const std::size_t n : small_sizes) {
        check_owners<Row<Shard<d0, dp, tp>>>(rank, n);
        check_owners<Row<Shard<d0, Chunked<tp>, Chunked<dp>>>>(rank, n);
        check_owners<Row<Shard<d0, Chunked<dp>, tp>>>(rank, n);
      }
    });
  }
}

TEST_CASE("two rows over four ranks: those with nothing take part in everything") {
  // Ranks that left out what they had nothing to give to made the others wait for ever.
  on_grid({1, 4}, [](const Rank& rank) {
    const auto k = static_cast<std::size_t>(rank.mesh.coordinate<tp>());
    const auto x = numbered<Row<Shard<d0, tp>>>(rank, {2});
    require(x.local().size() == k % 2, "0, 1, 0 and 1");
    const auto chunked = numbered<Row<Shard<d0, Chunked<tp>>>>(rank, {2});
    require(chunked.local().size() == (k < 2 ? 1 : 0), "1, 1, 0 and 0");
    const auto calls = [&] { return rank.mesh.traffic<tp>().calls; };
    const std::uint64_t before = calls();
    require_equal(local(convert<Replicate<tp>>(x)), {0, 1}, "all_gather");
    require_equal(local(convert<Replicate<tp>>(chunked)), {0, 1}, "of chunks");
    require_equal(local(convert<Shard<d0, tp>>(chunked)), local(x), "exchange");
    require_equal(local(convert<Shard<d0, tp>>(convert<Partial<tp>>(x))), local(x), "reduce_scatter");
    require_equal(local(convert<Replicate<tp>>(sum<d0>(x))), {1}, "all_reduce of sums");
    require(calls() == before + 5, "five calls on every rank");
  });
}

}  // namespace
}  // namespace test
