// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace meshwise::detail {

/// The free parts of a range of numbers. Gives out the smallest part that fits, the lowest among equal ones, and unites
/// neighbours that come back.
///
/// Cost: logarithmic in the number of free parts, but for those parts that are long enough and cannot be aligned.
class FreeRanges {
 public:
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  FreeRanges(std::uint64_t begin, std::uint64_t end) {
    if (begin < end) insert(begin, end - begin);
  }

  /// The begin of a part of so many numbers, which is now taken: a multiple of alignment (a power of two) plus phase;
  /// or `none`. Errors: std::bad_alloc, and nothing is taken.
  std::uint64_t take(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t phase) {
    for (auto it = by_size_.lower_bound({bytes, 0}); it != by_size_.end(); ++it) {
      const auto [size, begin] = *it;
      const std::uint64_t skip = (phase - begin) & (alignment - 1);
      if (skip > size - bytes) continue;
      const std::uint64_t at = begin + skip, rest = size - bytes - skip;
      if (rest != 0) insert(at + bytes, rest);
      auto node = by_size_.extract(it);
      if (skip == 0) {
        by_begin_.erase(begin);
      } else {
        by_begin_.find(begin)->second = skip;
        node.value() = {skip, begin};
        by_size_.insert(std::move(node));
      }
      return at;
    }
    return none;
  }

  /// Takes a part back. Without memory for the books the part is lost.
  void put(std::uint64_t begin, std::uint64_t bytes) noexcept {
    try {
      auto next = by_begin_.lower_bound(begin);
      if (next != by_begin_.end() && next->first == begin + bytes) {
        bytes += next->second;
        by_size_.erase({next->second, next->first});
        next = by_begin_.erase(next);
      }
      if (next != by_begin_.begin()) {
        const auto before = std::prev(next);
        if (before->first + before->second == begin) {
          begin = before->first;
          bytes += before->second;
          by_size_.erase({before->second, before->first});
          by_begin_.erase(before);
        }
      }
      insert(begin, bytes);
    } catch (...) {}
  }

  /// How many free parts there are.
  std::size_t parts() const { return by_begin_.size(); }

 private:
  void insert(std::uint64_t begin, std::uint64_t bytes) {
    const auto [it, added] = by_begin_.insert({begin, bytes});
    try {
      by_size_.insert({bytes, begin});
    } catch (...) {
      by_begin_.erase(it);
      throw;
    }
  }

  std::map<std::uint64_t, std::uint64_t> by_begin_;            ///< begin to size
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  ///< (size, begin)
};

}  // namespace meshwise::detail
