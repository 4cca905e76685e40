// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "meshwise/core/element.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/core/positions.hpp"
#include "meshwise/core/split.hpp"
#include "meshwise/layout/layout.hpp"
#include "meshwise/layout/layout_value.hpp"
#include "meshwise/layout/transition.hpp"
#include "meshwise/mesh/mesh.hpp"
#include "meshwise/tensor/detail/held.hpp"
#include "meshwise/tensor/extent.hpp"

namespace meshwise {

namespace detail {

/// Position and number of parts along the ordered product of axes.
struct Part {
  std::size_t index = 0;
  std::size_t parts = 1;
};

template <class Grid, class... As>
Part part_of(const Grid& mesh, list<As...>) {
  Part part;
  ((part.index = part.index * static_cast<std::size_t>(mesh.template size<As>()) +
                 static_cast<std::size_t>(mesh.template coordinate<As>()),
    part.parts *= static_cast<std::size_t>(mesh.template size<As>())),
   ...);
  return part;
}

template <class D, class L>
consteval auto foreign_dims() {
  using dims = dims_of<D>;
  return []<class... Ps>(list<Ps...>) {
    return joined<decltype(without_known<dims>(sharded_dim<Ps>()))...>();
  }(placements_of<L>{});
}
template <class Known, class... Ds>
consteval auto without_known(list<Ds...>) {
  return joined<std::conditional_t<contains<Ds, Known>, list<>, list<Ds>>...>();
}

/// What is wrong with dims and layout together: a refusal, or accepted.
template <class D, class L>
consteval auto tensor_verdict() {
  if constexpr (!AnyLayout<L>) {
    return type<L>{};
  } else {
    using twice = repeated<dims_of<D>>;
    if constexpr (!std::is_void_v<twice>) {
      return type<refused<because::dim_repeated<twice>, try_<rename_one_of_them_with_key>, D>>{};
    } else if constexpr (D::rank > LayoutValue::most_dims) {
      return type<refused<because::tensor_has_more_than_12_dims, try_<merge_dims_that_are_always_used_together>, D>>{};
    } else {
      using foreign = decltype(foreign_dims<D, L>());
      if constexpr (foreign::size != 0) {
        return type<refused<because::dim_not_in_the_tensor<front<foreign>>, try_<name_a_dim_of_this_tensor>, D, L>>{};
      } else {
        return type<accepted<D>>{};
      }
    }
  }
}

template <class D, class L>
inline constexpr bool tensor_is_valid = is_accepted<typename decltype(tensor_verdict<D, L>())::is>;

template <class D, class Dims>
using foreign_dim = refused<because::dim_not_in_the_tensor<D>, try_<name_a_dim_of_this_tensor>, Dims>;

struct uninitialised {};

}  // namespace detail

template <class E, class D, class L, class Space = Host>
class Tensor;

/// Dims and layout that contradict each other: no constructor, and an error that spells the reason.
template <class E, class D, class L, class Space>
  requires(!detail::tensor_is_valid<D, L>)
class Tensor<E, D, L, Space> {
 public:
  template <class Refused = typename decltype(detail::tensor_verdict<D, L>())::is, class Grid>
  Tensor(const Grid&, const Extents<D>&) = delete;
};

/// One rank's piece of a tensor whose type says how the pieces form the whole.
///
/// Element: what it holds. D: `Dims<...>`, outermost first. L: `Layout<...>`. The local piece is contiguous, row-major.
/// A value: copies share storage until one of them is written (copy on write), so handing out a copy costs nothing and
/// no write is ever seen through another tensor. Cost: construction allocates the local piece from the mesh's heap.
/// Lifetime: not beyond its mesh. One thread uses it: its rank's.
template <class Element, Dim... Ds, class L, class Space>
  requires(detail::tensor_is_valid<Dims<Ds...>, L>)
class Tensor<Element, Dims<Ds...>, L, Space> {
 public:
  using element = Element;
  using dims = Dims<Ds...>;
  using layout = L;
  using space = Space;
  using grid = detail::grid_of<L>;
  static constexpr std::size_t rank = sizeof...(Ds);
  /// The layout as a value; the dims are numbered as in Dims.
  static constexpr const LayoutValue& layout_as_value = layout_value<L, detail::list<Ds...>>;

  /// Whether every rank's indices of a dim follow each other.
  template <Dim D>
  static constexpr bool is_contiguous = detail::is_contiguous(layout_as_value,
                                                              detail::index_of<D, detail::list<Ds...>>);

  /// A tensor of zeros. extents: global sizes in the order of the dims, any of them may be 0; of a dim that is Counted
  /// the sizes of its parts, Extent::of_parts. Errors: counts that are missing or not of as many parts as there are.
  Tensor(const grid& mesh, const Extents<dims>& extents) : Tensor(mesh, extents, detail::uninitialised{}) {
    if (size_ != 0 && storage_.backed()) std::memset(static_cast<void*>(pointer()), 0, size_ * sizeof(Element));
  }

  Tensor(const grid& mesh, const Extents<dims>& extents, detail::uninitialised) : Tensor(mesh, extents, Storage(), 0) {
    check_size();
    storage_ = mesh_.template memory<Space>().allocate(size_ * sizeof(Element));
  }

