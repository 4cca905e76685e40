// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/convert.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

// Every pair of placements of one axis, against an array that is defined by position. Several axes, other elements,
// sharing and in-place conversions are in convert_more.cpp.
namespace test {
namespace {

using Cube = Dims<d0, d1, d2>;
template <class P>
using T = Tensor<double, Cube, On<P>>;
using Kinds = detail::list<Replicate<tp>, Shard<d0, tp>, Shard<d1, tp>, Shard<d2, tp>, Partial<tp>, Partial<tp, Max>>;

/// The bytes that all ranks of the mesh receive, by the table; all_to_all from the blocks themselves.
template <class From, class To>
double table_volume(const Rank& rank, const Extents<Cube>& extents) {
  constexpr Transition kind = transition_of<On<From>, To>;
  const int n = rank.mesh.size<tp>();
  const auto lines = static_cast<double>(rank.mesh.size<dp>());
  double bytes = sizeof(double);
  for (const std::size_t e : extents) bytes *= static_cast<double>(e);
  if constexpr (kind == Transition::all_to_all) {
    using of = typename detail::placement_traits<From>::dim;
    using to = typename detail::placement_traits<To>::dim;
    const std::size_t a = extents[static_cast<std::size_t>(detail::index_of<of, detail::dims_of<Cube>>)];
    const std::size_t b = extents[static_cast<std::size_t>(detail::index_of<to, detail::dims_of<Cube>>)];
    const auto parts = static_cast<std::size_t>(n);
    std::size_t off_diagonal = 0;
    for (std::size_t i = 0; i < parts; ++i) {
      for (std::size_t j = 0; j < parts; ++j) {
        if (i != j) off_diagonal += split(a, parts, i).size * split(b, parts, j).size;
      }
    }
    return a == 0 || b == 0 ? 0.0 : lines * bytes / static_cast<double>(a * b) * static_cast<double>(off_diagonal);
  } else {
    return lines * transition_volume(kind, n, bytes);
  }
}

template <class From, class To>
void check_pair(const Rank& rank, const Extents<Cube>& extents) {
  if constexpr (detail::is_accepted<detail::convert_verdict<T<From>, To>>) {
    const std::string what = name_of<From>() + " -> " + name_of<To>();
    const T<From> x = rank.integers<T<From>>(extents);
    const std::vector<double> value = array(x.size(), [](std::size_t i) { return integer(i, 1); });
    const std::vector<double> own(x.local().begin(), x.local().end());

    const Traffic before = rank.mesh.along<tp>().traffic();
    const Traffic other = rank.mesh.along<dp>().traffic();
    const auto y = convert<To>(x);
    const Traffic spent = rank.mesh.along<tp>().traffic() - before;
    static_assert(std::is_same_v<std::remove_const_t<decltype(y)>, T<To>>);
    require_equal(rank.denoted(y), value, what);
    require(y.extents() == extents, what + ": extents");
    require(std::equal(own.begin(), own.end(), x.local().begin(), x.local().end()), what + ": the argument changed");

    require(rank.total(static_cast<double>(spent.volume)) == table_volume<From, To>(rank, extents), what + ": volume");
    const bool communicating = communicates(transition_of<On<From>, To>) && rank.mesh.size<tp>() > 1;
    require(spent.calls == (communicating ? 1U : 0U), what + ": calls");
    require(communicating || spent == Traffic{}, what + ": traffic without communication");
    require(rank.mesh.along<dp>().traffic() == other, what + ": the other axis");

    if constexpr (detail::is_accepted<detail::convert_verdict<T<To>, From>>) {
      const T<From> back = convert<From>(convert<To>(T<From>(x)));
      require_equal(rank.denoted(back), value, what + " and back");
      if constexpr (!detail::placement_traits<From>::partial) {
        require(std::equal(own.begin(), own.end(), back.local().begin(), back.local().end()), what + " and back, bits");
      }
    }
  } else {
    static_assert(detail::placement_traits<From>::partial && detail::placement_traits<To>::partial);
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

TEST_CASE("one axis: values, volume, calls, and there and back") {
  const int drawn = full() ? 216 : 6;
  for (const GridSize size : few_grids) {
    on_grid(size, [&](const Rank& rank) {
      check_all(rank, {5, 3, 7}, Kinds{});
      check_all(rank, {2, 1, 3}, Kinds{});
      Draw draw(7);
      for (int i = 0; i < drawn; ++i) check_all(rank, {draw.size(), draw.size(), draw.size()}, Kinds{});
    });
  }
}

}  // namespace
}  // namespace test
