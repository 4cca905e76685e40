// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "meshwise/collective/group.hpp"
#include "meshwise/tensor/accumulate.hpp"
#include "meshwise/tensor/inside.hpp"

namespace meshwise::detail {

/// A stream that begins, and what its tensors have in common.
template <class A, class T>
struct StreamSource {
  using CutBy = placement_on<typename T::layout, A>;
  using D = typename placement_traits<CutBy>::dim;

  explicit StreamSource(const T& x)
      : ranks(x.mesh().template along<A>()),
        extent(x.extents()[dim_index<D, T>]),
        view(x.mesh().view()),
        inner(x.mesh().template without<A>().borrowed()) {}

  int before(int steps) const { return (ranks.rank() + ranks.size() - steps % ranks.size()) % ranks.size(); }
  Seat seat(int coordinate) const {
    Seat result(view);
    result.coordinate[static_cast<std::size_t>(axis)] = coordinate;
    return result;
  }
  /// Indices of D that a coordinate has.
  std::size_t part(int coordinate) const { return range_of(T::layout_as_value, dim, 1, extent, seat(coordinate)).size; }
  Positions positions(int coordinate) const { return positions_of(T::layout_as_value, dim, extent, seat(coordinate)); }

  static constexpr int axis = index_of<A, axes_of_layout<typename T::layout>>;
  static constexpr int dim = static_cast<int>(dim_index<D, T>);
  Communicator& ranks;
  const Extent& extent;
  const GridView view;
  const grid_of<typename inside_of<T, A>::is::layout> inner;
};

/// Tags that messages of a program do not have.
inline constexpr std::uint64_t piece_tag = std::uint64_t{1} << 40, sum_tag = std::uint64_t{1} << 41;

/// A tensor like y for another number of indices of D.
template <class D, class Y>
Y room_like(const Y& y, std::size_t part) {
  Extents<typename Y::dims> extents = y.extents();
  extents[dim_index<D, Y>] = part;
  return Y(y.mesh(), extents, uninitialised{});
}

/// Sends a tensor on to the next rank of a ring and receives another one from the rank before.
template <class Out, class In>
void add_hop(GroupTask& ring, const Communicator& ranks, const Out& out, In& in, std::uint64_t tag) {
  const int n = ranks.size(), next = (ranks.rank() + 1) % n, previous = (ranks.rank() + n - 1) % n;
  if (const auto data = out.local(); !data.empty()) {
    ring.add(GroupTask::Outgoing{data.data(), data.size_bytes(), next, tag});
  }
  if (const auto data = in.local(); !data.empty()) {
    ring.add(GroupTask::Incoming{written(in), data.size_bytes(), previous, tag});
  }
}

/// Sums that go round the ring behind the pieces that they belong to, and end at their owners.
template <class Source, class... Ys>
class TravellingSums {
 public:
  using D = typename Source::D;

  explicit TravellingSums(const Source& source) : source_(source), ring_(source.ranks.endpoint("stream"), -1) {}

  /// step: how many pieces this rank has seen before. coordinate: of this one.
  void add(std::tuple<Ys...>&& own, int step, int coordinate) {
    each([&](auto i) { check(std::get<i>(own), coordinate); });
    if (step == 0) {
      kept_.emplace(std::move(own));
      return;
    }
    if (step == 1) {
      leaving_.emplace(std::move(own));
    } else {
      take_in(own);
      leaving_ = std::move(arriving_);
    }
    make_room(source_.part(source_.before(step + 1)), std::index_sequence_for<Ys...>{});
    ring_.clear();
    each([&](auto i) { add_hop(ring_, source_.ranks, std::get<i>(*leaving_), std::get<i>(*arriving_), sum_tag + i); });
    ring_.start();
  }

  /// After the last step.
  std::tuple<Ys...> finish() {
    if (source_.ranks.size() == 1) return std::move(*kept_);
    take_in(*kept_);
    return std::move(*arriving_);
  }

 private:
  template <class Y>
  void check(const Y& y, int coordinate) const {
    const std::size_t part = source_.part(coordinate), found = y.extents()[dim_index<D, Y>];
    const bool here = y.mesh() == source_.inner;
    if (found == part && here) return;
    fail("stream",
         "a contribution with the " + std::to_string(part) + " indices of " + name_of<D>() +
             " that the piece has, on its mesh",
         std::to_string(found) + (here ? "" : " on another mesh"), "return a tensor that is like the piece in that dim",
         source_.ranks.rank());
  }
  template <std::size_t... is>
  void make_room(std::size_t part, std::index_sequence<is...>) {
    arriving_.emplace(room_like<D>(std::get<is>(*kept_), part)...);
  }
  void take_in(const std::tuple<Ys...>& own) {
    ring_.wait();
    leaving_.reset();
    each([&](auto i) { std::get<i>(*arriving_) += std::get<i>(own); });
  }
  /// Calls f with the number of each sum.
  template <class F>
  static void each(const F& f) {
    call_each(f, std::index_sequence_for<Ys...>{});
  }
  template <class F, std::size_t... is>
  static void call_each(const F& f, std::index_sequence<is...>) {
    (f(std::integral_constant<std::size_t, is>{}), ...);
  }

  const Source& source_;
  std::optional<std::tuple<Ys...>> kept_, leaving_, arriving_;
  GroupTask ring_;  // lands before its buffers die
};

}  // namespace meshwise::detail
