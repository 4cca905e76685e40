// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/stream.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "meshwise/tensor/convert.hpp"
#include "support.hpp"

namespace test {
namespace {

using Square = Dims<d0, d1>;
template <class... Ps>
using T = Tensor<double, Square, On<Ps...>>;
template <class Mesh, class... Ps>
using In = Tensor<double, Square, Layout<Mesh, Ps...>>;

struct Nothing {
  template <class... Any>
  void operator()(const Any&...) const {}
};
template <class X, class A>
concept can_stream = requires(const X& x) {
  { stream<A>(x, Nothing{}) } -> std::same_as<void>;
};
static_assert(can_stream<T<Shard<d0, tp>>, tp> && can_stream<T<Shard<d0, Zigzag<tp>>, Partial<dp>>, tp>);
static_assert(!can_stream<T<>, tp> && !can_stream<T<Partial<tp>>, tp> && !can_stream<T<Shard<d0, tp>>, cp>);
static_assert(!can_stream<T<Shard<d0, dp, tp>>, tp>);

template <class X, class F>
inline constexpr bool can_call = detail::is_accepted<detail::stream_along<F, tp, X>>;
using Rows = T<Shard<d0, tp>>;
using Piece = In<Mesh<dp>>;
static_assert(can_call<Rows, void (*)(const Piece&, int)>);
static_assert(can_call<Rows, void (*)(Piece, long, const Positions&)>);
static_assert(can_call<Rows, Piece (*)(const Piece&, int)>);
static_assert(can_call<Rows, std::tuple<Piece, In<Mesh<dp>, Partial<dp>>> (*)(const Piece&, int)>);
static_assert(!can_call<Rows, void (*)(const Piece&)> && !can_call<Rows, void (*)(const Rows&, int)>);
static_assert(!can_call<Rows, double (*)(const Piece&, int)> && !can_call<Rows, Rows (*)(const Piece&, int)>);
static_assert(!can_call<Rows, Tensor<double, Dims<d1>, Layout<Mesh<dp>>> (*)(const Piece&, int)>);
static_assert(!can_call<Rows, std::tuple<Piece, int> (*)(const Piece&, int)>);
static_assert(!detail::is_accepted<detail::stream_along<Nothing, tp, Rows, T<Shard<d1, tp>>>>);
static_assert(!detail::is_accepted<detail::stream_along<Nothing, tp, Rows, T<Shard<d0, Zigzag<tp>>>>>);

/// The pieces are those of the coordinates, own first, then against the ring, each where its positions say.
template <class X, class A>
void check_pieces(const Rank& rank, const Extents<Square>& extents) {
  using D = typename detail::placement_traits<placement_of<typename X::layout, A>>::dim;
  constexpr std::size_t d = detail::dim_index<D, X>;
  const X x = rank.integers<X>(extents);
  const std::vector<double> own(x.local().begin(), x.local().end());
  const int n = rank.mesh.size<A>(), me = rank.mesh.coordinate<A>();
  const Traffic before = rank.mesh.traffic<A>();
  int calls = 0;
  std::vector<std::optional<detail::bare<decltype(inside<A>(x))>>> kept(static_cast<std::size_t>(n));
  std::vector<std::size_t> seen;
  stream<A>(x, [&](const auto& piece, int coordinate, const Positions& positions) {
    static_assert(std::is_same_v<detail::bare<decltype(piece)>, detail::bare<decltype(inside<A>(x))>>);
    require(coordinate == (me - calls + n) % n, "order");
    ++calls;
    if (coordinate == me) {
      require(piece.local().data() == x.local().data() || piece.local().empty(), "the own piece is not copied");
      require(positions == x.template positions<D>(), "own positions");
    }
    require(piece.extents()[d] == positions.size() && piece.mesh() == rank.mesh.without<A>(), "piece");
    for (std::size_t i = 0; i < positions.size(); ++i) seen.push_back(positions.at(i));
    // Every element is the one that its global indices name.
    std::size_t local = 0;
    const Positions rows = d == 0 ? positions : x.template positions<d0>();
    const Positions columns = d == 1 ? positions : x.template positions<d1>();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t k = 0; k < columns.size(); ++k) {
        const std::size_t at = rows.at(i) * extents[1] + columns.at(k);
        require(piece.local()[local++] == integer(at, 1), "value");
      }
    }
    require(local == piece.local().size(), "size");
    auto written = piece;  // copies may be kept and written: the ring goes on with what was sent
    for (double& value : written.mutable_local()) value = -100;
    kept[static_cast<std::size_t>(coordinate)] = piece;
  });
  require(calls == n, "every coordinate");
  std::sort(seen.begin(), seen.end());
  for (std::size_t i = 0; i < seen.size(); ++i) require(seen[i] == i, "every index once");
  require(seen.size() == extents[d], "all indices");
  require(std::equal(own.begin(), own.end(), x.local().begin(), x.local().end()), "the argument");

