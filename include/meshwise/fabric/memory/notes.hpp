// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "meshwise/collective/call.hpp"

namespace meshwise::detail {

/// Whether a call has details that a rank notes down: what two calls can differ in beyond what an entry says.
inline bool noted(const Call& call) {
  return call.begins != nullptr || (call.algorithm == Algorithm::custom && call.generator.parametrised());
}

/// The details of one rank's last calls, for the errors of others: where blocks were cut, and the parameters of a
/// caller's own algorithm. Written by its owner only.
class CallNotes {
  static constexpr std::size_t kept = 16;      ///< calls
  static constexpr std::size_t most = 16;      ///< ranks whose counts are noted
  static constexpr std::size_t letters = 128;  ///< of a description, the rest is cut off
  static constexpr std::size_t words = 2 * most + letters / 8;

  struct Page {
    std::atomic<std::uint64_t> sequence{0};
    std::array<std::atomic<std::uint64_t>, words> word{};
  };

 public:
  /// The details of the last calls.
  class Pages {
    friend class CallNotes;
    std::array<Page, kept> page{};
  };

  /// pages: in memory that all ranks address, of the size of Pages; null: nothing is noted.
  explicit CallNotes(Pages* pages = nullptr) : pages_(pages) {}

  /// Before the owner's entry of operation `sequence` is visible.
  void write(std::uint64_t sequence, const Call& call) {
    Pages* const pages = pages_;
    if (pages == nullptr) return;
    Page& page = pages->page[sequence % kept];
    page.sequence.store(0, std::memory_order_relaxed);
    std::size_t at = 0;
    const auto put = [&](std::uint64_t word) { page.word[at++].store(word, std::memory_order_release); };
    for (const std::size_t* const begins : {call.begins, call.begins_after}) {
      for (std::size_t b = 0; b < most; ++b) {
        const bool there = begins != nullptr && b < static_cast<std::size_t>(call.shape.ranks);
        put(there ? begins[b + 1] - begins[b] : 0);
      }
    }
    const bool own = call.algorithm == Algorithm::custom && call.generator.parametrised();
    const std::string text = own ? call.generator.description() : std::string();
    for (std::size_t first = 0; first < letters; first += 8) {
      std::uint64_t word = 0;
      for (std::size_t i = first; i < first + 8 && i < text.size(); ++i) {
        word |= std::uint64_t{static_cast<unsigned char>(text[i])} << 8 * (i - first);
      }
      put(word);
    }
    page.sequence.store(sequence, std::memory_order_release);
  }

  /// In what the noted calls of operation `sequence` of two ranks differ, in words; empty if in nothing that is known.
  static std::string difference(const CallNotes& mine, const CallNotes& theirs, std::uint64_t sequence, int rank,
                                int peer) {
    Copy a, b;
    if (!mine.read(sequence, a) || !theirs.read(sequence, b)) return {};
    const std::string me = "rank " + std::to_string(rank), other = "rank " + std::to_string(peer);
    if (const std::string one = text(a), two = text(b); one != two) {
      return "the parameters of the algorithm: " + me + " has " + one + ", " + other + " has " + two;
    }
    for (std::size_t i = 0; i < 2 * most; ++i) {
      if (a[i] == b[i]) continue;
      return "the counts: " + me + " says that the part of rank " + std::to_string(i % most) + " has " +
             std::to_string(a[i]) + " elements" + (i < most ? "" : " afterwards") + ", " + other + " says " +
             std::to_string(b[i]);
    }
    return {};
  }

 private:
  using Copy = std::array<std::uint64_t, words>;

  bool read(std::uint64_t sequence, Copy& copy) const {
    const Pages* const pages = pages_;
    if (pages == nullptr) return false;
    const Page& page = pages->page[sequence % kept];
    if (page.sequence.load(std::memory_order_acquire) != sequence) return false;
    for (std::size_t i = 0; i < words; ++i) copy[i] = page.word[i].load(std::memory_order_acquire);
    return page.sequence.load(std::memory_order_relaxed) == sequence;
  }

  static std::string text(const Copy& copy) {
    std::string result;
    for (std::size_t i = 0; i < letters; ++i) {
      const auto letter = static_cast<char>(copy[2 * most + i / 8] >> 8 * (i % 8) & 0xff);
      if (letter == 0) break;
      result += letter;
    }
    return result;
  }

  Pages* pages_;
};

}  // namespace meshwise::detail
