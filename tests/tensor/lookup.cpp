// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/lookup.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

namespace test {
namespace {

template <class E, class D, class... Ps>
using T = Tensor<E, D, On<Ps...>>;
template <class... Ps>
using Ids = T<std::int32_t, Dims<batch, seq>, Ps...>;
using Vector = std::vector<double>;

std::size_t id_at(std::size_t i, std::size_t rows) { return random_bits(31, i) % rows; }
template <class X>
X ids_of(const Rank& rank, const Extents<typename X::dims>& extents, std::size_t rows) {
  return rank.fill<X>(extents, [rows](std::size_t i) { return static_cast<double>(id_at(i, rows)); });
}

struct Sizes {
  std::size_t b, s, v, h;
};

/// A table in layout Table and ids in layout I: rows, and the gradient of the table.
template <class Table, class I, class Result, class Owed>
void check(const Rank& rank, const Sizes& z) {
  const auto table = rank.integers<Table>({z.v, z.h}, 1);
  const auto ids = ids_of<I>(rank, {z.b, z.s}, z.v);
  const auto rows = lookup<vocab>(table, ids);
  static_assert(std::is_same_v<std::remove_const_t<decltype(rows)>, Result>);
  require_equal(rank.denoted(rows),
                array(z.b * z.s * z.h, [&](std::size_t i) { return integer(id_at(i / z.h, z.v) * z.h + i % z.h, 1); }),
                "rows");

  // The gradient arrives in the dual: whole where the rows were a Partial.
  using Dual = Tensor<double, typename Result::dims,
                      typename decltype(detail::canonical_from<Grid>(
                          detail::placements_of<typename I::layout>{} +
                          detail::placements_except<typename Table::layout, detail::list<vocab>>{}))::is>;
  const auto dy = rank.integers<Dual>({z.b, z.s, z.h}, 2);
  const auto gradient = lookup_backward<vocab>(dy, table, ids);
  static_assert(std::is_same_v<std::remove_const_t<decltype(gradient)>, Owed>);
  Vector wanted(z.v * z.h, 0.0);
  for (std::size_t i = 0; i < z.b * z.s * z.h; ++i) wanted[id_at(i / z.h, z.v) * z.h + i % z.h] += integer(i, 2);
  require_equal(rank.denoted(gradient), wanted, "gradient");
}

TEST_CASE("rows by index and their gradient, in the layouts of an embedding") {
  using Table = Dims<vocab, hidden>;
  using Rows = Dims<batch, seq, hidden>;
  for (const GridSize size : all_grids) {
    on_grid(size, [](const Rank& rank) {
      for (const Sizes& z : {Sizes{3, 5, 11, 4}, {1, 1, 1, 1}, {2, 3, 2, 7}, {0, 3, 5, 2}, {2, 2, 5, 0}}) {
        check<T<double, Table>, Ids<>, T<double, Rows>, T<double, Table>>(rank, z);
        check<T<double, Table, Shard<vocab, tp>>, Ids<Shard<batch, dp>>, T<double, Rows, Shard<batch, dp>, Partial<tp>>,
              T<double, Table, Partial<dp>, Shard<vocab, tp>>>(rank, z);
        check<T<double, Table, Shard<hidden, tp>>, Ids<Shard<batch, dp>>,
              T<double, Rows, Shard<batch, dp>, Shard<hidden, tp>>, T<double, Table, Partial<dp>, Shard<hidden, tp>>>(
            rank, z);
        check<T<double, Table>, Ids<Shard<batch, dp>, Shard<seq, tp>>,
              T<double, Rows, Shard<batch, dp>, Shard<seq, tp>>, T<double, Table, Partial<dp>, Partial<tp>>>(rank, z);
        check<T<double, Table, Shard<vocab, tp, dp>>, Ids<>, T<double, Rows, Partial<dp>, Partial<tp>>,
              T<double, Table, Shard<vocab, tp, dp>>>(rank, z);
        check<T<double, Table, Shard<vocab, Striped<tp>>>, Ids<Shard<seq, Zigzag<dp>>>,
              T<double, Rows, Shard<seq, Zigzag<dp>>, Partial<tp>>,
              T<double, Table, Partial<dp>, Shard<vocab, Striped<tp>>>>(rank, z);
        check<T<double, Table, Shard<vocab, Zigzag<tp>, Chunked<dp>>>, Ids<>, T<double, Rows, Partial<dp>, Partial<tp>>,
              T<double, Table, Shard<vocab, Zigzag<tp>, Chunked<dp>>>>(rank, z);
      }
    });
  }
}

TEST_CASE("one entry per row, from a whole or a sharded dim") {
  for (const GridSize size : all_grids) {
    on_grid(size, [](const Rank& rank) {
      for (const Sizes& z : {Sizes{3, 5, 11, 0}, {1, 1, 1, 0}, {2, 3, 2, 0}, {0, 3, 5, 0}}) {
        using Logits = Dims<batch, seq, vocab>;
        const auto wanted = array(z.b * z.s, [&](std::size_t i) { return integer(i * z.v + id_at(i, z.v), 1); });
        const auto logits = rank.integers<T<double, Logits, Shard<batch, dp>, Shard<vocab, tp>>>({z.b, z.s, z.v}, 1);
        const auto picked = pick<vocab>(logits, ids_of<Ids<Shard<batch, dp>>>(rank, {z.b, z.s}, z.v));
        static_assert(std::is_same_v<std::remove_const_t<decltype(picked)>,
                                     T<double, Dims<batch, seq>, Shard<batch, dp>, Partial<tp>>>);
        require_equal(rank.denoted(picked), wanted, "sharded");
        const auto striped =
            rank.integers<T<double, Logits, Shard<seq, Zigzag<dp>>, Shard<vocab, Striped<tp>>>>({z.b, z.s, z.v}, 1);
        require_equal(rank.denoted(pick<vocab>(striped, ids_of<Ids<Shard<seq, Zigzag<dp>>>>(rank, {z.b, z.s}, z.v))),
                      wanted, "by other rules");
        const auto whole = rank.integers<T<double, Logits, Shard<batch, dp>, Shard<seq, tp>>>({z.b, z.s, z.v}, 1);
        require_equal(
            rank.denoted(pick<vocab>(whole, ids_of<Ids<Shard<batch, dp>, Shard<seq, tp>>>(rank, {z.b, z.s}, z.v))),
            wanted, "whole");
      }
    });
  }
}

TEST_CASE("indices of other types, rows of Partial tables and of bf16") {
  on_grid({1, 3}, [](const Rank& rank) {
    using Bytes = T<std::uint8_t, Dims<seq>>;
    const auto ids = ids_of<Bytes>(rank, {7}, 5);
    const auto wanted = array(14, [](std::size_t i) { return integer(id_at(i / 2, 5) * 2 + i % 2, 1); });
    require_equal(
        rank.denoted(lookup<vocab>(rank.integers<T<bf16, Dims<vocab, hidden>, Shard<vocab, tp>>>({5, 2}), ids)), wanted,
        "bytes and bf16");
    require_equal(rank.denoted(lookup<vocab>(rank.integers<T<double, Dims<vocab, hidden>, Partial<tp>>>({5, 2}), ids)),
                  wanted, "a table that is a sum");
  });
}

TEST_CASE("gradients of narrow floats are rounded once, those of integers wrap") {
  on_grid({1, 2}, [](const Rank& rank) {
    const auto check_all = [&]<class E>(E) {
      const T<E, Dims<vocab, hidden>, Shard<vocab, tp>> table(rank.mesh, {3, 2});
      const auto ids = rank.fill<T<std::int32_t, Dims<batch>>>({400}, [](std::size_t i) { return i % 4 == 0 ? 2 : 0; });
      const auto dy = rank.fill<T<E, Dims<batch, hidden>>>({400, 2}, [](std::size_t) { return 1.0; });
      const double often = static_cast<double>(static_cast<E>(300.0)),
                   rarely = static_cast<double>(static_cast<E>(100.0));
      require_equal(rank.denoted(lookup_backward<vocab>(dy, table, ids)), {often, often, 0, 0, rarely, rarely},
                    "rows of " + name_of<E>());
    };
    check_all(bf16{});
    check_all(fp16{});
    check_all(f8e5m2{});
    check_all(0.0f);
    check_all(std::int32_t{});
    using Bytes = T<std::int8_t, Dims<vocab, hidden>>;
    const auto ids = rank.fill<T<std::int32_t, Dims<batch>>>({3}, [](std::size_t) { return 0.0; });
    const auto dy = rank.fill<T<std::int8_t, Dims<batch, hidden>>>({3, 1}, [](std::size_t) { return 100.0; });
    require_equal(rank.denoted(lookup_backward<vocab>(dy, Bytes(rank.mesh, {1, 1}), ids)), {300 - 256}, "wrapped");
  });
}

TEST_CASE("indices outside of the table and extents that do not meet are errors") {
  on_grid({1, 2}, [](const Rank& rank) {
    using Table = T<double, Dims<vocab, hidden>, Shard<vocab, tp>>;
    const Table table(rank.mesh, {5, 2});
    const auto ids = [&](double bad) {
      return rank.fill<Ids<>>({2, 2}, [=](std::size_t i) { return i == 2 ? bad : 4.0; });
    };
    require(error_of([&] { static_cast<void>(lookup<vocab>(table, ids(3))); }).empty(), "good");
    const std::string large = error_of([&] { static_cast<void>(lookup<vocab>(table, ids(5))); });
    require(contains(large, "lookup (rank ") && contains(large, "indices in [0, 5), found 5"), large);
    require(contains(error_of([&] { static_cast<void>(lookup<vocab>(table, ids(-1))); }), "found -1"), "negative");
    const T<double, Dims<batch, seq, vocab>, Shard<vocab, tp>> logits(rank.mesh, {2, 2, 5});
    require(contains(error_of([&] { static_cast<void>(pick<vocab>(logits, ids(7))); }), "pick (rank "), "pick");
    const T<double, Dims<batch, seq, vocab>, Shard<vocab, tp>> longer(rank.mesh, {2, 3, 5});
    require(contains(error_of([&] { static_cast<void>(pick<vocab>(longer, ids(1))); }), "seq = 3"), "pick");
    using Rows = T<double, Dims<batch, seq, hidden>>;
    const auto backward = [&](const Extents<Rows::dims>& extents) {
      return error_of([&] { static_cast<void>(lookup_backward<vocab>(Rows(rank.mesh, extents), table, ids(1))); });
    };
    require(backward({2, 2, 2}).empty(), "good");
    require(contains(backward({2, 3, 2}), "seq = 3"), "rows of other ids");
    require(contains(backward({2, 2, 1}), "hidden = 1"), "rows of another width");
  });
}

}  // namespace
}  // namespace test