  // The same bytes as an all_gather.
  const Traffic streamed = rank.mesh.traffic<A>() - before;
  const Traffic between = rank.mesh.traffic<A>();
  const auto whole = convert<Replicate<A>>(x);
  require(streamed.volume == (rank.mesh.traffic<A>() - between).volume, "volume");
  require(streamed.moved == streamed.volume, "moved");
  require(streamed.volume == (whole.local().size() - own.size()) * sizeof(double), "what is not own");
  for (std::size_t k = 0; k < kept.size(); ++k) {
    for (const double value : kept[k]->local()) require(value >= -20, "kept pieces stay");
  }
}

TEST_CASE("all pieces, uneven and empty ones, by every rule") {
  for (const GridSize size : {GridSize{1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 2}, {3, 1}}) {
    on_grid(size, [](const Rank& rank) {
      for (const Checks checks : {Checks::light, Checks::communicating}) {
        rank.mesh.set_checks(checks);
        for (const Extents<Square>& extents : {Extents<Square>{7, 5}, {2, 3}, {0, 4}, {1, 0}, {9, 1}}) {
          check_pieces<T<Shard<d0, tp>>, tp>(rank, extents);
          check_pieces<T<Shard<d0, dp>, Shard<d1, Striped<tp>>>, tp>(rank, extents);
          check_pieces<T<Shard<d0, Zigzag<tp>>, Shard<d1, dp>>, tp>(rank, extents);
          check_pieces<T<Shard<d1, Chunked<dp>>>, dp>(rank, extents);
        }
      }
      const auto n = static_cast<std::size_t>(rank.mesh.size<tp>());
      std::vector<std::size_t> counts(n, 0);
      counts[n - 1] = 3;
      check_pieces<T<Shard<d0, Counted<tp>>>, tp>(rank, {Extent::of_parts(counts), 2});
    });
  }
}

TEST_CASE("pieces that are larger than what messages copy, with conversions and another stream inside") {
  on_grid({2, 2}, [](const Rank& rank) {
    const auto x = rank.integers<T<Shard<d0, tp>, Shard<d1, dp>>>({403, 101});
    double sum = 0;
    stream<tp>(x, [&](const auto& piece, int) {
      const auto whole = convert<Replicate<dp>>(piece);
      require(whole.local().size() > 8192, "large");
      double inner = 0, outer = 0;
      stream<dp>(piece, [&](const auto& part, int) {
        for (const double value : part.local()) inner += value;
      });
      for (const double value : whole.local()) outer += value;
      require(inner == outer, "inside");
      sum += inner;
    });
    double expected = 0;
    for (std::size_t i = 0; i < 403 * 101; ++i) expected += integer(i, 1);
    require(sum == expected, "sum");
  });
}

