// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "meshwise/collective/call.hpp"
#include "meshwise/fabric/poison.hpp"
#include "meshwise/fabric/thread/inbox.hpp"
#include "meshwise/fabric/thread/job.hpp"
#include "meshwise/fabric/thread/notes.hpp"
#include "meshwise/fabric/thread/windows.hpp"
#include "meshwise/schedule/contract.hpp"
#include "meshwise/topology/topology.hpp"

namespace meshwise::detail {

/// Progress of a rank: the number of its operation above, its step below. It only grows.
inline constexpr int step_bits = 24;
inline constexpr std::uint64_t last_step = (std::uint64_t{1} << step_bits) - 1;  ///< touches nobody's memory any more

constexpr std::uint64_t progress_at(std::uint64_t sequence, std::uint64_t step) { return sequence << step_bits | step; }
constexpr std::uint64_t sequence_of(std::uint64_t progress) { return progress >> step_bits; }
constexpr std::uint64_t step_of(std::uint64_t progress) { return progress & last_step; }

/// What a rank publishes when it enters an operation: the call, as far as all ranks must agree, and its buffers.
///
/// The first line of words is all that most calls need; the others are read and written only where `kind` says so.
struct Entry {
  enum Word : std::size_t { kind, sizes, count, signature, input, output, scratch, verb, context, generator, words };
  static constexpr std::size_t hot = verb;  ///< words of the first line, which begins with a sequence number

  std::array<std::uint64_t, words> word{};
  const Call* notes = nullptr;  ///< while the own call is written down: where its details are

  /// history: of the calls before, for those that not all ranks have compared; part of the signature.
  static Entry of(const Call& call, const void* scratch_memory, std::uint64_t history = 0) {
    Entry entry;
    entry.set(call, scratch_memory, history);
    return entry;
  }

  /// The same into this one, word by word: a copy of words just written would wait for them.
  void set(const Call& call, const void* scratch_memory, std::uint64_t history) {
    const bool own_context = call.regions.own_bytes > 0;
    const bool custom = call.algorithm == Algorithm::custom;
    word[kind] = kind_of(call);
    word[sizes] = sizes_of(call);
    word[count] = call.count;
    word[signature] = call.signature ^ history;
    word[verb] = reinterpret_cast<std::uintptr_t>(call.verb);
    word[input] = reinterpret_cast<std::uintptr_t>(call.input);
    word[output] = reinterpret_cast<std::uintptr_t>(call.output);
    word[scratch] = reinterpret_cast<std::uintptr_t>(scratch_memory);
    word[context] = own_context ? reinterpret_cast<std::uintptr_t>(call.regions.context) : 0;
    word[generator] = custom ? reinterpret_cast<std::uintptr_t>(call.generator.name) : 0;
    notes = more() && noted(call) ? &call : nullptr;
  }

  /// A hash of what must agree. Two short chains of multiplications instead of a long one.
  static std::uint64_t digest(const Call& call) {
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U, other = 0xbf58476d1ce4e5b9U;
    const std::uint64_t a = (kind_of(call) * odd) ^ call.count;
    const std::uint64_t b = (call.signature * other) ^ sizes_of(call);
    return (a ^ a >> 32) * other + (b ^ b >> 29) * odd;
  }

  template <class T>
  T* pointer(Word which) const {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(word[which]));
  }

  /// Whether two calls may meet. What a custom generator is called is part of the signature.
  bool agrees(const Entry& other) const {
    return word[kind] == other.word[kind] && word[sizes] == other.word[sizes] && word[count] == other.word[count] &&
           word[signature] == other.word[signature];
  }

  Operation operation() const {
    return is_barrier() ? Operation::all_reduce : static_cast<Operation>(operation_bits());
  }
  bool reproducible() const { return (word[kind] >> 5 & 1) != 0; }
  bool more() const { return more(word[kind]); }
  static bool more(std::uint64_t kind_word) { return (kind_word >> 6 & 1) != 0; }
  bool in_place() const { return (word[kind] >> 7 & 1) != 0; }
  ElementKind element() const { return static_cast<ElementKind>(word[kind] >> 8 & 0xff); }
  ReductionKind reduction() const { return static_cast<ReductionKind>(word[kind] >> 16 & 0xff); }
  Algorithm algorithm() const { return static_cast<Algorithm>(word[kind] >> 24 & 0xff); }
  int root() const { return static_cast<int>(word[kind] >> 32); }
  std::uint64_t element_size() const { return word[sizes] & 0xffff'ffff'ffff; }
  int lanes() const { return static_cast<int>(word[sizes] >> 48); }

  /// The algorithm that was asked for, a custom one by the name of its generator.
  const char* algorithm_word() const {
    const char* const custom = pointer<const char>(generator);
    return algorithm() == Algorithm::custom && custom != nullptr ? custom : algorithm_name(algorithm());
  }

  bool is_barrier() const { return operation_bits() == barrier_bits; }

