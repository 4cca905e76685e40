// SPDX-License-Identifier: Apache-2.0
// Small tensors by the numbers that each rank holds, for tests that say what went wrong elsewhere.
#pragma once

#include <type_traits>
#include <vector>

#include "support.hpp"

namespace test::pieces {

template <class D, class... Ps>
using Doubles = Tensor<double, D, On<Ps...>>;
template <class... Ps>
using Number = Doubles<Dims<>, Ps...>;
template <class... Ps>
using Row = Doubles<Dims<d0>, Ps...>;

/// A tensor of which this rank holds the given numbers.
template <class X>
X holding(const Rank& rank, const Extents<typename X::dims>& extents, const std::vector<double>& mine) {
  X x(rank.mesh, extents);
  const auto out = x.mutable_local();
  require(out.size() == mine.size(), "a piece of another size");
  for (std::size_t i = 0; i < mine.size(); ++i) out[i] = static_cast<typename X::element>(mine[i]);
  return x;
}
template <class X>
std::vector<double> local(const X& x) {
  return {x.local().begin(), x.local().end()};
}
/// The one for this rank's coordinate along A.
template <class A>
std::vector<double> by(const Rank& rank, const std::vector<std::vector<double>>& of_each) {
  return of_each.at(static_cast<std::size_t>(rank.mesh.coordinate<A>()));
}
template <class A>
std::vector<double> by(const Rank& rank, std::vector<double> first, std::vector<double> second) {
  return rank.mesh.coordinate<A>() == 0 ? first : second;
}

template <class X, class Y>
inline constexpr bool same = std::is_same_v<std::remove_cvref_t<X>, std::remove_cvref_t<Y>>;

}  // namespace test::pieces
