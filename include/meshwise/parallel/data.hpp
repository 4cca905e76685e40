// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "meshwise/tensor/inside.hpp"

namespace meshwise {

namespace detail {

/// A tensor of layout L with axis A replicated instead of owed.
template <class T, class A>
using settled_of = Tensor<typename T::element, typename T::dims,
                          typename layout_after<typename T::layout, Replicate<A>>::is, typename T::space>;

/// The verdict on adding a gradient to buckets of E that are summed over A.
template <class T, class A, class E>
consteval auto bucket_verdict() {
  using P = placement_on<typename T::layout, A>;
  if constexpr (!std::is_same_v<typename T::element, E>) {
    return type<refused<because::elements_differ, try_<use_one_element_type>, typename T::element, E>>{};
  } else if constexpr (!placement_traits<P>::partial) {
    return type<refused<because::gradient_owes_no_sum<A>, try_<use_it_as_it_is>, typename T::layout>>{};
  } else if constexpr (!std::is_same_v<P, Partial<A>>) {
    return type<map_of<T, true>>{};
  } else {
    return type<accepted<T>>{};
  }
}
template <class T, class A, class E>
using bucket_of = typename decltype(bucket_verdict<operand<T>, A, E>())::is;

}  // namespace detail

/// Sums gradients over one axis in few large all-reduces: the buckets of data parallelism.
///
/// `add` takes a gradient that owes a sum over A and keeps its piece for the current bucket; when the bucket has
/// reached its size it is converted, as one flat tensor, from `Partial<A>` to `Replicate<A>`. `flush` converts the last
/// one. After that `take` gives the gradients back as views of the buckets, in the type that owes nothing over A.
///
/// bucket_bytes: at least one gradient goes into a bucket, whatever its size. Cost: one copy of each gradient, per
/// bucket one in-place all-reduce; in a group of one the copies alone. Ordering: all ranks along A add gradients of the
/// same sizes in the same order. The bits of the result do not depend on the bucket size, as long as the algorithm sums
/// in rank order (the direct one does). Lifetime: make a new one for each step, it keeps its buckets until it dies;
/// tickets belong to it; taken tensors live on.
/// Source: Li et al., "PyTorch Distributed", arXiv 2006.15704.
template <Axis A, Element E, class Grid>
class GradientBuckets {
 public:
  /// Where a gradient of type T went.
  template <class T>
  struct Ticket {
    std::size_t bucket = 0;
    std::size_t offset = 0;  // in elements
    Extents<typename T::dims> extents{};
  };

  GradientBuckets(const Grid& mesh, std::size_t bucket_bytes)
      : mesh_(mesh), capacity_(std::max<std::size_t>(bucket_bytes / sizeof(E), 1)) {}

  template <AnyTensor T>
    requires detail::is_accepted<detail::bucket_of<T, A, E>> Ticket<T> add(T gradient) {
      const std::size_t n = gradient.local().size();
      if (!pending_.empty() && filled_ + n > capacity_) flush();
      const Ticket<T> ticket{buckets_.size(), filled_, gradient.extents()};
      filled_ += n;
      // Held, not copied, until the bucket is closed: its size is known then.
      pending_.push_back({gradient.storage(), gradient.local()});
      return ticket;
    }

  template <AnyTensor T>
    requires(!detail::is_accepted<detail::bucket_of<T, A, E>>)
  auto add(T gradient) -> detail::bucket_of<T, A, E>;

  /// Sums what has been added since the last flush; collective over A.
  void flush() {
    if (pending_.empty()) return;
    const auto line = mesh_line();
    Owed bucket(line, {filled_}, detail::uninitialised{});
    E* to = bucket.mutable_local().data();
    for (const Piece& piece : pending_) to = std::copy(piece.elements.begin(), piece.elements.end(), to);
    pending_.clear();
    filled_ = 0;
    buckets_.push_back(convert<Replicate<A>>(std::move(bucket)));
  }

  /// A gradient that has been summed, as a view of its bucket. Errors: its bucket has not been flushed.
  template <class T>
  detail::settled_of<T, A> take(const Ticket<T>& ticket) const {
    if (ticket.bucket >= buckets_.size()) {
      fail("GradientBuckets::take", "a gradient whose bucket has been summed", "one that is still waiting",
           "call flush() on all ranks first", mesh_.world().rank());
    }
    const auto& bucket = buckets_[ticket.bucket];
    return {mesh_, ticket.extents, bucket.storage(), bucket.offset() + ticket.offset};
  }

  /// All-reduces so far.
  std::size_t count() const { return buckets_.size(); }

 private:
  struct Piece {
    Storage storage;  // keeps the elements alive
    std::span<const E> elements;
  };
  using Line = Mesh<A>;
  using Owed = Tensor<E, Dims<flat>, Layout<Line, Partial<A>>>;
  using Settled = Tensor<E, Dims<flat>, Layout<Line>>;

  // A bucket is one coordinate's matter on every other axis: its pieces have the sizes of that coordinate.
  Line mesh_line() const { return mesh_.template only<A>(); }

  Grid mesh_;
  std::size_t capacity_;
  std::size_t filled_ = 0;
  std::vector<Piece> pending_;
  std::vector<Settled> buckets_;
};

}  // namespace meshwise
