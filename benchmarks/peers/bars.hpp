// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "operation.hpp"

namespace peers {

/// How many times faster than the best peer meshwise has to be; 0 where nothing is asked, which is at sizes between
/// the columns. Floats summed, ranks that are processes.
namespace detail_bars {

struct Row {
  double tiny[3];    ///< up to 1 KiB; on 2, 4 and 8 ranks
  double k32[3];     ///< from 32 KiB
  double medium[3];  ///< from 256 KiB to 1 MiB
  double large[3];   ///< from 16 to 256 MiB
};

inline constexpr Row all_reduce{{1.5, 1.1, 1.3}, {5, 2, 2.5}, {4.5, 3.5, 3}, {3, 4, 4}};
inline constexpr Row in_place{{1.5, 1.1, 1.3}, {5, 2, 2.5}, {6, 6, 6}, {4, 5, 5}};
inline constexpr Row reduces{{1.3, 1.0, 1.2}, {4, 1.5, 1.5}, {3.5, 5, 6}, {2.7, 4, 3.5}};
inline constexpr Row broadcast{{1.5, 1.0, 1.0}, {5, 1.5, 1.5}, {4, 4, 4}, {2.5, 2.5, 2.3}};
inline constexpr Row gathers{{1.3, 1.0, 1.0}, {2.5, 1.2, 1.4}, {2, 2.2, 1.5}, {1.5, 1.8, 2}};
inline constexpr Row messages{{1.0, 0, 0}, {2, 0, 0}, {1.7, 0, 0}, {1.7, 0, 0}};

constexpr const Row* row_of(Operation operation) {
  switch (operation) {
    case Operation::all_reduce: return &all_reduce;
    case Operation::all_reduce_in_place: return &in_place;
    case Operation::reduce_scatter:
    case Operation::reduce: return &reduces;
    case Operation::broadcast: return &broadcast;
    case Operation::all_gather:
    case Operation::all_to_all: return &gathers;
    case Operation::send_recv: return &messages;
    default: return nullptr;
  }
}

}  // namespace detail_bars

/// Buffers in the library's heap.
constexpr double registered_bar(Operation operation, int ranks, std::size_t bytes) {
  const detail_bars::Row* const row = detail_bars::row_of(operation);
  const int column = ranks == 2 ? 0 : ranks == 4 ? 1 : ranks == 8 ? 2 : -1;
  if (row == nullptr || column < 0) return 0;
  constexpr std::size_t k = 1024;
  if (bytes <= k) return row->tiny[column];
  if (bytes == 32 * k) return row->k32[column];
  if (bytes >= 256 * k && bytes <= k * k) return row->medium[column];
  if (bytes >= 16 * k * k && bytes <= 256 * k * k) return row->large[column];
  return 0;
}

/// Buffers that the library knows nothing of.
constexpr double foreign_bar(Operation operation, std::size_t bytes) {
  constexpr std::size_t k = 1024;
  switch (operation) {
    case Operation::all_reduce:
    case Operation::all_reduce_in_place:
    case Operation::reduce:
    case Operation::reduce_scatter:
    case Operation::broadcast: return bytes >= k * k ? 1.8 : bytes >= 32 * k ? 1.3 : 1.0;
    case Operation::all_gather:
    case Operation::all_to_all: return bytes >= 32 * k ? 1.1 : 1.0;
    default: return 1.0;
  }
}

enum class Verdict { none, passes, at_the_limit, fails };

constexpr const char* text_of(Verdict verdict) {
  constexpr const char* texts[] = {"-", "pass", "limit", "FAIL"};
  return texts[static_cast<int>(verdict)];
}

/// A point fails only if all of the interval of its ratio lies below the bar and it does not move its bytes at 85 % of
/// what the memory does. bar: 0 for none. high: the upper end of the interval. of_limit: percent of the memory's rate.
constexpr Verdict judge(double bar, double high, double of_limit) {
  if (bar <= 0) return Verdict::none;
  if (high >= bar) return Verdict::passes;
  return of_limit >= 85 ? Verdict::at_the_limit : Verdict::fails;
}

}  // namespace peers
