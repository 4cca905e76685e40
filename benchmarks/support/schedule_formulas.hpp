// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "meshwise/schedule/algorithm.hpp"
#include "meshwise/schedule/schedule.hpp"

namespace meshwise::table {

/// Which count a formula speaks of.
enum class Measure : std::uint8_t {
  path,     ///< the busiest rank of each round, summed over rounds: what a machine of one port per rank waits for
  busiest,  ///< the busiest rank over all rounds: what remains when lanes pipeline the rounds, or rounds are local
};

/// What the literature says a schedule costs, in closed form, and by how much ours differs, with the reason.
struct Formula {
  const char* rounds_text = "";
  const char* blocks_text = "";
  std::int64_t rounds = 0;
  std::int64_t blocks = 0;  ///< of a p-th of the vector, per rank
  Measure measure = Measure::path;
  std::int64_t more_rounds = 0;  ///< ours minus the formula's
  std::int64_t at_least = 0;     ///< bounds of ours minus the formula's, equal where the difference is known exactly
  std::int64_t at_most = 0;
  const char* why = "";

  constexpr Formula but(std::int64_t extra_rounds, std::int64_t least, std::int64_t most, const char* reason) const {
    Formula result = *this;
    result.more_rounds = extra_rounds;
    result.at_least = least;
    result.at_most = most;
    if (extra_rounds != 0 || least != 0 || most != 0) result.why = reason;
    return result;
  }
};

constexpr int floor_of_lg(std::int64_t p) {
  int result = 0;
  while (p > 1) {
    p /= 2;
    ++result;
  }
  return result;
}
constexpr int ceil_of_lg(std::int64_t p) { return p <= 1 ? 0 : floor_of_lg(p - 1) + 1; }
constexpr bool is_power_of_two(std::int64_t p) { return (std::int64_t{1} << floor_of_lg(p)) == p; }
constexpr std::int64_t ceil_of(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The dims of the torus that the table uses: two, as equal as they can be.
constexpr std::pair<int, int> torus_of(int p) {
  int rows = 1;
  for (int d = 1; d * d <= p; ++d) {
    if (p % d == 0) rows = d;
  }
  return {rows, p / rows};
}

/// The nodes that the table uses: of four ranks each, the last one of what is left.
inline constexpr int node_ranks = 4;
inline std::vector<int> nodes_of(int p) {
  std::vector<int> begins;
  for (int r = 0; r < p; r += node_ranks) begins.push_back(r);
  return begins;
}

/// The exchange that the table uses: 4 p blocks, four consecutive ones on each rank, dealt to the ranks in turn.
inline constexpr int dealt_blocks = 4;
inline Routes routes_of(int p) {
  std::vector<std::vector<int>> held(static_cast<std::size_t>(p));
  std::vector<std::vector<int>> wanted(held.size());
  for (int r = 0; r < p; ++r) {
    for (int i = 0; i < dealt_blocks; ++i) {
      held[static_cast<std::size_t>(r)].push_back(r * dealt_blocks + i);
      wanted[static_cast<std::size_t>(r)].push_back(r + i * p);
    }
  }
  return Routes(dealt_blocks * p, std::move(held), std::move(wanted));
}

/// The formula for an algorithm that supports the shape, for root 0, out of place unless the operation is rooted, and
/// for at least 2 ranks.
///
/// Sources: for all_reduce to all_to_all, Thakur, Rabenseifner and Gropp, 2005; circulant: Traff, 2024; double tree:
/// Sanders, Speck and Traff, 2009; the others follow from the definitions.
constexpr Formula formula(Algorithm algorithm, const Shape& shape) {
  const std::int64_t p = shape.ranks;
  const std::int64_t n = p - 1;
  const std::int64_t m = floor_of_lg(p);
  const std::int64_t q = ceil_of_lg(p);
  const Operation operation = shape.operation;
  const bool power = is_power_of_two(p);
  const bool all_reduce = operation == Operation::all_reduce;
  const bool whole = operation == Operation::broadcast || operation == Operation::reduce;
  const bool scan = operation == Operation::inclusive_scan || operation == Operation::exclusive_scan;
  std::int64_t halves = 0;  // the larger ones of p slots that are halved m times
  for (int k = 1; k <= m; ++k) halves += ceil_of(p, std::int64_t{1} << k);

  switch (algorithm) {
    case Algorithm::direct:
      if (operation == Operation::inclusive_scan) return {"p", "3(p - 1)", p, 3 * n, Measure::busiest};
      if (operation == Operation::exclusive_scan) return {"p - 1", "3(p - 1) - 1", n, 3 * n - 1, Measure::busiest};
      if (all_reduce || whole) return {"1", "2(p - 1)", 1, 2 * n};
      return {"1", "p - 1", 1, n};
    case Algorithm::one_shot:
      if (operation == Operation::all_gather) return {"1", "p - 1", 1, n};
      return {"1", "p(p - 1)", 1, p * n};
    case Algorithm::two_shot: return {"2", "2(p - 1)", 2, 2 * n};
    case Algorithm::ring:
      if (all_reduce || whole || scan) return {"2(p - 1)", "2(p - 1)", 2 * n, 2 * n};
      if (operation == Operation::all_to_all) {
        return Formula{"p - 1", "p - 1", n, n}.but(1, 0, 0, "the first round is the local copy");
      }
      return {"p - 1", "p - 1", n, n};
    case Algorithm::pairwise: return {"p - 1", "p - 1", n, n};
    case Algorithm::recursive_doubling:
      if (operation == Operation::all_gather) return {"lg p", "p - 1", m, n};
      if (operation == Operation::inclusive_scan) return {"ceil lg p", "p ceil lg p", q, q * p};
      if (operation == Operation::exclusive_scan) {
        const std::int64_t rounds = ceil_of_lg(n);
        return Formula{"ceil lg (p - 1)", "p (1 + ceil lg (p - 1))", rounds, (1 + rounds) * p}.but(
            p == 2 ? 1 : 0, 0, 0, "two ranks take a round too");
      }
      if (power) return {"lg p", "p lg p", m, m * p};
      return {"floor lg p + 2", "p (floor lg p + 2)", m + 2, (m + 2) * p};
    case Algorithm::halving_doubling:
      if (operation == Operation::reduce_scatter) {
        if (power) return {"lg p", "p - 1", m, n};
        return Formula{"floor lg p + 2", "p - 1 + p", m + 2, n + p}.but(
            0, halves - n + 1, halves - n + 1, "p slots do not halve evenly, and a folded rank fetches its block");
      }
      if (power) return {"2 lg p", "2(p - 1)", 2 * m, 2 * n};
      if (operation == Operation::reduce) {
        // The gather moves one or two blocks less than all: what the root keeps.
        return Formula{"2 floor lg p + 1", "2(p - 1) + p", 2 * m + 1, 2 * n + p}.but(
            0, halves - n - 1, 2 * (halves - n), "p slots do not halve evenly");
      }
      return Formula{"2 floor lg p + 2", "2(p - 1) + 2p", 2 * m + 2, 2 * n + 2 * p}.but(
          0, 2 * (halves - n), 2 * (halves - n), "p slots do not halve evenly");
    case Algorithm::circulant:
      if (all_reduce) return {"2 ceil lg p", "2(p - 1)", 2 * q, 2 * n};
      return {"ceil lg p", "p - 1", q, n};
    case Algorithm::bruck: {
      if (operation == Operation::all_gather) return {"ceil lg p", "p - 1", q, n};
      std::int64_t hops = 0;  // a block travels as often as its distance has bits
      for (int distance = 1; distance < p; ++distance) {
        for (int bits = distance; bits > 0; bits /= 2) hops += bits % 2;
      }
      return Formula{"ceil lg p", "(p / 2) ceil lg p", q, p * q / 2}.but(
          0, hops - p * q / 2, hops - p * q / 2, "up to p - 1 not all distances have half of their bits set");
    }
    case Algorithm::binomial:
      if (whole) return {"ceil lg p", "p ceil lg p", q, q * p};
      return {"ceil lg p", "p - 1", q, n};
    case Algorithm::knomial: {
      std::int64_t digits = 0;
      std::int64_t top = 1;  // the value of the highest digit
      for (std::int64_t reach = 1; reach < p; reach *= 4) {
        top = reach;
        ++digits;
      }
      if (!whole) return {"ceil log_4 p", "p - 1", digits, n};
      const std::int64_t missing = p * (ceil_of(p, top) - 4);
      return Formula{"ceil log_4 p", "3 p ceil log_4 p", digits, 3 * p * digits}.but(
          0, missing, missing, "the root has fewer than three children in the first round");
    }
    case Algorithm::double_tree: {
      const std::int64_t odd = p % 2;  // half of an odd number of blocks is one more or less
      if (all_reduce) {
        return Formula{"2 floor lg (p + 1)", "2p", 2 * floor_of_lg(p + 1), 2 * p, Measure::busiest}.but(
            0, p == 2 ? -2 : -2 * odd, 2 * odd, "a tree carries half of p blocks; of two ranks one is a leaf");
      }
      const bool broadcast = operation == Operation::broadcast;
      const std::int64_t rounds = p == 2 ? 1 : 1 + floor_of_lg(broadcast ? n : p);
      return Formula{broadcast ? "1 + floor lg (p - 1)" : "1 + floor lg p", "p", rounds, p, Measure::busiest}.but(
          0, -odd, odd, "a tree carries half of p blocks");
    }
    case Algorithm::scatter_all_gather: return {"2 ceil lg p", "2(p - 1)", 2 * q, 2 * n};
    case Algorithm::torus: {
      const auto [rows, columns] = torus_of(shape.ranks);
      const std::int64_t rounds = rows - 1 + columns - 1;
      if (all_reduce) return {"2 sum (p_i - 1)", "2(p - 1)", 2 * rounds, 2 * n};
      return {"sum (p_i - 1)", "p - 1", rounds, n};
    }
    case Algorithm::hierarchical: {
      const std::int64_t nodes = ceil_of(p, node_ranks);
      const std::int64_t levels = 1 + (nodes == 1 ? 0 : nodes <= 16 ? 1 : ceil_of_lg(nodes));
      const std::int64_t extra = p % node_ranks == 0 || nodes == 1 ? 0 : p + 1;
      const char* uneven = "the ranks of the small last node do the work of a large one";
      if (operation == Operation::broadcast) {
        return Formula{"levels + 1", "2(p - 1)", levels + 1, 2 * n}.but(
            0, 0, nodes == 1 ? 0 : 2 * p, "the root also stands for each group that holds it");
      }
      if (operation == Operation::reduce) {
        return Formula{"levels + 1", "2(p - 1)", levels + 1, 2 * n}.but(0, 0, extra, uneven);
      }
      if (all_reduce) return Formula{"2 levels", "2(p - 1)", 2 * levels, 2 * n}.but(0, 0, 2 * extra, uneven);
      return Formula{"levels", "p - 1", levels, n}.but(0, 0, extra, uneven);
    }
    case Algorithm::exchange: {
      std::int64_t staying = dealt_blocks;  // of the rank that keeps the fewest
      for (std::int64_t r = 0; r < p; ++r) {
        std::int64_t own = 0;
        for (std::int64_t i = 0; i < dealt_blocks; ++i) own += (r + i * p) / dealt_blocks == r ? 1 : 0;
        staying = own < staying ? own : staying;
      }
      return Formula{"1", "n / p", 1, dealt_blocks}.but(0, -staying, -staying, "blocks that stay where they are");
    }
    case Algorithm::automatic:
    case Algorithm::custom: break;
  }
  return {};
}

}  // namespace meshwise::table