  /// A tensor over existing storage, for the library's own views. offset: in elements.
  Tensor(const grid& mesh, const Extents<dims>& extents, Storage storage, std::size_t offset)
      : mesh_(mesh.borrowed()), extents_(extents), storage_(std::move(storage)), offset_(offset) {
    ((held_[index<Ds>()] = hold<Ds>()), ...);
    for (const Range& r : held_) size_ *= r.size;
  }

  Tensor(const Tensor&) = default;
  Tensor& operator=(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor&&) noexcept = default;

  /// A layout is never changed silently: convert, and see what it costs.
  template <class Other, class Try = try_<detail::needed_conversion<Other, L>>>
    requires(!std::is_same_v<Other, L>)
  Tensor(const Tensor<Element, dims, Other, Space>&)
  = delete;

  const grid& mesh() const { return mesh_; }
  /// Global sizes.
  const Extents<dims>& extents() const { return extents_; }
  template <Dim D>
    requires detail::contains<D, detail::list<Ds...>> std::size_t extent()
  const { return extents_[index<D>()]; }
  template <Dim D>
    requires(!detail::contains<D, detail::list<Ds...>>)
  auto extent() const -> detail::foreign_dim<D, dims>;
  /// The global indices of a dim that this rank holds, where they always follow each other: not of a dim that is
  /// Zigzag or Striped.
  template <Dim D>
    requires(detail::contains<D, detail::list<Ds...>>&& is_contiguous<D>)
  Range range()
  const { return held_[index<D>()]; }
  template <Dim D>
    requires(detail::contains<D, detail::list<Ds...>> && !is_contiguous<D>)
  auto range() const -> refused<because::dim_is_not_contiguous<D>, try_<use_positions>, L>;
  template <Dim D>
    requires(!detail::contains<D, detail::list<Ds...>>)
  auto range() const -> detail::foreign_dim<D, dims>;
  /// The same for every dim: an ascending list. Cost: that of making it.
  template <Dim D>
    requires detail::contains<D, detail::list<Ds...>> Positions positions()
  const {
    return detail::positions_of(layout_as_value, static_cast<int>(index<D>()), extents_[index<D>()],
                                detail::Seat(mesh_.view()));
  }
  template <Dim D>
    requires(!detail::contains<D, detail::list<Ds...>>)
  auto positions() const -> detail::foreign_dim<D, dims>;
  /// How many indices of each dim this rank holds; begin is that of range() and means nothing where that is refused.
  const std::array<Range, rank>& ranges() const { return held_; }
  /// Elements of the whole tensor.
  std::size_t size() const {
    std::size_t n = 1;
    for (std::size_t e : extents_) n *= e;
    return n;
  }

  /// This rank's piece: of a Partial its summand, not the value (see `value`). Empty where memory is only counted.
  std::span<const Element> local() const { return piece(); }
  /// This rank's piece, to be written, until the tensor is next copied, converted or viewed. Cost: a copy of it if the
  /// storage is shared with another tensor.
  std::span<Element> mutable_local() {
    detach();
    return piece();
  }
  /// Whether no other tensor shares the storage.
  bool unique() const { return storage_.unique(); }

  /// The parts that the library's own views and conversions are made of.
  const Storage& storage() const { return storage_; }
  Storage take_storage() { return std::move(storage_); }
  std::size_t offset() const { return offset_; }

 private:
  template <Dim D>
  static consteval std::size_t index() {
    return static_cast<std::size_t>(detail::index_of<D, detail::list<Ds...>>);
  }
  template <Dim D>
  Range hold() {
    constexpr int d = static_cast<int>(index<D>());
    constexpr int axis = layout_as_value.order[d][0];
    if constexpr (layout_as_value.split[d] == 0) {
      return detail::hold_whole(extents_[index<D>()]);
    } else if constexpr (layout_as_value.split[d] == 1 && layout_as_value.rule[axis] == SplitRule::contiguous) {
      return detail::hold_part(mesh_.view(), axis, extents_[index<D>()]);
    } else {
      return detail::hold(mesh_.view(), layout_as_value, d, extents_[index<D>()]);
    }
  }
  void check_size() const {
    std::size_t bytes = sizeof(Element);
    bool too_large = false;
    for (std::size_t e : extents_) too_large |= e != 0 && __builtin_mul_overflow(bytes, e, &bytes);
    if (!too_large) return;
    std::string text;
    for (std::size_t e : extents_) text += (text.empty() ? "" : " x ") + std::to_string(e);
    fail("Tensor", "extents whose product of bytes fits 64 bits", text, "a negative number makes a huge extent",
         mesh_.world().rank());
  }
  Element* pointer() const {
    if (storage_.data() == nullptr) detail::refuse_moved_from(mesh_.view());
    return reinterpret_cast<Element*>(storage_.data()) + offset_;
  }
  std::span<Element> piece() const {
    Element* const begin = pointer();
    return {begin, storage_.backed() ? size_ : 0};
  }
  void detach() {
    if (storage_.unique() || size_ == 0) return;
    Storage own = mesh_.template memory<Space>().allocate(size_ * sizeof(Element));
    if (own.backed()) std::memcpy(own.data(), pointer(), size_ * sizeof(Element));
    storage_ = std::move(own);
    offset_ = 0;
  }

  grid mesh_;
  Extents<dims> extents_;
  std::array<Range, rank> held_;
  std::size_t size_ = 1;
  Storage storage_;
  std::size_t offset_ = 0;
};

}  // namespace meshwise