  /// The call in words, such as "all_reduce(1000 x f32, sum, in place)".
  std::string describe() const {
    if (is_barrier()) return std::string(pointer<const char>(verb)) + "()";
    std::string text = std::string(pointer<const char>(verb)) + "(" + std::to_string(word[count]) + " x ";
    if (element_size() == meshwise::element_size(element())) {
      text += element_name(element());
    } else {
      text += std::to_string(element_size()) + " bytes";
    }
    if (reduction() != ReductionKind::none) text += std::string(", ") + reduction_name(reduction());
    if (rooted(operation())) text += ", root " + std::to_string(root());
    if (in_place() && !rooted(operation())) text += ", in place";
    if (algorithm() != Algorithm::automatic) text += std::string(", ") + algorithm_word();
    if (lanes() != 0) text += ", " + std::to_string(lanes()) + (lanes() == 1 ? " lane" : " lanes");
    if (reproducible()) text += ", reproducible";
    return text + ")";
  }

  /// Whether two calls are the same but for what notes or counts can tell.
  static bool nearly_agree(const Entry& a, const Entry& b) {
    return a.word[kind] == b.word[kind] && a.word[sizes] == b.word[sizes];
  }

  /// In what two calls differ: the first of the things that must agree.
  static const char* difference(const Entry& a, const Entry& b) {
    if (a.operation() != b.operation() || a.is_barrier() != b.is_barrier()) return "the operation";
    if (a.element() != b.element() || a.element_size() != b.element_size()) return "the element type";
    if (a.reduction() != b.reduction()) return "the reduction";
    if (a.word[count] != b.word[count]) return "the count";
    if (a.root() != b.root()) return "the root";
    if (a.in_place() != b.in_place()) return "in place or not";
    if (a.algorithm() != b.algorithm()) return "the algorithm";
    if (std::strcmp(a.algorithm_word(), b.algorithm_word()) != 0) return "the algorithm";
    if (a.lanes() != b.lanes()) return "the lanes";
    if (a.reproducible() != b.reproducible()) return "reproducible or not";
    return "the extents, the counts or the layout, or in the function that was called, or in its options";
  }

 private:
  static constexpr std::uint64_t barrier_bits = 0x1f;  // no operation

  static std::uint64_t kind_of(const Call& call) {
    const bool more = call.regions.own_bytes > 0 || call.algorithm == Algorithm::custom || call.begins != nullptr;
    return (call.signature == barrier_signature ? barrier_bits : static_cast<std::uint64_t>(call.shape.operation)) |
           static_cast<std::uint64_t>(call.reproducible) << 5 | static_cast<std::uint64_t>(more) << 6 |
           static_cast<std::uint64_t>(call.shape.in_place) << 7 | static_cast<std::uint64_t>(call.element) << 8 |
           static_cast<std::uint64_t>(call.reduction) << 16 | static_cast<std::uint64_t>(call.algorithm) << 24 |
           static_cast<std::uint64_t>(static_cast<std::uint32_t>(call.shape.root)) << 32;
  }
  static std::uint64_t sizes_of(const Call& call) {
    return call.element_size | static_cast<std::uint64_t>(call.lanes) << 48;
  }

  std::uint64_t operation_bits() const { return word[kind] & 0x1f; }
};

class ThreadGroup;

/// What one rank shows to the others. Only its owner writes it.
class alignas(128) ThreadSlot {
 public:
  /// resting: between two calls, with a started operation unfinished; touches nobody's memory before it says that it
  /// is here again. left: has seen the error and touches nobody's memory any more. unwinding: gone because of an
  /// exception that probably ends the rank, so that the cause will follow.
  enum class State : std::uint8_t { here, resting, left, unwinding, gone };

  /// Entries of the last operations: a rank that runs ahead, by as many as there are windows, can still be compared
  /// with.
  static constexpr std::uint64_t kept = 2 * Windows::depth;

  /// Whether the owner may be in a move. Nobody reads it before there is an error: it stays in the owner's cache.
  std::atomic<bool> moving{false};
  alignas(128) std::atomic<std::uint64_t> progress{last_step};
  std::atomic<State> state{State::here};
  std::shared_ptr<ThreadGroup> offer;  ///< during a split: the group that this rank has made for others
  CallNotes notes;
  /// A hash of all calls of this rank, once it has left in peace; 0 before.
  std::atomic<std::uint64_t> farewell{0};

  /// Called by the owner before it publishes progress in `sequence`: readers see it by `entered` already.
  void write(std::uint64_t sequence, const Entry& entry) {
    Line& row = lines_[sequence % kept];
    row.entered.store(0, std::memory_order_relaxed);
    if (entry.notes != nullptr) notes.write(sequence, *entry.notes);
    put(row, entry, std::make_index_sequence<Entry::hot>());
    auto& others = rest_[sequence % kept];
    const std::size_t end = entry.more() ? Entry::words : Entry::verb + 1;
    for (std::size_t i = Entry::hot; i < end; ++i) {
      others[i - Entry::hot].store(entry.word[i], std::memory_order_release);
    }
    row.entered.store(sequence, std::memory_order_release);
  }

