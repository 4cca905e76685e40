// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/schedule/detail/candidate.hpp"
#include "meshwise/schedule/question.hpp"

namespace meshwise::detail {

/// The latest choices for the questions of one group, at most 512 of them. Questions of one size class are the same.
class ChoiceMemo {
 public:
  /// What was chosen; null if it is not known (any more). Cost: no allocation.
  const Choice* find(const Question& question) const {
    if (entries_.empty()) return nullptr;
    const std::uint64_t key = pack(question);
    const std::size_t first = hash(key);
    for (std::size_t k = 0; k < probes; ++k) {
      const Entry& entry = entries_[(first + k) % size];
      if (entry.key == key) return &entry.choice;
    }
    return nullptr;
  }

  void keep(const Question& question, const Choice& choice) {
    if (entries_.empty()) entries_.resize(size);
    const std::uint64_t key = pack(question);
    const std::size_t first = hash(key);
    std::size_t at = first;
    for (std::size_t k = 0; k < probes; ++k) {
      if (entries_[(first + k) % size].key != empty) continue;
      at = (first + k) % size;
      break;
    }
    entries_[at] = Entry{key, choice};
  }

 private:
  static constexpr std::size_t size = 512;
  static constexpr std::size_t probes = 8;
  static constexpr std::uint64_t empty = ~std::uint64_t{0};

  struct Entry {
    std::uint64_t key = empty;
    Choice choice;
  };

  static std::size_t hash(std::uint64_t key) { return static_cast<std::size_t>(key * 0x9e3779b97f4a7c15 >> 32) % size; }

  /// A question in 64 bits, never all of them set: there are fewer operations. What is out of range is cut off or
  /// shares a key with nothing that can be chosen.
  static std::uint64_t pack(const Question& question) {
    constexpr std::uint64_t largest = ~std::uint64_t{0} >> 1;  // of the last class but one: nobody has so many bytes
    std::uint64_t key = 0;
    const auto put = [&key](int bits, std::uint64_t value) { key = key << bits | (value & ((1ULL << bits) - 1)); };
    put(31, static_cast<std::uint64_t>(question.shape.root));
    put(4, static_cast<std::uint64_t>(question.shape.operation));
    put(1, question.shape.in_place);
    put(6, static_cast<std::uint64_t>(size_class(question.bytes < largest ? question.bytes : largest)));
    put(1, question.memory);
    put(1, question.foreign);
    put(1, question.narrow);
    put(1, question.commutative);
    put(1, question.reproducible);
    put(1, question.one_round);
    put(5, static_cast<std::uint64_t>(question.wanted));
    put(11, question.lanes < 0 || question.lanes > 1024 ? 2047 : static_cast<std::uint64_t>(question.lanes));
    return key;
  }

  List<Entry> entries_;
};

}  // namespace meshwise::detail
