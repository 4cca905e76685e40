// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "meshwise/core/reduce.hpp"
#include "meshwise/core/split.hpp"
#include "meshwise/core/wait.hpp"
#include "meshwise/fabric/memory/cores.hpp"

namespace bench {

/// What somebody would write who needs a few operations of floats between threads, on fixed buffers, and no errors,
/// checks, counters or choices: the same algorithms, kernels and waits as the library's, and nothing else.
///
/// Small operations take one rendezvous: each rank copies its input into a window of its own and reads the others'.
/// Every window is one of a ring; it is written again when everybody has finished what it held. A rank does not read its
/// own window, which is on its way to the others' caches. Large operations are direct.
class ByHand {
 public:
  static constexpr std::size_t capacity = 8192;  ///< bytes of a small operation
  static constexpr int most_ranks = 8;

  /// What the ranks share.
  class Table {
   public:
    explicit Table(int ranks)
        : ranks_(ranks),
          crowded_(ranks > meshwise::detail::usable_cores()),
          windows_(new Window[static_cast<std::size_t>(ranks) * depth]),
          slots_(new Slot[static_cast<std::size_t>(ranks)]) {}

   private:
    friend class ByHand;
    struct alignas(128) Window {
      std::atomic<std::uint64_t> turn{0};
      std::byte data[capacity];
    };
    struct alignas(128) Slot {
      std::atomic<std::uint64_t> finished{0};  ///< the last small operation
      std::atomic<std::uint64_t> entered{0};  ///< the last direct one, and whether its moves are done in the lowest bit
      const void* input = nullptr;
      void* output = nullptr;
    };

    int ranks_;
    bool crowded_;
    std::unique_ptr<Window[]> windows_;
    std::unique_ptr<Slot[]> slots_;
  };

  ByHand(Table& table, int rank) : table_(table), rank_(rank), ranks_(table.ranks_) {}

  void barrier() {
    give({});
    for (int peer = 0; peer < ranks_; ++peer) take(peer, {});
    finish(true);
  }

  void all_reduce(std::span<const float> in, std::span<float> out) {
    give(std::as_bytes(in));
    for (int peer = 0; peer < ranks_; ++peer) sources_[index(peer)] = take(peer, std::as_bytes(in));
    fold(out);
    finish(true);
  }

  /// out: this rank's part.
  void reduce_scatter(std::span<const float> in, std::span<float> out) {
    give(std::as_bytes(in));
    const std::size_t offset = part(in.size(), rank_).begin * sizeof(float);
    for (int peer = 0; peer < ranks_; ++peer) sources_[index(peer)] = take(peer, std::as_bytes(in)) + offset;
    fold(out);
    finish(true);
  }

  void reduce(std::span<const float> in, std::span<float> out) {
    if (rank_ != 0) {
      give(std::as_bytes(in));
      return finish(false);
    }
    ++turn_;
    sources_[0] = in.data();
    for (int peer = 1; peer < ranks_; ++peer) sources_[index(peer)] = take(peer);
    fold(out);
    finish(true);
  }

  void broadcast(std::span<std::byte> data) {
    if (rank_ == 0) {
      give(data);
    } else {
      ++turn_;
      std::memcpy(data.data(), take(0), data.size());
    }
    finish(false);
  }

  /// in: this rank's part.
  void all_gather(std::span<const std::byte> in, std::span<std::byte> out) {
    give(in);
    for (int peer = 0; peer < ranks_; ++peer) {
      const meshwise::Range range = part(out.size(), peer);
      std::memcpy(out.data() + range.begin, take(peer, in), range.size);
    }
    finish(true);
  }

  void all_to_all(std::span<const std::byte> in, std::span<std::byte> out) {
    give(in);
    const std::size_t block = out.size() / index(ranks_);
    for (int peer = 0; peer < ranks_; ++peer) {
      std::memcpy(out.data() + index(peer) * block, take(peer, in) + index(rank_) * block, block);
    }
    finish(true);
  }

  /// Each rank combines its part of all inputs into all outputs.
  void direct_all_reduce(std::span<const float> in, std::span<float> out, bool streaming) {
    Table::Slot& own = table_.slots_[index(rank_)];
    own.input = in.data();
    own.output = out.data();
    ++calls_;
    own.entered.store(2 * calls_, std::memory_order_release);
    const meshwise::Range range = part(out.size(), rank_);
    for (int peer = 0; peer < ranks_; ++peer) {
      await(table_.slots_[index(peer)].entered, 2 * calls_);
      const Table::Slot& slot = table_.slots_[index(peer)];
      sources_[index(peer)] = static_cast<const float*>(slot.input) + range.begin;
      destinations_[index(peer)] = static_cast<float*>(slot.output) + range.begin;
    }
    kernel_(range.size, sources_.data(), ranks_, destinations_.data(), ranks_, streaming);
    own.entered.store(2 * calls_ + 1, std::memory_order_release);
    for (int peer = 0; peer < ranks_; ++peer) await(table_.slots_[index(peer)].entered, 2 * calls_ + 1);
  }

 private:
  static constexpr std::size_t depth = 8;

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  meshwise::Range part(std::size_t count, int rank) const { return meshwise::split(count, index(ranks_), index(rank)); }
  Table::Window& window(int rank) const { return table_.windows_[index(rank) * depth + turn_ % depth]; }

  void await(const std::atomic<std::uint64_t>& word, std::uint64_t value) const {
    if (word.load(std::memory_order_acquire) >= value) return;
    meshwise::detail::Backoff backoff(table_.crowded_);
    while (word.load(std::memory_order_acquire) < value) backoff.pause();
  }

  /// Begins an operation in which this rank gives something.
  void give(std::span<const std::byte> data) {
    ++turn_;
    if (turn_ > depth && settled_ < turn_ - depth) {
      for (int peer = 0; peer < ranks_; ++peer) await(table_.slots_[index(peer)].finished, turn_ - depth);
      settled_ = turn_ - depth;
    }
    Table::Window& own = window(rank_);
    if (!data.empty()) std::memcpy(own.data, data.data(), data.size());
    own.turn.store(turn_, std::memory_order_release);
  }

  const std::byte* take(int peer) const {
    await(window(peer).turn, turn_);
    return window(peer).data;
  }

  /// The same where this rank gives `own`.
  const std::byte* take(int peer, std::span<const std::byte> own) const {
    return peer == rank_ ? own.data() : take(peer);
  }

  void fold(std::span<float> out) const {
    void* to = out.data();
    kernel_(out.size(), sources_.data(), ranks_, &to, 1, false);
  }

  /// heard: this rank has seen that everybody has begun this operation.
  void finish(bool heard) {
    if (heard) settled_ = turn_ - 1;
    table_.slots_[index(rank_)].finished.store(turn_, std::memory_order_release);
  }

  Table& table_;
  int rank_;
  int ranks_;
  std::uint64_t turn_ = 0;
  std::uint64_t settled_ = 0;  ///< everybody has finished this operation
  std::uint64_t calls_ = 0;
  meshwise::Reduce kernel_ = meshwise::reduce_kernel<float, meshwise::Sum>();
  std::array<const void*, most_ranks> sources_{};
  std::array<void*, most_ranks> destinations_{};
};

}  // namespace bench
