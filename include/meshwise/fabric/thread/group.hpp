// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "meshwise/collective/call.hpp"
#include "meshwise/fabric/poison.hpp"
#include "meshwise/fabric/thread/inbox.hpp"
#include "meshwise/fabric/thread/job.hpp"

namespace meshwise::detail {

/// Progress of a rank: the number of its operation above, its step below. It only grows.
inline constexpr int step_bits = 24;
inline constexpr std::uint64_t last_step = (std::uint64_t{1} << step_bits) - 1;  ///< touches nobody's memory any more

constexpr std::uint64_t progress_at(std::uint64_t sequence, std::uint64_t step) { return sequence << step_bits | step; }
constexpr std::uint64_t sequence_of(std::uint64_t progress) { return progress >> step_bits; }
constexpr std::uint64_t step_of(std::uint64_t progress) { return progress & last_step; }

/// What a rank publishes when it enters an operation: the call, as far as all ranks must agree, and its buffers.
struct Entry {
  enum Word : std::size_t { kind, element_size, count, signature, verb, input, output, scratch, words };

  std::array<std::uint64_t, words> word{};

  static Entry of(const Call& call, const void* scratch_memory) {
    Entry entry;
    entry.word[kind] =
        static_cast<std::uint64_t>(call.shape.operation) | static_cast<std::uint64_t>(call.shape.in_place) << 7 |
        static_cast<std::uint64_t>(call.element) << 8 | static_cast<std::uint64_t>(call.reduction) << 16 |
        static_cast<std::uint64_t>(call.algorithm) << 24 |
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(call.shape.root)) << 32;
    entry.word[element_size] = call.element_size;
    entry.word[count] = call.count;
    entry.word[signature] = call.signature;
    entry.word[verb] = reinterpret_cast<std::uintptr_t>(call.verb);
    entry.word[input] = reinterpret_cast<std::uintptr_t>(call.input);
    entry.word[output] = reinterpret_cast<std::uintptr_t>(call.output);
    entry.word[scratch] = reinterpret_cast<std::uintptr_t>(scratch_memory);
    return entry;
  }

  template <class T>
  T* pointer(Word which) const {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(word[which]));
  }

  bool agrees(const Entry& other) const {
    return word[kind] == other.word[kind] && word[element_size] == other.word[element_size] &&
           word[count] == other.word[count] && word[signature] == other.word[signature];
  }

  Operation operation() const { return static_cast<Operation>(word[kind] & 0x7f); }
  bool in_place() const { return (word[kind] >> 7 & 1) != 0; }
  ElementKind element() const { return static_cast<ElementKind>(word[kind] >> 8 & 0xff); }
  ReductionKind reduction() const { return static_cast<ReductionKind>(word[kind] >> 16 & 0xff); }
  Algorithm algorithm() const { return static_cast<Algorithm>(word[kind] >> 24 & 0xff); }
  int root() const { return static_cast<int>(word[kind] >> 32); }

  bool is_barrier() const { return word[signature] == barrier_signature; }

  /// The call in words, such as "all_reduce(1000 x f32, sum, in place)".
  std::string describe() const {
    if (is_barrier()) return std::string(pointer<const char>(verb)) + "()";
    std::string text = std::string(pointer<const char>(verb)) + "(" + std::to_string(word[count]) + " x ";
    if (word[element_size] == meshwise::element_size(element())) {
      text += element_name(element());
    } else {
      text += std::to_string(word[element_size]) + " bytes";
    }
    if (reduction() != ReductionKind::none) text += std::string(", ") + reduction_name(reduction());
    if (operation() == Operation::broadcast) text += ", root " + std::to_string(root());
    if (in_place() && operation() != Operation::broadcast) text += ", in place";
    if (algorithm() != Algorithm::direct) text += std::string(", ") + algorithm_name(algorithm());
    return text + ")";
  }

  /// In what two calls differ: the first of the things that must agree.
  static const char* difference(const Entry& a, const Entry& b) {
    if (a.operation() != b.operation() || a.is_barrier() != b.is_barrier()) return "the operation";
    if (a.element() != b.element() || a.word[element_size] != b.word[element_size]) return "the element type";
    if (a.reduction() != b.reduction()) return "the reduction";
    if (a.word[count] != b.word[count]) return "the count";
    if (a.root() != b.root()) return "the root";
    if (a.in_place() != b.in_place()) return "in place or not";
    if (a.algorithm() != b.algorithm()) return "the algorithm";
    return "the extents or the layout, or in the function that was called";
  }
};

class ThreadGroup;

/// What one rank shows to the others. Only its owner writes it.
struct alignas(128) ThreadSlot {
  /// left: has seen the error and touches nobody's memory any more. unwinding: gone because of an exception that
  /// probably ends the rank, so that the cause will follow.
  enum class State : std::uint8_t { here, left, unwinding, gone };

  /// Entries of the last operations: a rank that runs ahead can still be compared with.
  static constexpr std::uint64_t kept = 8;

  std::atomic<std::uint64_t> progress{last_step};
  std::atomic<State> state{State::here};
  std::shared_ptr<ThreadGroup> offer;  ///< during a split: the group that this rank has made for others
  alignas(64) std::array<std::array<std::atomic<std::uint64_t>, Entry::words>, kept> entries{};

  /// Called by the owner before it publishes progress in `sequence`.
  void write(std::uint64_t sequence, const Entry& entry) {
    auto& words = entries[sequence % kept];
    for (std::size_t i = 0; i < Entry::words; ++i) words[i].store(entry.word[i], std::memory_order_release);
  }

  /// The owner's entry of operation `sequence`; false if it has not entered it, or has left it long ago.
  bool read(std::uint64_t sequence, Entry& entry) const {
    if (sequence_of(progress.load(std::memory_order_acquire)) < sequence) return false;
    const auto& words = entries[sequence % kept];
    for (std::size_t i = 0; i < Entry::words; ++i) entry.word[i] = words[i].load(std::memory_order_acquire);
    // The owner overwrites these words after it has finished operation sequence + kept - 1. Having read one of the new
    // words means to see that progress here.
    return sequence_of(progress.load(std::memory_order_relaxed)) + 1 < sequence + kept;
  }
};

/// What the ranks of one communicator share.
class ThreadGroup {
 public:
  static std::shared_ptr<ThreadGroup> make(const std::shared_ptr<ThreadJob>& job, int size, bool messages) {
    auto group = std::make_shared<ThreadGroup>(job, size, messages);
    job->watch(group->poison_);
    return group;
  }

  ThreadGroup(std::shared_ptr<ThreadJob> job, int size, bool messages)
      : job_(std::move(job)),
        size_(size),
        messages_(messages),
        poison_(std::make_shared<Poison>()),
        slots_(new ThreadSlot[static_cast<std::size_t>(size)]),
        inboxes_(new Inbox[static_cast<std::size_t>(size)]) {}

  const std::shared_ptr<ThreadJob>& job() const { return job_; }
  int size() const { return size_; }
  bool messages() const { return messages_; }
  Poison& poison() { return *poison_; }
  ThreadSlot& slot(int rank) { return slots_[static_cast<std::size_t>(rank)]; }
  Inbox& inbox(int rank) { return inboxes_[static_cast<std::size_t>(rank)]; }

 private:
  std::shared_ptr<ThreadJob> job_;
  int size_;
  bool messages_;
  std::shared_ptr<Poison> poison_;
  std::unique_ptr<ThreadSlot[]> slots_;
  std::unique_ptr<Inbox[]> inboxes_;
};

}  // namespace meshwise::detail
