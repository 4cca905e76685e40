// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/parallel/detail/data_axes.hpp"
#include "meshwise/parallel/detail/flat_sum.hpp"
#include "meshwise/tensor/detail/started.hpp"

namespace meshwise {

/// While one of these lives, gradients are added up on their own rank and nothing is sent: for all micro-batches of a
/// step but the last. `const auto quiet = buckets.no_sync(i + 1 < micro_batches);`
class NoSync {
 public:
  NoSync(int& depth, bool quiet) : depth_(depth), by_(quiet ? 1 : 0) { depth_ += by_; }
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;
  ~NoSync() { depth_ -= by_; }

 private:
  int& depth_;
  int by_;
};

/// Sums gradients over axes in few large all-reduces, while the backward runs: the buckets of data parallelism.
///
/// `expect` says once, in the order in which the parameters are used, which gradients come in every step; buckets are
/// cut from the last one backwards. Then in each step `add` takes them in any order, adds them up where one comes
/// several times, and starts the sum of a bucket as soon as all of it has come, after those before it: all ranks start
/// them in the same order, whatever comes when. `finish` starts the rest, in which a gradient that never came counts as
/// zero, and waits. `take` gives the sums as views of the buckets, in the type of the values. Frozen parameters are not
/// expected. Sums are sums: the division by the number of tokens of all ranks is done once, in the loss (see
/// cross_entropy) or by the optimizer's gradient_scale.
///
/// Over: an axis, or several as `Mesh<dp, cp>`, in the mesh's order. bucket_bytes: at least one gradient goes into a
/// bucket, whatever its size. Cost: one copy of each gradient, per bucket one all-reduce in place, of
/// 2(n-1)/n times its bytes per rank; in a group of one the copies alone. Buckets are counted as gradients; those of a
/// step live until the first gradient of the next one comes. Ordering: all ranks along Over expect alike, and call
/// `finish` (the same number of times) though no gradient came. The bits of the result do not depend on the bucket
/// size, as long as the algorithm sums in rank order (the direct one does). Lifetime: tickets belong to it; taken
/// tensors live on; not beyond the mesh. Errors: as described at each; those of the all-reduce from `add` and `finish`.
/// Source: Li et al., "PyTorch Distributed", arXiv 2006.15704.
template <class Over, Element E, class Grid>
class GradientBuckets {
  using Line = typename detail::mesh_over<Over>::is;

 public:
  /// One of the gradients, of a value of type T.
  template <class T>
  struct Ticket {
    std::size_t number = 0;
    Extents<typename T::dims> extents;
  };

  GradientBuckets(const Grid& mesh, std::size_t bucket_bytes)
      : mesh_(mesh),
        line_(detail::line_of<Line>(mesh)),
        capacity_(detail::larger<std::size_t>(bucket_bytes / sizeof(E), 1)) {}

  /// Announces the gradient of a value of these extents. T: replicated over Over; on other axes the gradient is placed
  /// as T is, which may be a Partial. uses: how many times it comes in each micro-batch, such as 2 for an embedding
  /// that is also the output projection. Errors: after the first `add`.
  template <AnyTensor T>
    requires(detail::is_accepted<detail::summed_of<T, E, Line>>)
  Ticket<T> expect(const Extents<typename T::dims>& extents, int uses = 1) {
    if (sealed_) refuse("expect", "all gradients before the first add", "another one after it", "expect them first");
    if (uses < 1) refuse("expect", "at least 1 use", std::to_string(uses), "leave out what has no gradient");
    const T view(mesh_, extents, Storage(), 0);
    std::size_t size = 1;
    for (const Range& held : view.ranges()) size *= held.size;
    pieces_.push_back({size, uses, 0, 0, 0});
    return {pieces_.size() - 1, view.extents()};
  }
  template <AnyTensor T>
    requires(!detail::is_accepted<detail::summed_of<T, E, Line>>)
  auto expect(const Extents<typename T::dims>& extents, int uses = 1) -> detail::summed_of<T, E, Line>;

  /// The same for a value that is there.
  template <AnyTensor T>
    requires(detail::is_accepted<detail::summed_of<T, E, Line>>)
  Ticket<T> expect(const T& value, int uses = 1) { return expect<T>(value.extents(), uses); }
  template <AnyTensor T>
    requires(!detail::is_accepted<detail::summed_of<T, E, Line>>)
  auto expect(const T& value, int uses = 1) -> detail::summed_of<T, E, Line>;

