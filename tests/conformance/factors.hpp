// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "meshwise/core/element.hpp"
#include "meshwise/schedule/algorithm.hpp"

/// The factors of a case of the conformance list, and what each of them can be.
namespace conformance {

enum class Verb : std::uint8_t {
  all_reduce,
  reduce_scatter,
  reduce,
  inclusive_scan,
  exclusive_scan,
  reduce_scatter_v,
  all_gather,
  broadcast,
  gather,
  scatter,
  all_to_all,
  all_gather_v,
  gather_v,
  scatter_v,
  all_to_all_v,
  redistribute,
  group,
  broadcast_bytes,
  barrier,
};

/// `plain` is a struct of 12 bytes, which can only be copied; the others are the library's kinds, in their order.
enum class Item : std::uint8_t { f32, f64, bf16, f16, i8, u8, i32, u32, i64, u64, f8e4m3, f8e5m2, plain };

/// `commuting` and `ordered` are operations of this test's own, the latter not commutative.
enum class Combining : std::uint8_t {
  sum,
  product,
  min,
  max,
  average,
  pre_multiplied,
  commuting,
  ordered,
  bit_and,
  bit_or,
  bit_xor,
  logical_and,
  logical_or,
  logical_xor,
};

enum class Place : std::uint8_t { apart, in_place };
enum class Count : std::uint8_t {
  zero,
  one,
  fewer,  ///< than ranks
  ranks_less_1,
  ranks,
  ranks_plus_1,
  odd,
  n64,
  n1000,
  tile_plus_1,
  small_limit,  ///< a few elements beyond what one rendezvous can carry
  large,        ///< several tiles per block
};
enum class Ragged : std::uint8_t { equal, zeros, one_big, ascending, random };
enum class Root : std::uint8_t { first, middle, last };
enum class Lanes : std::uint8_t { automatic, one, three };
enum class How : std::uint8_t { blocking, started, prepared };
enum class Flag : std::uint8_t { no, yes };
enum class Wire : std::uint8_t { none, f32, f64, bf16, f16, f8e4m3, f8e5m2 };
enum class Wiring : std::uint8_t { flat, nodes, torus };
enum class Values : std::uint8_t { exact, rough };

/// The places of the factors in a case.
enum Factor : std::size_t {
  operation,
  algorithm,
  element,
  combination,
  place,
  count,
  ragged,
  ranks,  ///< one less than there are
  root,
  lanes,
  how,
  reproducible,
  wire,
  topology,
  values,
  factor_count
};

struct FactorText {
  const char* name;
  std::array<const char*, 19> values;
};

inline constexpr std::array<FactorText, factor_count> factor_texts{{
    {"operation",
     {"all_reduce", "reduce_scatter", "reduce", "inclusive_scan", "exclusive_scan", "reduce_scatter_v", "all_gather",
      "broadcast", "gather", "scatter", "all_to_all", "all_gather_v", "gather_v", "scatter_v", "all_to_all_v",
      "redistribute", "group", "broadcast_bytes", "barrier"}},
    {"algorithm",
     {"automatic", "direct", "ring", "one_shot", "two_shot", "recursive_doubling", "halving_doubling", "circulant",
      "double_tree", "bruck", "pairwise", "binomial", "knomial", "scatter_all_gather", "torus", "hierarchical",
      "exchange", "custom"}},
    {"element", {"f32", "f64", "bf16", "f16", "i8", "u8", "i32", "u32", "i64", "u64", "f8e4m3", "f8e5m2", "plain"}},
    {"combination",
     {"sum", "product", "min", "max", "average", "pre_multiplied", "commuting", "ordered", "bit_and", "bit_or",
      "bit_xor", "logical_and", "logical_or", "logical_xor"}},
    {"place", {"apart", "in_place"}},
    {"count",
     {"0", "1", "fewer", "ranks-1", "ranks", "ranks+1", "odd", "64", "1000", "tile+1", "small_limit", "large"}},
    {"ragged", {"equal", "zeros", "one_big", "ascending", "random"}},
    {"ranks", {"1", "2", "3", "4", "5", "6", "7", "8", "9"}},
    {"root", {"first", "middle", "last"}},
    {"lanes", {"automatic", "1", "3"}},
    {"how", {"blocking", "started", "prepared"}},
    {"reproducible", {"no", "yes"}},
    {"wire", {"none", "f32", "f64", "bf16", "f16", "f8e4m3", "f8e5m2"}},
    {"topology", {"flat", "nodes", "torus"}},
    {"values", {"exact", "rough"}},
}};

inline constexpr std::array<int, factor_count> factor_levels = [] {
  std::array<int, factor_count> counts{};
  for (std::size_t factor = 0; factor < factor_count; ++factor) {
    for (const char* value : factor_texts[factor].values) counts[factor] += value != nullptr ? 1 : 0;
  }
  return counts;
}();

/// How many values a factor has.
constexpr int levels(std::size_t factor) { return factor_levels[factor]; }

static_assert(levels(algorithm) == meshwise::algorithm_count && levels(element) == 13 && levels(operation) == 19);

/// One case: a value for every factor, and the seed of its data.
struct Case {
  std::array<std::uint8_t, factor_count> value{};
  std::array<bool, factor_count> matters{};  ///< whether the factor has any meaning here; if not, its value is 0
  std::uint64_t seed = 0;

