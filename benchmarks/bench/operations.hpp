// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace harness {

/// What is measured. The order is that of the names.
enum class Verb : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  all_to_all_v,
  send_recv,
  barrier,
};
inline constexpr int verb_count = static_cast<int>(Verb::barrier) + 1;
inline constexpr const char* verb_names[verb_count] = {"all_reduce",   "reduce_scatter", "all_gather", "broadcast",
                                                       "reduce",       "gather",         "scatter",    "all_to_all",
                                                       "all_to_all_v", "send_recv",      "barrier"};

constexpr const char* verb_name(Verb verb) { return verb_names[static_cast<std::size_t>(verb)]; }

constexpr bool parse_verb(std::string_view name, Verb& verb) {
  for (int k = 0; k < verb_count; ++k) {
    if (name != verb_names[k]) continue;
    verb = static_cast<Verb>(k);
    return true;
  }
  return false;
}

constexpr bool combines(Verb verb) {
  return verb == Verb::all_reduce || verb == Verb::reduce_scatter || verb == Verb::reduce;
}
constexpr bool has_root(Verb verb) {
  return verb == Verb::broadcast || verb == Verb::reduce || verb == Verb::gather || verb == Verb::scatter;
}
/// Whether the library lets the caller name an algorithm.
constexpr bool has_algorithms(Verb verb) { return verb < Verb::all_to_all_v; }
constexpr bool has_out_of_place(Verb verb) { return verb != Verb::broadcast; }
constexpr bool has_in_place(Verb verb) {
  return verb < Verb::all_to_all;  // a barrier is neither, and counts as out of place
}

/// How many elements of how many ranks a point is about.
struct Extent {
  std::size_t count = 0;  ///< what the operation is told: of one rank's vector, or of one block
  std::size_t whole = 0;  ///< elements of the larger buffer of a rank, whose bytes are the size of the point
};

/// The extent nearest to so many bytes: blocks are equal, and not empty.
constexpr Extent extent_of(Verb verb, std::size_t bytes, std::size_t element, std::size_t ranks) {
  if (verb == Verb::barrier) return {};
  const std::size_t elements = bytes / element > 0 ? bytes / element : 1;
  const bool blocks =
      verb != Verb::all_reduce && verb != Verb::broadcast && verb != Verb::reduce && verb != Verb::send_recv;
  if (!blocks) return {elements, elements};
  const std::size_t count = elements / ranks > 0 ? elements / ranks : 1;
  return {count, count * ranks};
}

/// What turns bytes per second of one rank's call (size / time) into what each link between ranks has to carry, so that
/// different operations and numbers of ranks compare: the factors of nccl-tests.
constexpr double bus_factor(Verb verb, int ranks) {
  const double n = ranks;
  switch (verb) {
    case Verb::all_reduce: return 2 * (n - 1) / n;
    case Verb::reduce_scatter:
    case Verb::all_gather:
    case Verb::gather:
    case Verb::scatter:
    case Verb::all_to_all:
    case Verb::all_to_all_v: return (n - 1) / n;
    case Verb::broadcast:
    case Verb::reduce:
    case Verb::send_recv: return 1;
    case Verb::barrier: return 0;
  }
  return 0;
}

/// Bytes that have to be read plus bytes that have to be written, by all ranks together, however it is done: every
/// input is read once, every output is written once, and what is in its place stays there. size: bytes of the point.
constexpr double least_bytes(Verb verb, double size, int ranks, bool in_place) {
  const double n = ranks, rest = (n - 1) / n;
  switch (verb) {
    case Verb::all_reduce: return 2 * n * size;
    case Verb::reduce_scatter:
    case Verb::reduce: return (n + 1) * size;
    case Verb::all_gather: return in_place ? n * size : (n + 1) * size;
    case Verb::broadcast: return n * size;
    case Verb::gather:
    case Verb::scatter: return in_place ? 2 * rest * size : 2 * size;
    case Verb::all_to_all:
    case Verb::all_to_all_v:
    case Verb::send_recv: return 2 * n * size;
    case Verb::barrier: return 0;
  }
  return 0;
}

}  // namespace harness