  /// Takes a gradient that owes a sum over Over. Cost: a copy, or an addition if one has come before; goes on with what
  /// is in flight. Errors: other extents than expected; one that comes more often than expected, because its bucket may
  /// be on its way.
  template <class T, AnyTensor G>
    requires(detail::is_accepted<detail::gradient_of<T, G, Line>>)
  void add(const Ticket<T>& ticket, const G& gradient) {
    seal();
    if (gradient.extents() != ticket.extents || ticket.number >= pieces_.size()) {
      refuse("add", "a gradient with the extents of the value", "others", "pass the ticket of this value");
    }
    if (finished_) begin();
    Piece& piece = pieces_[ticket.number];
    Bucket& bucket = buckets_[piece.bucket];
    const bool counts = quiet_ == 0;
    if ((counts && piece.missing == 0) || piece.bucket < started_) {
      refuse("add", "this gradient " + std::to_string(piece.uses) + " times in the micro-batch that is summed",
             "it once more", "call finish after each step, or say in expect how many times it comes");
    }
    bucket.sum.add(line_, bucket.places, piece.place, gradient.local());
    if (counts) {
      --piece.missing;
      --bucket.missing;
      while (started_ < buckets_.size() && buckets_[started_].missing == 0) start(buckets_[started_++]);
    }
    go_on();
  }
  template <class T, AnyTensor G>
    requires(!detail::is_accepted<detail::gradient_of<T, G, Line>>)
  auto add(const Ticket<T>& ticket, const G& gradient) -> detail::gradient_of<T, G, Line>;

  /// From now on until the result dies, `add` sends nothing and what comes is not counted. quiet: whether to do so.
  [[nodiscard]] NoSync no_sync(bool quiet = true) { return NoSync(quiet_, quiet); }

  /// Ends the step: sums what has not been summed, and waits. Collective over Over. Errors: within no_sync.
  void finish() {
    seal();
    if (quiet_ != 0) refuse("finish", "the end of the last micro-batch", "a no_sync that is alive", "let it die first");
    if (finished_) begin();
    while (started_ < buckets_.size()) start(buckets_[started_++]);
    for (Bucket& bucket : buckets_) {
      if (bucket.flying.pending()) bucket.settled.emplace(bucket.flying.wait());
    }
    finished_ = true;
  }

  /// A gradient that has been summed, as a view of its bucket. Errors: before `finish`, and after the next `add`.
  template <class T>
  T take(const Ticket<T>& ticket) const {
    if (!finished_ || ticket.number >= pieces_.size()) {
      refuse("take", "a gradient that has been summed", "one that is still awaited",
             "call finish() on all ranks first");
    }
    const Piece& piece = pieces_[ticket.number];
    const Bucket& bucket = buckets_[piece.bucket];
    return T(mesh_, ticket.extents, bucket.settled->storage(),
             bucket.settled->offset() + bucket.places[piece.place].begin);
  }

  /// All-reduces in a step: buckets. No more can be expected after this was asked.
  std::size_t count() {
    seal();
    return buckets_.size();
  }

 private:
  using Settled = Tensor<E, Dims<flat>, Layout<Line>>;

  struct Piece {
    std::size_t size;
    int uses;
    int missing;  // uses that have not come yet in the micro-batch that is summed
    std::size_t bucket, place;
  };
  // A bucket is one coordinate's matter on every other axis: its pieces have the sizes of that coordinate.
  struct Bucket {
    std::vector<Range> places;
    int uses = 0, missing = 0;
    detail::FlatSum<E, Line> sum;
    Pending<Settled> flying;
    std::optional<Settled> settled;
  };

  [[noreturn]] void refuse(const char* what, std::string expected, std::string found, const char* remedy) const {
    fail((std::string("GradientBuckets::") + what).c_str(), std::move(expected), std::move(found), remedy,
         mesh_.world().rank());
  }

  void seal() {
    if (sealed_) return;
    sealed_ = true;
    std::size_t filled = 0;
    for (std::size_t i = pieces_.size(); i-- > 0;) {
      Piece& piece = pieces_[i];
      if (buckets_.empty() || filled + piece.size > capacity_) {
        buckets_.emplace_back();
        filled = 0;
      }
      Bucket& bucket = buckets_.back();
      piece.bucket = buckets_.size() - 1;
      piece.place = bucket.places.size();
      bucket.places.push_back({filled, piece.size});
      bucket.uses += piece.uses;
      filled += piece.size;
    }
    begin();
  }

  void begin() {
    for (Piece& piece : pieces_) piece.missing = piece.uses;
    for (Bucket& bucket : buckets_) {
      bucket.missing = bucket.uses;
      bucket.settled.reset();
    }
    started_ = landed_ = 0;
    finished_ = false;
  }

  void start(Bucket& bucket) {
    bucket.flying = detail::start_planned<Layout<Line>>("GradientBuckets", bucket.sum.take(line_, bucket.places));
  }

  void go_on() {
    while (landed_ < started_ && buckets_[landed_].flying.test()) ++landed_;
  }

  Grid mesh_;
  Line line_;
  std::size_t capacity_;
  std::vector<Piece> pieces_;
  std::vector<Bucket> buckets_;
  std::size_t started_ = 0, landed_ = 0;
  int quiet_ = 0;
  bool sealed_ = false, finished_ = false;
};

}  // namespace meshwise
