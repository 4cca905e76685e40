// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "meshwise/collective/detail/arguments.hpp"
#include "meshwise/collective/detail/request.hpp"
#include "meshwise/core/error.hpp"

namespace meshwise::detail {

[[noreturn]] inline void refuse_number_of_counts(const char* verb, const char* which, int ranks, std::size_t found,
                                                 int rank) {
  fail(verb, std::string("a ") + which + " for each of " + std::to_string(ranks) + " ranks", std::to_string(found),
       "pass a span with one number for each rank of this communicator", rank);
}

/// Appends where blocks of these sizes begin, and where the last one ends, to `offsets`; returns the end.
inline std::size_t append_offsets(std::vector<std::size_t>& offsets, std::span<const std::size_t> counts,
                                  const char* verb, const char* which, int ranks, int rank) {
  if (counts.size() != static_cast<std::size_t>(ranks)) {
    refuse_number_of_counts(verb, which, ranks, counts.size(), rank);
  }
  std::size_t end = 0;
  offsets.push_back(end);
  for (const std::size_t count : counts) {
    if (end + count < end) {
      fail(verb, std::string("a sum of all ") + which + "s below 2^64",
           std::to_string(end) + " + " + std::to_string(count), "pass the sizes of the blocks", rank);
    }
    end += count;
    offsets.push_back(end);
  }
  return end;
}

/// The counts of blocks and their sum: "3 + 0 + 2 = 5".
inline std::string sum_text(const std::size_t* begins, int ranks) {
  constexpr int most = 16;
  std::string text;
  for (int rank = 0; rank < ranks && rank < most; ++rank) {
    text += (rank > 0 ? " + " : "") + std::to_string(begins[rank + 1] - begins[rank]);
  }
  if (ranks > most) text += " + ... (" + std::to_string(ranks) + " counts)";
  return text + " = " + std::to_string(begins[ranks] - begins[0]);
}

/// Refuses a span that is not as long as the counts of its blocks say. what: the span; which: the counts.
inline void require_sum(const char* verb, const char* what, const char* which, const std::size_t* begins, int ranks,
                        std::size_t found, int rank) {
  if (begins[ranks] - begins[0] == found) return;
  fail(verb, std::string(what) + ": " + sum_text(begins, ranks) + " elements", std::to_string(found),
       std::string("pass ") + which + "s that add up to the length of that span, or another span", rank);
}

/// The blocks of a vector that is cut where the caller says, the same on all ranks.
struct Ragged {
  const std::size_t* begins;
  std::size_t total;
  int ranks;
  bool empty_somewhere;  ///< whether a block has no elements

  std::size_t begin(int rank) const { return begins[rank]; }
  std::size_t size(int rank) const { return begins[rank + 1] - begins[rank]; }
};

/// Keeps the blocks in the request's workspace. Before `Request::describe`.
inline Ragged keep_blocks(Request& request, std::span<const std::size_t> counts) {
  std::vector<std::size_t>& offsets = request.workspace().offsets;
  offsets.clear();
  offsets.reserve(counts.size() + 1);
  const std::size_t total = append_offsets(offsets, counts, request.verb(), "count", request.size(), request.rank());
  bool empty = false;
  for (const std::size_t count : counts) empty = empty || count == 0;
  return {offsets.data(), total, request.size(), empty};
}

/// Makes them the call's regions, on which all ranks must agree. After `Request::describe`.
inline void use_blocks(Request& request, const Ragged& blocks) {
  request.call.regions = Regions{&ragged_region, blocks.begins, 0, true};
  request.call.begins = blocks.begins;
  for (int rank = 0; rank < request.size(); ++rank) request.agree(blocks.size(rank));
}

/// The blocks of a vector in equal parts, with the same interface.
struct EqualParts {
  std::size_t total;
  int ranks;
  bool empty_somewhere;

  EqualParts(std::size_t count, int group)
      : total(count), ranks(group), empty_somewhere(count < static_cast<std::size_t>(group)) {}
  std::size_t begin(int rank) const { return rank_part(total, ranks, rank).begin; }
  std::size_t size(int rank) const { return rank_part(total, ranks, rank).size; }
};

inline void use_blocks(Request&, const EqualParts&) {}

/// Refuses a whole vector, or the block of this rank, that is not as long as it should be.
inline void require_whole(const Request& request, const char* what, const Ragged& blocks, std::size_t found) {
  require_sum(request.verb(), what, "count", blocks.begins, blocks.ranks, found, request.rank());
}
inline void require_whole(const Request& request, const char* what, const EqualParts& blocks, std::size_t found) {
  require_count(request.verb(), what, blocks.total, found, request.rank());
}
inline void require_block(const Request& request, const char* what, const Ragged& blocks, std::size_t found) {
  const int rank = request.rank();
  if (blocks.size(rank) == found) return;
  const std::string count = "counts[" + std::to_string(rank) + "]";
  fail(request.verb(), std::string(what) + ": " + std::to_string(blocks.size(rank)) + " elements, which is " + count,
       std::to_string(found), "pass a span of that length, or another " + count + " on all ranks", rank);
}
inline void require_block(const Request& request, const char* what, const EqualParts& blocks, std::size_t found) {
  require_count(request.verb(), what, blocks.size(request.rank()), found, request.rank());
}

}  // namespace meshwise::detail
