// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/detail/mix.hpp"
#include "meshwise/core/detail/sort.hpp"
#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/topology/link.hpp"

namespace meshwise {

/// One level of a hierarchy: the ranks in groups, each a run of consecutive ranks.
struct Level {
  std::vector<int> begins;  ///< the first rank of every group, ascending, from 0
  Link link;                ///< between ranks of one group that no lower level unites
  double uplinks = 1;       ///< how many transfers leave a group at full rate, and as many enter; more share it

  friend bool operator==(const Level&, const Level&) = default;
};

/// How the ranks of a group are wired: a tree of nested groups of uneven sizes, or a torus; a plain value.
///
/// All ranks of a group must have the same one, since what is chosen by it must be the same: compare `signature()`.
/// Cost: as many integers as there are groups; nothing grows with the ranks.
class Topology {
 public:
  /// One rank, which talks to nobody.
  Topology() = default;

  /// levels: innermost first; the groups of a level are unions of groups of the level below.
  /// outermost: the link between ranks that no level unites. per_reduced_byte: gamma, seconds per byte combined.
  /// torus: extents whose product is `ranks`, the last one varying fastest; every rank is then linked to two neighbours
  /// in each dim by `outermost`, and there are no levels. Empty: no torus.
  /// Errors: `invalid_argument`.
  Topology(int ranks, std::vector<Level> levels, Link outermost, std::vector<int> torus = {},
           double per_reduced_byte = default_per_reduced_byte)
      : ranks_(ranks),
        levels_(std::move(levels)),
        outermost_(outermost),
        torus_(std::move(torus)),
        per_reduced_byte_(per_reduced_byte) {
    validate();
  }

  /// What one core needs to combine a byte that comes from the cache, in seconds.
  static constexpr double default_per_reduced_byte = 2.5e-11;

  /// Every rank reaches every other one alike.
  static Topology flat(int ranks, Link link = Link::shared_memory()) { return Topology(ranks, {}, link); }

  /// Nodes of the given sizes, uneven ones too; `uplinks` network ports each.
  static Topology nodes(const std::vector<int>& sizes, Link inside = Link::shared_memory(),
                        Link between = Link::network(), double uplinks = 1) {
    Level level;
    level.link = inside;
    level.uplinks = uplinks;
    std::int64_t ranks = 0;
    for (const int size : sizes) {
      if (size < 1) {
        fail("Topology::nodes", "at least one rank on every node", std::to_string(size), "leave empty nodes out");
      }
      level.begins.push_back(static_cast<int>(ranks));
      ranks += size;
      if (ranks > most_ranks) fail("Topology::nodes", "ranks that an int can count", "more", "use fewer ranks");
    }
    return Topology(static_cast<int>(ranks), {std::move(level)}, between);
  }

  /// A torus, the last dim varying fastest; `link` joins neighbours.
  static Topology torus(std::vector<int> dims, Link link = Link::network()) {
    const int ranks = product(dims);
    return Topology(ranks, {}, link, std::move(dims));
  }

  int ranks() const { return ranks_; }
  const std::vector<Level>& levels() const { return levels_; }
  const Link& outermost() const { return outermost_; }
  const std::vector<int>& torus_dims() const { return torus_; }
  double per_reduced_byte() const { return per_reduced_byte_; }

  /// The group of a rank at a level. Cost: logarithmic in the groups.
  int group(int level, int rank) const {
    const std::vector<int>& begins = levels_[static_cast<std::size_t>(level)].begins;
    return static_cast<int>(detail::first_not_before(begins, [rank](int begin) { return begin <= rank; })) - 1;
  }

  /// The innermost level at which two ranks are in one group; the number of levels if only the outermost link joins
  /// them. Cost: logarithmic in the groups of each level.
  int meeting(int a, int b) const {
    const int count = static_cast<int>(levels_.size());
    for (int level = 0; level < count; ++level) {
      if (group(level, a) == group(level, b)) return level;
    }
    return count;
  }

  /// The link by which ranks that meet at `level` reach each other.
  const Link& link(int level) const {
    return level < static_cast<int>(levels_.size()) ? levels_[static_cast<std::size_t>(level)].link : outermost_;
  }

  /// How far two ranks are apart in the torus dim in which they are farthest, at least 1; 1 without a torus.
  ///
  /// If every rank sends as far, each link of that dim carries as many messages as one message takes steps.
  int distance(int a, int b) const {
    int farthest = 1;
    for (std::size_t k = torus_.size(); k-- > 0;) {
      const int extent = torus_[k];
      const int forward = (b % extent - a % extent + extent) % extent;
      farthest = detail::larger(farthest, detail::smaller(forward, extent - forward));
      a /= extent;
      b /= extent;
    }
    return farthest;
  }