  Verb verb() const { return static_cast<Verb>(value[operation]); }
  meshwise::Algorithm wanted() const { return static_cast<meshwise::Algorithm>(value[algorithm]); }
  Item item() const { return static_cast<Item>(value[element]); }
  Combining combining() const { return static_cast<Combining>(value[combination]); }
  bool in_place() const { return value[place] == static_cast<std::uint8_t>(Place::in_place); }
  Count amount() const { return static_cast<Count>(value[count]); }
  Ragged raggedness() const { return static_cast<Ragged>(value[ragged]); }
  int size() const { return value[ranks] + 1; }
  int root_rank() const {
    const auto where = static_cast<Root>(value[root]);
    return where == Root::first ? 0 : where == Root::middle ? size() / 2 : size() - 1;
  }
  int lane_number() const { return value[lanes] == 2 ? 3 : value[lanes]; }
  How manner() const { return static_cast<How>(value[how]); }
  bool in_rank_order() const { return value[reproducible] != 0; }
  Wire carrier() const { return static_cast<Wire>(value[wire]); }
  bool rough() const { return value[values] != 0; }

  friend bool operator==(const Case&, const Case&) = default;
};

/// Whether the operation combines contributions.
constexpr bool combines(Verb verb) { return verb <= Verb::reduce_scatter_v; }

constexpr bool rooted(Verb verb) {
  switch (verb) {
    case Verb::reduce:
    case Verb::broadcast:
    case Verb::gather:
    case Verb::scatter:
    case Verb::gather_v:
    case Verb::scatter_v:
    case Verb::broadcast_bytes: return true;
    default: return false;
  }
}

/// Whether the caller says how much each rank has.
constexpr bool is_ragged(Verb verb) {
  switch (verb) {
    case Verb::reduce_scatter_v:
    case Verb::all_gather_v:
    case Verb::gather_v:
    case Verb::scatter_v:
    case Verb::all_to_all_v:
    case Verb::redistribute:
    case Verb::group: return true;
    default: return false;
  }
}

constexpr bool is_float(Item item) { return item <= Item::f16 || item == Item::f8e4m3 || item == Item::f8e5m2; }

constexpr std::size_t size_of(Item item) {
  return item == Item::plain ? 12 : meshwise::element_size(static_cast<meshwise::ElementKind>(item));
}

/// The kind in which the values travel, if a wire is set.
constexpr meshwise::ElementKind kind_of(Wire carrier) {
  constexpr meshwise::ElementKind kinds[] = {meshwise::ElementKind::f32,   meshwise::ElementKind::f32,
                                             meshwise::ElementKind::f64,   meshwise::ElementKind::bf16,
                                             meshwise::ElementKind::f16,   meshwise::ElementKind::f8e4m3,
                                             meshwise::ElementKind::f8e5m2};
  return kinds[static_cast<std::size_t>(carrier)];
}

/// Says which factors matter and sets the others to 0. False if the library does not have such a case, because it would
/// not compile.
inline bool settle(Case& c) {
  const Verb verb = c.verb();
  const bool scheduled = verb < Verb::group;
  const bool scan = verb == Verb::inclusive_scan || verb == Verb::exclusive_scan;
  c.matters.fill(false);
  for (const std::size_t factor : {operation, ranks, topology, how}) c.matters[factor] = true;
  if (verb != Verb::barrier) c.matters[count] = true;
  if (verb == Verb::broadcast_bytes) c.matters[how] = false;
  c.matters[root] = rooted(verb);
  c.matters[ragged] = is_ragged(verb);
  if (scheduled || verb == Verb::group) c.matters[element] = true;
  if (scheduled) {
    for (const std::size_t factor : {algorithm, lanes, wire}) c.matters[factor] = true;
    // A broadcast has one buffer. Ragged exchanges are not in place, and which ranks would see that depends on their
    // counts, so that there is no refusal of all ranks either.
    c.matters[place] = verb != Verb::broadcast && verb != Verb::all_to_all_v && verb != Verb::redistribute;
  }
  if (combines(verb)) {
    c.matters[combination] = true;
    c.matters[reproducible] = true;
    if (c.item() == Item::plain) return false;
    if (c.combining() >= Combining::bit_and && is_float(c.item())) return false;
    if (c.combining() == Combining::average && scan) return false;
    const Combining how_combined = c.combining();
    const bool rounds = how_combined == Combining::sum || how_combined == Combining::product ||
                        how_combined == Combining::average || how_combined == Combining::pre_multiplied;
    c.matters[values] = rounds && is_float(c.item());
  }
  // One wire is enough to see that whole numbers refuse all.
  if (c.matters[wire] && !is_float(c.item()) && c.carrier() > Wire::f32) return false;
  for (std::size_t factor = 0; factor < factor_count; ++factor) {
    if (!c.matters[factor]) c.value[factor] = 0;
  }
  return true;
}

/// A case as text: all factors that matter, and the seed.
inline std::string text(const Case& c) {
  std::string result;
  for (std::size_t factor = 0; factor < factor_count; ++factor) {
    if (!c.matters[factor]) continue;
    result += std::string(factor_texts[factor].name) + '=' + factor_texts[factor].values[c.value[factor]] + ' ';
  }
  return result + "seed=" + std::to_string(c.seed);
}

/// Reads what `text` writes; factors that are not named are 0. False if a word is unknown.
inline bool parse(std::string_view line, Case& c) {
  c = Case{};
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(word.size() < line.size() ? word.size() + 1 : line.size());
    if (word.empty()) continue;
    const std::size_t equal = word.find('=');
    if (equal == std::string_view::npos) return false;
    const std::string_view name = word.substr(0, equal);
    const std::string_view value = word.substr(equal + 1);
    if (name == "seed") {
      for (const char digit : value) c.seed = c.seed * 10 + static_cast<std::uint64_t>(digit - '0');
      continue;
    }
    bool known = false;
    for (std::size_t factor = 0; factor < factor_count; ++factor) {
      if (name != factor_texts[factor].name) continue;
      for (int level = 0; level < levels(factor); ++level) {
        if (value != factor_texts[factor].values[static_cast<std::size_t>(level)]) continue;
        c.value[factor] = static_cast<std::uint8_t>(level);
        known = true;
      }
    }
    if (!known) return false;
  }
  return settle(c);
}

/// Mixes numbers to random bits. Source: the finaliser of splitmix64.
constexpr std::uint64_t mixed(std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0) {
  std::uint64_t z = a;
  for (const std::uint64_t next : {b, c, std::uint64_t{0}}) {
    z = (z ^ next) + 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    z ^= z >> 31;
  }
  return z;
}

}  // namespace conformance
