// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "meshwise/core/error.hpp"
#include "meshwise/tensor/generate.hpp"
#include "meshwise/train/permutation.hpp"

namespace meshwise {

namespace detail {

/// The verdict on reading a tensor of type T, whose dim D counts the samples, by a function of sample and index.
template <class D, class T, class F>
consteval auto read_verdict() {
  using verdict = typename decltype(generate_verdict<T>())::is;
  if constexpr (!is_accepted<verdict>) {
    return type<verdict>{};
  } else if constexpr (!contains<D, dims_of<typename T::dims>>) {
    return type<foreign_dim<D, typename T::dims>>{};
  } else {
    using index = Index<typename T::dims>;
    using refusal = refused<because::function_does_not_take_the_sample,
                            try_<take_a_sample_and_an_Index_and_return_an_element>, index>;
    return first_of(function_fits<typename T::element, refusal, F, std::uint64_t, index>() + list<verdict>{});
  }
}
template <class D, AnyTensor T, class F>
using read_of = typename decltype(read_verdict<D, T, F>())::is;

}  // namespace detail

/// The samples of one step, of all ranks together: places [first, first + size) of the order of an epoch.
///
/// A value, and a function of the loader's numbers: the same on every rank, whatever the mesh.
class GlobalBatch {
 public:
  GlobalBatch(std::uint64_t epoch, std::uint64_t first, std::size_t size, const Permutation& order, bool shuffled)
      : epoch_(epoch), first_(first), size_(size), order_(order), shuffled_(shuffled) {}

  std::uint64_t epoch() const { return epoch_; }
  std::size_t size() const { return size_; }
  /// The sample, a number below Loader::samples(), that is number i of this batch. Errors: i is not below size().
  std::uint64_t operator[](std::size_t i) const {
    if (i >= size_) {
      fail("GlobalBatch", "a number below " + std::to_string(size_), std::to_string(i), "ask for those in the batch");
    }
    return shuffled_ ? order_(first_ + i) : first_ + i;
  }

  /// What this rank holds of the batch, read by a function of sample and global index.
  ///
  /// T: a tensor type with the dim D, whose indices are the samples of this batch; any layout but a Partial: each rank
  /// reads the samples, and of each the part, that its Shard gives it. extents: global, size() for D. read:
  /// `(sample, Index<Dims>) -> element`, called in local order; index.position<seq>() counts from the start of the
  /// whole sample, so labels are those of position + 1, however the sequence is split. Cost: a call per local element,
  /// one shuffled number per run of one sample; no communication. Errors: other extents; what `read` throws; refused
  /// for a Partial, a T without D, and a function that takes something else.
  template <AnyTensor T, Dim D = batch, class F>
    requires detail::is_accepted<detail::read_of<D, T, F>> T read(const typename T::grid& mesh,
                                                                  const Extents<typename T::dims>& extents,
                                                                  const F& read)
  const {
    const std::size_t said = extents[detail::dim_index<D, T>].size();
    if (said != size_) {
      fail("GlobalBatch::read", std::to_string(size_) + " samples, the size of this batch", std::to_string(said),
           "pass size() as the extent of the batch: the last one of an epoch may be smaller", mesh.world().rank());
    }
    std::size_t number = ~std::size_t{0};
    std::uint64_t sample = 0;
    return generate<T>(mesh, extents, [&](const Index<typename T::dims>& index) {
      const std::size_t now = index.template position<D>();
      if (now != number) sample = (*this)[number = now];
      return static_cast<typename T::element>(read(sample, index));
    });
  }
  template <AnyTensor T, Dim D = batch, class F>
    requires(!detail::is_accepted<detail::read_of<D, T, F>>)
  auto read(const typename T::grid& mesh, const Extents<typename T::dims>& extents, const F& read) const
      -> detail::read_of<D, T, F>;

 private:
  std::uint64_t epoch_, first_;
  std::size_t size_;
  Permutation order_;
  bool shuffled_;
};

/// The numbers of a loader.
struct LoaderOptions {
  std::uint64_t seed = 1;
  bool shuffle = true;     ///< in another order in every epoch; otherwise in ascending order
  bool keep_rest = true;   ///< the last batch of an epoch has the samples that are left; otherwise these are left out
  std::uint64_t step = 0;  ///< steps that have been read already, for those who go on from a checkpoint
};

/// Which samples each step learns from: all of them once in every epoch, in an order that depends on the seed and the
/// number of the epoch only.
///
/// samples: how many there are; batch: how many make a step, of all ranks together. What the batches are depends not
/// on the number of ranks, so a run may go on with more of them. Its only state is the number of steps read: nothing
/// else has to be kept to go on, and ranks need not talk. Cost: a batch is 3 KiB and makes no table, however many
/// samples there are. Errors: a batch of 0; `next` where no batch can be filled.
class Loader {
 public:
  Loader(std::uint64_t samples, std::size_t batch, const LoaderOptions& options = {})
      : samples_(samples), batch_(batch), options_(options), step_(options.step) {
    if (batch == 0) fail("Loader", "a batch of at least one sample", "0", "it is the batch of all ranks together");
  }

  std::uint64_t samples() const { return samples_; }
  std::uint64_t steps_per_epoch() const {
    return samples_ / batch_ + (options_.keep_rest && samples_ % batch_ != 0 ? 1 : 0);
  }
  /// Steps that have been read: what a checkpoint keeps.
  std::uint64_t step() const { return step_; }
  /// Goes on after that many steps. Cost: none.
  void seek(std::uint64_t step) { step_ = step; }

  /// The next batch; the last one of an epoch may be smaller.
  GlobalBatch next() {
    const std::uint64_t steps = steps_per_epoch();
    if (steps == 0) {
      fail("Loader::next", "at least " + std::string(options_.keep_rest ? "one sample" : "one batch of samples"),
           std::to_string(samples_), "make batches smaller, or keep the rest");
    }
    const std::uint64_t epoch = step_ / steps, first = step_ % steps * batch_;
    ++step_;
    const std::uint64_t left = samples_ - first;
    return {epoch, first, left < batch_ ? static_cast<std::size_t>(left) : batch_,
            Permutation(options_.shuffle ? samples_ : 0, stream_seed(options_.seed, epoch)), options_.shuffle};
  }

 private:
  std::uint64_t samples_;
  std::size_t batch_;
  LoaderOptions options_;
  std::uint64_t step_;
};

}  // namespace meshwise