/// Contributions f(piece, me) = weight(me) * piece end at the owner of the piece.
template <class X, class A>
void check_sums(const Rank& rank, const Extents<Square>& extents) {
  const X x = rank.integers<X>(extents);
  const int n = rank.mesh.size<A>(), me = rank.mesh.coordinate<A>();
  const Traffic before = rank.mesh.traffic<A>();
  const auto sums = stream<A>(x, [&](const auto& piece, int) {
    auto scaled = piece;
    for (double& value : scaled.mutable_local()) value *= me + 1;
    return scaled;
  });
  static_assert(std::is_same_v<std::remove_const_t<decltype(sums)>, X>);
  const double all = n * (n + 1) / 2;
  const Traffic spent = rank.mesh.traffic<A>() - before;
  require(sums.extents() == x.extents() && sums.ranges() == x.ranges(), "the same piece");
  for (std::size_t i = 0; i < x.local().size(); ++i) require(sums.local()[i] == all * x.local()[i], "sum");
  require_equal(rank.denoted(sums), array(x.size(), [all](std::size_t i) { return all * integer(i, 1); }), "value");

  // All ranks together receive an all_gather and a reduce_scatter.
  const auto others = static_cast<double>(rank.mesh.world().size() / n);
  std::size_t held = 1;
  for (std::size_t i = 0; i < 2; ++i) held *= extents[i];
  double replicas = others;
  [&]<class... As>(detail::list<As...>) {
    ((replicas /= !std::is_same_v<As, A> && detail::placement_traits<placement_of<typename X::layout, As>>::shard
                      ? rank.mesh.size<As>()
                      : 1),
     ...);
  }(detail::axes_of_layout<typename X::layout>{});
  require(rank.total(static_cast<double>(spent.volume)) ==
              2 * replicas * static_cast<double>(held * sizeof(double)) * (n - 1),
          "volume");
}

TEST_CASE("contributions travel behind the pieces and end at their owners") {
  for (const GridSize size : {GridSize{1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 2}, {3, 1}}) {
    on_grid(size, [](const Rank& rank) {
      for (const Extents<Square>& extents : {Extents<Square>{7, 5}, {2, 3}, {0, 4}, {1, 0}, {203, 130}}) {
        check_sums<T<Shard<d0, tp>>, tp>(rank, extents);
        check_sums<T<Shard<d0, Zigzag<tp>>, Shard<d1, dp>>, tp>(rank, extents);
        check_sums<T<Shard<d1, dp>>, dp>(rank, extents);
      }
      const auto n = static_cast<std::size_t>(rank.mesh.size<tp>());
      std::vector<std::size_t> counts(n, 2);
      counts[0] = 0;
      check_sums<T<Shard<d0, Counted<tp>>>, tp>(rank, {Extent::of_parts(counts), 2});
    });
  }
}

TEST_CASE("several tensors in one stream, and a contribution to each, with other dims and owed sums") {
  on_grid({2, 3}, [](const Rank& rank) {
    using Keys = Tensor<double, Square, On<Shard<d0, tp>>>;
    using Values = Tensor<double, Dims<d2, d0>, On<Shard<d2, dp>, Shard<d0, tp>>>;
    const auto k = rank.integers<Keys>({7, 2});
    const auto v = rank.integers<Values>({4, 7}, 2);
    int calls = 0;
    const auto [dk, dv] = stream<tp>(std::tie(k, v), [&](const auto& key, const auto& value, int coordinate) {
      ++calls;
      require(key.extents()[0] == value.extents()[1], "pieces of one coordinate");
      static_cast<void>(coordinate);
      // Each rank along dp has seen its part of d2 only: a sum is owed over dp too.
      using Owed = Tensor<double, Square, Layout<Mesh<dp>, Partial<dp>>>;
      return std::tuple(Owed(key.mesh(), key.extents(), key.storage(), key.offset()), value);
    });
    require(calls == 3, "calls");
    static_assert(std::is_same_v<detail::bare<decltype(dk)>, T<Partial<dp>, Shard<d0, tp>>>);
    static_assert(std::is_same_v<detail::bare<decltype(dv)>, Values>);
    require_equal(rank.denoted(dk), array(14, [](std::size_t i) { return 6 * integer(i, 1); }), "keys");
    require_equal(rank.denoted(dv), array(28, [](std::size_t i) { return 3 * integer(i, 2); }), "values");
    stream<tp>(std::tie(k, v), Nothing{});

    // Only the dim that is cut has to agree.
    const auto wider = rank.integers<Keys>({7, 5});
    stream<tp>(std::tie(k, wider), [&](const auto& piece, const auto& wide, int) {
      require(piece.extents()[0] == wide.extents()[0] && wide.extents()[1] == 5, "pieces of one coordinate");
    });
    const auto longer = rank.integers<Keys>({8, 2});
    const std::string text = error_of([&] { stream<tp>(std::tie(k, longer), Nothing{}); });
    require(contains(text, "stream (rank ") && contains(text, "d0 = 8 in the second"), text);
  });
}

