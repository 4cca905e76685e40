// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshwise/core/memory.hpp"
#include "meshwise/core/split.hpp"
#include "meshwise/parallel/detail/compact.hpp"
#include "meshwise/parallel/detail/in_flight.hpp"
#include "meshwise/parallel/zero_stages.hpp"

namespace meshwise::detail {

/// Where pieces lie one behind the other in a flat vector.
class FlatPlaces {
 public:
  std::size_t add(std::size_t size) {
    all_.push_back({this->size(), size});
    return all_.size() - 1;
  }
  std::size_t size() const { return all_.empty() ? 0 : all_.back().end(); }
  const std::vector<Range>& all() const { return all_; }
  const Range& operator[](std::size_t i) const { return all_[i]; }

 private:
  std::vector<Range> all_;
};

constexpr Range common_range(const Range& a, const Range& b) {
  const std::size_t begin = a.begin > b.begin ? a.begin : b.begin, end = a.end() < b.end() ? a.end() : b.end();
  return {begin, end > begin ? end - begin : 0};
}

/// Starts to bring a flat vector to another layout. Nothing is sent for an empty one, which every rank knows to be so.
template <class R, class T>
void bring(InFlight<R>& to, T&& x) {
  if (x.extents()[0].size() == 0) {
    to.set(R(x.mesh(), {0}));
  } else {
    to.start(start_planned<typename R::layout>("Zero", std::forward<T>(x)));
  }
}

/// The parameters of one unit in the layouts of a stage: at rest, whole, and between the forward and the backward.
template <class Stage, class E>
class FlatParameters {
 public:
  using Line = grid_of<typename Stage::parameters>;
  template <class L>
  using Flat = Tensor<E, Dims<flat>, L>;
  using Rest = Flat<typename Stage::parameters>;
  using Whole = Flat<Layout<Line>>;
  using Own = Flat<typename Stage::state>;

  /// The own part of pieces that every rank has whole. Cost: a copy of it.
  void fill(const Line& mesh, const FlatPlaces& places, const std::vector<std::span<const E>>& pieces) {
    const CategoryScope scope(mesh.memory(), Category::parameters);
    Rest rest(mesh, {places.size()}, uninitialised{});
    const Range own = rest.template range<flat>();
    E* const out = written(rest);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Range part = common_range(places[i], own);
      if (part.size == 0 || pieces[i].empty()) continue;
      std::memcpy(static_cast<void*>(out + (part.begin - own.begin)), pieces[i].data() + (part.begin - places[i].begin),
                  part.size * sizeof(E));
    }
    rest_.set(std::move(rest));
  }

  /// Whether the ranks hold everything at rest.
  static constexpr bool always_whole = std::is_same_v<Rest, Whole>;

  /// Starts what brings them to every rank, unless they are there or on their way.
  void gather(const Line& mesh) {
    if constexpr (!always_whole) {
      if (!whole_.empty()) return;
      const CategoryScope scope(mesh.memory(), Category::parameters);
      if (kept_.empty()) {
        bring(whole_, rest_.get());
      } else {
        bring(whole_, kept_.get());
      }
    }
  }
  /// All of them, once they are there.
  const Whole& whole() {
    if constexpr (always_whole) {
      return rest_.get();
    } else {
      return whole_.get();
    }
  }

  /// After the forward: as the stage says.
  void keep(const Line& mesh) {
    if constexpr (!always_whole && !std::is_same_v<typename Stage::kept, typename Whole::layout>) {
      if constexpr (!std::is_same_v<typename Stage::kept, typename Stage::parameters>) {
        if (whole_.empty() || !kept_.empty()) return whole_.reset();
        const CategoryScope scope(mesh.memory(), Category::parameters);
        kept_.set(compact(planned<typename Stage::kept>("Zero", whole_.take())));
      }
      whole_.reset();
    }
  }
  /// Back to rest.
  void release() {
    whole_.reset();
    kept_.reset();
  }

  /// Lets f change the part whose optimizer state this rank has, and starts what brings it to the others.
  template <class F>
  void update(const Line& mesh, const F& f) {
    release();
    const CategoryScope scope(mesh.memory(), Category::parameters);
    Own own = compact(planned<typename Stage::state>("Zero", rest_.take()));
    f(own);
    bring(rest_, std::move(own));
  }
  /// The part whose optimizer state this rank has. Cost: none.
  Own own() { return planned<typename Stage::state>("Zero", rest_.get()); }

 private:
  InFlight<Rest> rest_;
  InFlight<Whole> whole_;
  InFlight<Flat<typename Stage::kept>> kept_;
};

}  // namespace meshwise::detail
