// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "meshwise/fabric/memory/alarm.hpp"
#include "meshwise/fabric/memory/entry.hpp"
#include "meshwise/fabric/memory/notes.hpp"
#include "meshwise/fabric/memory/windows.hpp"

namespace meshwise::detail {

struct GroupState;
struct Stage;

/// Progress of a rank: the number of its operation above, its step below. It only grows.
inline constexpr int step_bits = 24;
inline constexpr std::uint64_t last_step = (std::uint64_t{1} << step_bits) - 1;  ///< touches nobody's memory any more

constexpr std::uint64_t progress_at(std::uint64_t sequence, std::uint64_t step) { return sequence << step_bits | step; }
constexpr std::uint64_t sequence_of(std::uint64_t progress) { return progress >> step_bits; }
constexpr std::uint64_t step_of(std::uint64_t progress) { return progress & last_step; }

/// What a rank waits for, in one word: another rank, and its progress in an operation, whose number is cut to 24 bits.
struct Awaited {
  static constexpr std::uint64_t anything = 0;         ///< a step: of the operation, nobody knows what
  static constexpr std::uint64_t message = last_step;  ///< a step: a message, in no operation

  int rank = -1;  ///< negative: for nobody
  std::uint64_t sequence = 0;
  std::uint64_t step = anything;

  constexpr std::uint64_t word() const {
    return sequence << 40 | step << 16 | static_cast<std::uint64_t>(static_cast<std::uint16_t>(rank + 1));
  }
  static constexpr Awaited of(std::uint64_t word) {
    return {static_cast<int>(word & 0xffff) - 1, word >> 40, word >> 16 & last_step};
  }
  constexpr bool is_of(std::uint64_t number) const { return (number & last_step) == sequence; }
};

/// What one rank shows to the others. Only its owner writes it.
class alignas(128) MemorySlot {
 public:
  /// resting: between two calls, with a started operation unfinished; touches nobody's memory before it says that it
  /// is here again. left: has seen the error and touches nobody's memory any more; shrinking: and waits for a new
  /// generation. unwinding: gone because of an exception that probably ends the rank, so that the cause will follow.
  enum class State : std::uint8_t { here, resting, left, shrinking, unwinding, gone };

  /// Entries of the last operations: a rank that runs ahead, by as many as there are windows, can still be compared
  /// with.
  static constexpr std::uint64_t kept = 2 * Windows::depth;

  explicit MemorySlot(CallNotes::Pages* pages = nullptr) : notes(pages) {}

  /// Whether the owner may be in a move. Nobody reads it before there is an error: it stays in the owner's cache.
  std::atomic<bool> moving{false};
  alignas(128) std::atomic<std::uint64_t> progress{last_step};
  Alarm alarm;  ///< of those who sleep until the owner has done something; where `progress` is, so that it is at hand
  std::atomic<State> state{State::here};
  std::atomic<GroupState*> offer{nullptr};  ///< during a split: the group that this rank has made for others
  /// What this rank has been waiting for long enough to look around, and when it has looked last. For reports only.
  std::atomic<std::uint64_t> awaits{0};  ///< see Awaited
  std::atomic<std::int64_t> looked{0};
  std::atomic<Stage*> stage{nullptr};  ///< what this rank gives through, where buffers are not addressed by all
  std::atomic<int> parted{0};          ///< ranks that have left and are not taken off the readers of the stage yet
  /// The last operations that this rank has found to be between such buffers, by their numbers modulo: for a rank that
  /// finds the entries gone.
  static constexpr std::uint64_t most_ahead = 4;  ///< operations, see MemoryStaged
  std::array<std::atomic<std::uint64_t>, 2 * most_ahead> foreign{};
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

}  // namespace meshwise::detail