TEST_CASE("the order of summation is that of the ring, the owner last") {
  on_grid({1, 3}, [](const Rank& rank) {
    const T<Shard<d0, tp>> x(rank.mesh, {3, 1});
    const int me = rank.mesh.coordinate<tp>();
    const double parts[] = {1e16, 1, -1e16};
    const auto sums = stream<tp>(x, [&](const auto& piece, int) {
      auto mine = piece;
      for (double& value : mine.mutable_local()) value = parts[me];
      return mine;
    });
    const double expected = (parts[(me + 1) % 3] + parts[(me + 2) % 3]) + parts[me];
    require(sums.local()[0] == expected, std::to_string(sums.local()[0]));
  });
}

TEST_CASE("a function that throws on one rank ends the stream of all, with the reason") {
  for (int at = 0; at < 3; ++at) {  // the call that throws
    for (int who = 0; who < 3; ++who) {
      std::string what;
      try {
        on_grid({1, 3}, [&](const Rank& rank) {
          const auto x = rank.integers<T<Shard<d0, tp>>>({300, 200});
          int calls = 0;
          const auto run = [&] {
            // Those that are through already hear of it in the next call.
            for (int again = 0; again < 2; ++again) {
              static_cast<void>(stream<tp>(x, [&](const auto& piece, int) {
                if (calls++ == at && rank.mesh.coordinate<tp>() == who) throw std::runtime_error("no such token");
                return piece;
              }));
            }
          };
          if (rank.mesh.coordinate<tp>() == who) {
            bool thrown = false;
            try {
              run();
            } catch (const std::runtime_error& error) {
              thrown = error.what() == std::string("no such token");
            }
            require(thrown, "the own exception");
          } else {
            const std::string text = error_of(run);
            require(contains(text, "stream: rank " + std::to_string(who) + " has given up: no such token"), text);
          }
        });
      } catch (const std::exception& error) {
        what = error.what();
      }
      // Whether the job counts as failed is not the point: every rank has ended.
      CHECK((what.empty() || what.find("no such token") != std::string::npos));
    }
  }
}

TEST_CASE("contributions of another shape are errors of the ranks that made them, and no rank waits") {
  std::string what;
  try {
    on_grid({1, 2}, [](const Rank& rank) {
      const auto x = rank.integers<T<Shard<d0, tp>>>({4, 2});
      static_cast<void>(stream<tp>(x, [&](const auto& piece, int coordinate) {
        return coordinate == 0 ? piece : detail::bare<decltype(piece)>(piece.mesh(), {3, 2});
      }));
    });
  } catch (const Error& error) {
    what = error.what();
  }
  CHECK(what.find("a contribution with the 2 indices of test::d0 that the piece has") != std::string::npos);
  CHECK(what.find("found 3;") != std::string::npos);
}

TEST_CASE("communicating checks: ranks that stream different things hear of it") {
  on_grid({1, 2}, [](const Rank& rank) {
    rank.mesh.set_checks(Checks::communicating);
    const T<Shard<d0, tp>> x(rank.mesh, {4, rank.mesh.coordinate<tp>() == 0 ? 2u : 3u});
    const std::string text = error_of([&] { stream<tp>(x, Nothing{}); });
    require(contains(text, "stream (rank ") && contains(text, "the same extents on all ranks"), text);
  });
}

}  // namespace
}  // namespace test