  /// Whether the owner has entered operation `sequence`. What it has entered lies beside the word that says so.
  bool entered(std::uint64_t sequence) const {
    return lines_[sequence % kept].entered.load(std::memory_order_acquire) >= sequence;
  }

  enum class Met { later, other, same };

  /// Compares a call with the owner's entry of operation `sequence`, which it has entered, and learns its buffers where
  /// the calls agree. later: the owner has left the operation long ago.
  Met meet(std::uint64_t sequence, const Entry& mine, std::array<std::uint64_t, 4>& buffers) const {
    const Line& row = lines_[sequence % kept];
    if (row.entered.load(std::memory_order_acquire) != sequence) return Met::later;
    const auto word = [&](std::size_t i) { return row.word[i].load(std::memory_order_acquire); };
    const bool same = word(Entry::kind) == mine.word[Entry::kind] && word(Entry::sizes) == mine.word[Entry::sizes] &&
                      word(Entry::count) == mine.word[Entry::count] &&
                      word(Entry::signature) == mine.word[Entry::signature];
    buffers[0] = word(Entry::input);
    buffers[1] = word(Entry::output);
    buffers[2] = word(Entry::scratch);
    buffers[3] = mine.more() ? rest_[sequence % kept][Entry::context - Entry::hot].load(std::memory_order_acquire) : 0;
    if (row.entered.load(std::memory_order_relaxed) != sequence) return Met::later;
    return same ? Met::same : Met::other;
  }

  /// The owner's entry of operation `sequence`; false if it has not entered it, or has left it long ago.
  bool read(std::uint64_t sequence, Entry& entry) const {
    const Line& row = lines_[sequence % kept];
    if (row.entered.load(std::memory_order_acquire) != sequence) return false;
    for (std::size_t i = 0; i < Entry::hot; ++i) entry.word[i] = row.word[i].load(std::memory_order_acquire);
    const auto& others = rest_[sequence % kept];
    for (std::size_t i = Entry::hot; i < Entry::words; ++i) {
      const bool written = i == Entry::verb || entry.more();
      entry.word[i] = written ? others[i - Entry::hot].load(std::memory_order_acquire) : 0;
    }
    // Having read a word of a later entry means to see that the line was given up before.
    return row.entered.load(std::memory_order_relaxed) == sequence;
  }

 private:
  struct alignas(64) Line {
    std::atomic<std::uint64_t> entered{0};
    std::array<std::atomic<std::uint64_t>, Entry::hot> word{};
  };
  static_assert(sizeof(Line) == 64);

  /// Without a loop, which compilers keep where words are atomic.
  template <std::size_t... words>
  static void put(Line& row, const Entry& entry, std::index_sequence<words...>) {
    (row.word[words].store(entry.word[words], std::memory_order_release), ...);
  }

  std::array<Line, kept> lines_{};
  std::array<std::array<std::atomic<std::uint64_t>, Entry::words - Entry::hot>, kept> rest_{};
};

/// What the ranks of one communicator share.
class ThreadGroup {
 public:
  /// topology: of as many ranks as the group has.
  static std::shared_ptr<ThreadGroup> make(const std::shared_ptr<ThreadJob>& job, Topology topology, bool messages) {
    auto group = std::make_shared<ThreadGroup>(job, std::move(topology), messages);
    job->watch(group->poison_);
    return group;
  }

  ThreadGroup(std::shared_ptr<ThreadJob> job, Topology topology, bool messages)
      : job_(std::move(job)),
        topology_(std::move(topology)),
        messages_(messages),
        poison_(std::make_shared<Poison>()),
        slots_(new ThreadSlot[static_cast<std::size_t>(size())]),
        inboxes_(new Inbox[static_cast<std::size_t>(size())]),
        windows_(size(), messages ? 0 : Windows::useful(size(), job_->crowded())) {}

  const std::shared_ptr<ThreadJob>& job() const { return job_; }
  int size() const { return topology_.ranks(); }
  const Topology& topology() const { return topology_; }
  bool messages() const { return messages_; }
  Poison& poison() { return *poison_; }
  ThreadSlot& slot(int rank) { return slots_[static_cast<std::size_t>(rank)]; }
  Windows& windows() { return windows_; }
  Inbox& inbox(int rank) { return inboxes_[static_cast<std::size_t>(rank)]; }

 private:
  std::shared_ptr<ThreadJob> job_;
  Topology topology_;
  bool messages_;
  std::shared_ptr<Poison> poison_;
  std::unique_ptr<ThreadSlot[]> slots_;
  std::unique_ptr<Inbox[]> inboxes_;
  Windows windows_;
};

}  // namespace meshwise::detail
