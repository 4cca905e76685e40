// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace peers {

/// What is compared. `size` is counted as nccl-tests counts it: of all_gather and gather the whole output, of
/// reduce_scatter, scatter and all_to_all the whole input.
enum class Operation : std::uint32_t {
  all_reduce,
  all_reduce_in_place,
  reduce_scatter,
  reduce,
  broadcast,
  all_gather,
  all_to_all,
  gather,
  scatter,
  send_recv,  ///< one way: rank 0 sends, rank 1 receives
  exchange,   ///< every rank sends to the next one and receives from the one before it, which nccl-tests call sendrecv
  barrier,
};
inline constexpr int operations = 12;

inline constexpr const char* operation_names[operations] = {
    "all_reduce", "all_reduce_in_place", "reduce_scatter", "reduce", "broadcast", "all_gather", "all_to_all", "gather",
    "scatter",    "send_recv",           "exchange",       "barrier"};

constexpr const char* name_of(Operation operation) { return operation_names[static_cast<std::size_t>(operation)]; }

/// operations where there is none of that name.
constexpr int operation_named(std::string_view name) {
  int k = 0;
  while (k < operations && name != operation_names[k]) ++k;
  return k;
}

/// Floats of a block where the operation cuts its vector into one for each rank; at least 1.
constexpr std::size_t block_of(std::size_t bytes, int ranks) {
  const std::size_t count = bytes / sizeof(float) / static_cast<std::size_t>(ranks);
  return count == 0 ? 1 : count;
}

constexpr bool has_blocks(Operation operation) {
  return operation == Operation::reduce_scatter || operation == Operation::all_gather ||
         operation == Operation::all_to_all || operation == Operation::gather || operation == Operation::scatter;
}

/// Floats of the vector that the size counts.
constexpr std::size_t count_of(Operation operation, std::size_t bytes, int ranks) {
  if (operation == Operation::barrier) return 0;
  if (has_blocks(operation)) return block_of(bytes, ranks) * static_cast<std::size_t>(ranks);
  return bytes < sizeof(float) ? 1 : bytes / sizeof(float);
}

/// nccl-tests' factor from the algorithm's to the bus' bandwidth.
constexpr double bus_factor(Operation operation, int ranks) {
  const double n = ranks;
  switch (operation) {
    case Operation::all_reduce:
    case Operation::all_reduce_in_place: return 2 * (n - 1) / n;
    case Operation::reduce_scatter:
    case Operation::all_gather:
    case Operation::all_to_all:
    case Operation::gather:
    case Operation::scatter: return (n - 1) / n;
    default: return 1;
  }
}

/// Bytes that all ranks together have to read and write at least, once each, in memory that all of them address.
constexpr double least_traffic(Operation operation, std::size_t bytes, int ranks) {
  const double n = ranks;
  const double size = static_cast<double>(bytes);
  switch (operation) {
    case Operation::all_reduce:
    case Operation::all_reduce_in_place:
    case Operation::all_to_all:
    case Operation::exchange: return 2 * n * size;
    case Operation::reduce_scatter:
    case Operation::reduce:
    case Operation::all_gather: return (n + 1) * size;
    case Operation::broadcast: return n * size;
    case Operation::gather:
    case Operation::scatter:
    case Operation::send_recv: return 2 * size;
    default: return 0;
  }
}

}  // namespace peers