  /// The topology of a group made of some of these ranks, in the given order.
  ///
  /// members: ranks of this topology, each once. A level whose groups are not runs in that order is left out, so that
  /// its ranks count as farther apart than they are; a torus becomes flat.
  Topology subset(const std::vector<int>& members) const {
    std::vector<Level> kept;
    for (int level = 0; level < static_cast<int>(levels_.size()); ++level) {
      Level part;
      part.link = link(level);
      part.uplinks = levels_[static_cast<std::size_t>(level)].uplinks;
      detail::List<int> groups;
      for (std::size_t k = 0; k < members.size(); ++k) {
        require_rank("Topology::subset", members[k]);
        const int at = group(level, members[k]);
        if (!groups.empty() && groups.back() == at) continue;
        groups.push_back(at);
        part.begins.push_back(static_cast<int>(k));
      }
      const std::size_t stretches = groups.size();
      detail::sort_and_unite(groups);
      const bool runs = groups.size() == stretches;
      const bool nested = kept.empty() || detail::all_among(part.begins, kept.back().begins);
      if (runs && nested) kept.push_back(std::move(part));
    }
    return Topology(static_cast<int>(members.size()), std::move(kept), outermost_, {}, per_reduced_byte_);
  }

  /// A hash of everything above, the same on all machines: ranks that agree on it choose alike.
  std::uint64_t signature() const {
    std::uint64_t hash = mix(0x746f706f6c6f6779, static_cast<std::uint64_t>(ranks_));
    for (const Level& level : levels_) {
      hash = mix(hash, level.begins.size());
      for (const int begin : level.begins) hash = mix(hash, static_cast<std::uint64_t>(begin));
      hash = mix(mix(hash, level.link), level.uplinks);
    }
    hash = mix(mix(hash, outermost_), torus_.size());
    for (const int extent : torus_) hash = mix(hash, static_cast<std::uint64_t>(extent));
    return mix(hash, per_reduced_byte_);
  }

  friend bool operator==(const Topology&, const Topology&) = default;

 private:
  static constexpr std::int64_t most_ranks = 0x7fffffff;

  static int product(const std::vector<int>& dims) {
    std::int64_t ranks = 1;
    for (const int extent : dims) {
      if (extent < 1 || ranks > most_ranks / extent) {
        fail("Topology", "torus dims from 1 on, with a product that an int can hold", std::to_string(extent),
             "pass the extents of the torus");
      }
      ranks *= extent;
    }
    return static_cast<int>(ranks);
  }

  void require_rank(const char* function, int rank) const {
    if (rank >= 0 && rank < ranks_) return;
    fail(function, "ranks from 0 to " + std::to_string(ranks_ - 1), std::to_string(rank),
         "pass ranks of this topology");
  }

  static void validate(const std::string& what, const Link& link) {
    for (const double seconds : {link.latency, link.per_byte, link.per_message}) validate(what, seconds);
  }

  static void validate(const std::string& what, double seconds) {
    if (seconds >= 0 && seconds <= 1e6) return;
    fail("Topology", "seconds from 0 to 1e6 for " + what, std::to_string(seconds), "give latencies and times per byte");
  }

  void validate() const {
    if (ranks_ < 1) fail("Topology", "at least 1 rank", std::to_string(ranks_), "pass the size of the group");
    validate("the outermost link", outermost_);
    validate("a reduced byte", per_reduced_byte_);
    if (!torus_.empty() && product(torus_) != ranks_) {
      fail("Topology", "torus dims with the product " + std::to_string(ranks_), std::to_string(product(torus_)),
           "the ranks of a torus are all its places");
    }
    if (!torus_.empty() && !levels_.empty()) {
      fail("Topology", "levels or a torus", "both", "describe the links that matter most");
    }
    for (std::size_t k = 0; k < levels_.size(); ++k) validate(k);
  }

  void validate(std::size_t k) const {
    const std::string name = "level " + std::to_string(k);
    const Level& level = levels_[k];
    validate(name, level.link);
    if (!(level.uplinks > 0 && level.uplinks <= 1e9)) {
      fail("Topology", "more than 0 uplinks at " + name, std::to_string(level.uplinks),
           "say how many transfers leave a group at full rate");
    }
    const std::vector<int>& begins = level.begins;
    if (begins.empty() || begins.front() != 0 || begins.back() >= ranks_ || !detail::ascending(begins)) {
      fail("Topology", "ascending first ranks from 0, below " + std::to_string(ranks_), list(begins) + " at " + name,
           "list the first rank of every group");
    }
    if (k > 0 && !detail::all_among(begins, levels_[k - 1].begins)) {
      fail("Topology", "groups of " + name + " that are unions of groups of the level below", list(begins),
           "order the levels from the innermost to the outermost");
    }
  }

  static std::string list(const std::vector<int>& numbers) {
    std::string text = "{";
    for (std::size_t k = 0; k < numbers.size() && k < 16; ++k) {
      text += (k == 0 ? "" : ", ") + std::to_string(numbers[k]);
    }
    return text + (numbers.size() > 16 ? ", ...}" : "}");
  }

  static constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) { return detail::mix(hash, value); }
  static constexpr std::uint64_t mix(std::uint64_t hash, double value) {
    return mix(hash, std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value));
  }
  static constexpr std::uint64_t mix(std::uint64_t hash, const Link& link) {
    return mix(mix(mix(hash, link.latency), link.per_byte), link.per_message);
  }

  int ranks_ = 1;
  std::vector<Level> levels_;
  Link outermost_ = Link::shared_memory();
  std::vector<int> torus_;
  double per_reduced_byte_ = default_per_reduced_byte;
};

}  // namespace meshwise
