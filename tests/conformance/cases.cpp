// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "ask.hpp"
#include "meshwise/schedule/catalogue.hpp"
#include "meshwise/schedule/redistribution.hpp"
#include "meshwise/schedule/verify.hpp"

namespace conformance {

namespace {

using meshwise::Algorithm;
using meshwise::AnyGenerator;
using meshwise::Operation;
using meshwise::Shape;

std::size_t count_of(const Case& c) {
  const auto p = static_cast<std::size_t>(c.size());
  const std::size_t bytes = size_of(c.item());
  switch (c.amount()) {
    case Count::zero: return 0;
    case Count::one: return 1;
    case Count::fewer: return p / 2;
    case Count::ranks_less_1: return p - 1;
    case Count::ranks: return p;
    case Count::ranks_plus_1: return p + 1;
    case Count::odd: return 37;
    case Count::n64: return 64;
    case Count::n1000: return 1000;
    case Count::tile_plus_1: return 1025;
    case Count::small_limit: return (c.seed % 2 == 0 ? 2048 : 8192) / bytes + 3;
    case Count::large: return 65536 / bytes + 4099;
  }
  return 0;
}

/// `count` elements in p parts.
std::vector<std::size_t> cut(Ragged how_cut, std::size_t count, std::size_t p, std::uint64_t seed) {
  std::vector<std::size_t> parts(p, 0);
  const std::size_t chosen = seed % p;
  switch (how_cut) {
    case Ragged::equal:
      for (std::size_t k = 0; k < p; ++k) parts[k] = count * (k + 1) / p - count * k / p;
      return parts;
    case Ragged::zeros:  // every other rank has none
      for (std::size_t k = chosen % 2; k < p; k += 2) parts[k] = count / ((p + 1) / 2);
      return parts;
    case Ragged::one_big:
      for (std::size_t k = 0; k < p; ++k) parts[k] = k == chosen ? count : std::min<std::size_t>(k % 2, count);
      return parts;
    case Ragged::ascending:
      for (std::size_t k = 0; k < p; ++k) parts[k] = 2 * count * k / (p * p);
      return parts;
    case Ragged::random:
      for (std::size_t k = 0; k < p; ++k) parts[k] = mixed(seed, k) % (2 * count / p + 1);
      return parts;
  }
  return parts;
}

std::size_t sum_of(const std::vector<std::size_t>& numbers) {
  std::size_t sum = 0;
  for (const std::size_t number : numbers) sum += number;
  return sum;
}

Operation operation_of(Verb verb) {
  switch (verb) {
    case Verb::reduce_scatter:
    case Verb::reduce_scatter_v: return Operation::reduce_scatter;
    case Verb::reduce: return Operation::reduce;
    case Verb::inclusive_scan: return Operation::inclusive_scan;
    case Verb::exclusive_scan: return Operation::exclusive_scan;
    case Verb::all_gather:
    case Verb::all_gather_v: return Operation::all_gather;
    case Verb::broadcast: return Operation::broadcast;
    case Verb::gather:
    case Verb::gather_v: return Operation::gather;
    case Verb::scatter:
    case Verb::scatter_v: return Operation::scatter;
    case Verb::all_to_all:
    case Verb::all_to_all_v: return Operation::all_to_all;
    case Verb::redistribute: return Operation::exchange;
    default: return Operation::all_reduce;
  }
}

/// What is proven about the order of combination, remembered by shape.
struct Order {
  bool in_rank_order;
  bool canonical;
};
Order order_of(const AnyGenerator& generator, const Shape& shape, const meshwise::Topology& topology) {
  static std::mutex mutex;
  static std::map<std::array<std::uint64_t, 6>, Order> known;
  std::uint64_t name = 0;
  for (const char* letter = generator.name; *letter != '\0'; ++letter) {
    name = mixed(name, static_cast<std::uint64_t>(*letter));
  }
  const std::array<std::uint64_t, 6> key{name,
                                         static_cast<std::uint64_t>(shape.operation),
                                         static_cast<std::uint64_t>(shape.ranks),
                                         static_cast<std::uint64_t>(shape.root),
                                         shape.in_place ? 1U : 0U,
                                         topology.signature()};
  const std::lock_guard<std::mutex> lock(mutex);
  const auto at = known.find(key);
  if (at != known.end()) return at->second;
  const meshwise::Verdict verdict = meshwise::verify(meshwise::materialise(generator, shape));
  return known[key] = Order{verdict.in_rank_order, verdict.canonical};
}

}  // namespace

Sizes sizes_of(const Case& c) {
  Sizes sizes;
  sizes.count = count_of(c);
  const auto p = static_cast<std::size_t>(c.size());
  switch (c.verb()) {
    case Verb::gather:
    case Verb::scatter:
    case Verb::all_to_all:
      if (c.amount() == Count::large) sizes.count = sizes.count / p + 1;
      sizes.empty_somewhere = sizes.count == 0;
      break;
    case Verb::all_to_all_v:
    case Verb::group:
      for (std::size_t from = 0; from < p; ++from) {
        const std::vector<std::size_t> row = cut(c.raggedness(), sizes.count, p, c.seed + 3 * from);
        // Rows of one pattern, turned: what a rank receives is uneven too.
        for (std::size_t to = 0; to < p; ++to) sizes.pairs.push_back(row[(to + 2 * from) % p]);
      }
      break;
    case Verb::redistribute: {
      sizes.counts = cut(c.raggedness(), sizes.count, p, c.seed);
      const std::size_t all = sum_of(sizes.counts);
      const auto other = static_cast<Ragged>(mixed(c.seed, 5) % 5);
      sizes.counts2 = cut(other, all, p, c.seed + 1);
      // The sum must be the same: the last ranks give, or take what is missing.
      std::size_t sum = sum_of(sizes.counts2);
      for (std::size_t k = p; k-- > 0 && sum > all;) {
        const std::size_t less = std::min(sizes.counts2[k], sum - all);
        sizes.counts2[k] -= less;
        sum -= less;
      }
      sizes.counts2[mixed(c.seed, 6) % p] += all - sum;
      break;
    }
    default:
      sizes.empty_somewhere = sizes.count < p;
      if (!is_ragged(c.verb())) break;
      sizes.counts = cut(c.raggedness(), sizes.count, p, c.seed);
      sizes.count = sum_of(sizes.counts);
      sizes.empty_somewhere = *std::min_element(sizes.counts.begin(), sizes.counts.end()) == 0;
      break;
  }
  return sizes;
}

meshwise::Topology topology_of(const Case& c) {
  const int p = c.size();
  switch (static_cast<Wiring>(c.value[topology])) {
    case Wiring::flat: break;
    case Wiring::nodes: {  // uneven ones
      std::vector<int> nodes;
      for (int left = p, size = 1; left > 0; left -= nodes.back(), ++size) nodes.push_back(std::min(left, size));
      return meshwise::Topology::nodes(nodes);
    }
    case Wiring::torus: {
      std::vector<int> dims;
      int left = p;
      for (const int factor : {2, 3, 5, 7}) {
        for (; left % factor == 0; left /= factor) dims.push_back(factor);
      }
      if (dims.empty()) dims.push_back(1);
      return meshwise::Topology::torus(dims);
    }
  }
  return meshwise::Topology::flat(p);
}

bool in_one_span(const Case& c) {
  if (!c.in_place() || !with_one_span(c.item(), c.combining()) || c.seed % 2 == 0) return false;
  if (c.wanted() == Algorithm::custom && c.item() == Item::i32) return false;
  return combines(c.verb()) || c.verb() == Verb::all_gather || c.verb() == Verb::all_gather_v;
}

AnyGenerator custom_generator(const Case& c) {
  switch (operation_of(c.verb())) {
    case Operation::all_reduce: return AnyGenerator::of<meshwise::HalvingDoubling>();
    case Operation::reduce_scatter: return AnyGenerator::of<meshwise::Circulant>();
    case Operation::inclusive_scan:
    case Operation::exclusive_scan: return AnyGenerator::of<meshwise::RecursiveDoubling>();
    case Operation::all_gather:
      return c.verb() == Verb::all_gather ? AnyGenerator::of<meshwise::Bruck>() : AnyGenerator::of<meshwise::Ring>();
    case Operation::all_to_all:
      return c.verb() == Verb::all_to_all ? AnyGenerator::of<meshwise::Pairwise>()
                                          : AnyGenerator::of<meshwise::Direct>();
    case Operation::exchange: return AnyGenerator::of<meshwise::Exchange>();
    default: return AnyGenerator::of<meshwise::Knomial<3>>();
  }
}

Shape shape_of(const Case& c, const meshwise::Routes* routes) {
  Shape shape;
  shape.operation = operation_of(c.verb());
  shape.ranks = c.size();
  if (rooted(c.verb())) shape.root = c.root_rank();
  shape.in_place = c.in_place() || rooted(c.verb());  // a rank does not know about the root
  shape.routes = routes;
  const Sizes sizes = sizes_of(c);
  const bool scattered = c.verb() == Verb::reduce_scatter || c.verb() == Verb::reduce_scatter_v ||
                         c.verb() == Verb::all_gather || c.verb() == Verb::all_gather_v;
  // Spans that coincide where some are empty are copied, and so is what is multiplied, unless it is converted anyway.
  if (scattered && sizes.empty_somewhere && !in_one_span(c)) shape.in_place = false;
  const bool converted = c.carrier() != Wire::none && is_float(c.item()) &&
                         kind_of(c.carrier()) != static_cast<meshwise::ElementKind>(c.item());
  if (combines(c.verb()) && c.combining() == Combining::pre_multiplied && !converted && !rooted(c.verb())) {
    shape.in_place = false;
  }
  return shape;
}

Expected expected_of(const Case& c) {
  if (c.verb() >= Verb::group) return Expected::works;
  if (c.carrier() != Wire::none && !is_float(c.item())) return Expected::refused;
  const Sizes sizes = sizes_of(c);
  if (c.verb() == Verb::all_to_all && c.in_place() && sizes.count > 0) return Expected::refused;
  const bool nothing =
      c.verb() == Verb::redistribute ? sum_of(sizes.counts) == 0 : c.verb() != Verb::all_to_all_v && sizes.count == 0;
  if (nothing || c.wanted() == Algorithm::automatic) return Expected::works;
  meshwise::Redistribution splits;
  if (c.verb() == Verb::redistribute) splits = meshwise::routes_between(sizes.counts, sizes.counts2);
  const Shape shape = shape_of(c, c.verb() == Verb::redistribute ? &splits.routes : nullptr);
  const meshwise::Topology wiring = topology_of(c);
  const meshwise::Catalogue catalogue(wiring);
  const AnyGenerator generator = c.wanted() == Algorithm::custom ? custom_generator(c) : catalogue.find(c.wanted());
  if (!generator.supports(shape)) return Expected::refused;
  if (c.verb() == Verb::all_to_all_v && (generator.rounds(shape) > 1 || generator.scratch_slots(shape) > 0)) {
    return Expected::refused;
  }
  if (combines(c.verb()) && (c.combining() == Combining::ordered || c.in_rank_order())) {
    const Order order = order_of(generator, shape, wiring);
    if (c.combining() == Combining::ordered && !order.in_rank_order) return Expected::refused;
    if (c.in_rank_order() && !order.canonical) return Expected::refused;
  }
  return Expected::works;
}

namespace {

/// Numbers from a seed.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t operator()(std::uint64_t below) { return mixed(seed_, ++drawn_) % below; }

 private:
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

bool called_as_compiled(const Case& c) {
  if (c.manner() == How::blocking || c.verb() >= Verb::group) return true;
  if (!combines(c.verb())) return copied_in_every_manner(c.item());
  return in_every_manner(c.item(), c.combining()) || by_policy(c);
}

/// A random case of an operation, some factors of which are given. False if there is none like that.
bool draw(Dice& dice, Case& c, std::size_t first, std::size_t second) {
  const auto fixed = c.value;
  for (std::size_t factor = algorithm; factor < factor_count; ++factor) {
    if (factor == first || factor == second) continue;
    c.value[factor] = static_cast<std::uint8_t>(dice(static_cast<std::uint64_t>(levels(factor))));
    // Half of all cases are plain in these respects, so that the others have partners to be combined with.
    if ((factor == wire || factor == reproducible || factor == topology) && dice(2) == 0) c.value[factor] = 0;
  }
  c.seed = dice(1000000000);
  if (!settle(c) || !called_as_compiled(c)) return false;
  for (const std::size_t factor : {first, second}) {
    if (factor < factor_count && (!c.matters[factor] || c.value[factor] != fixed[factor])) return false;
  }
  return true;
}

/// Two factors and their values.
using Pair = std::array<std::uint8_t, 4>;

/// Which pairs there are already. Flat: it is asked millions of times.
class Pairs {
 public:
  void add(const Pair& pair) { there_[place_of(pair)] = 1; }
  bool has(const Pair& pair) const { return there_[place_of(pair)] != 0; }

 private:
  static constexpr std::size_t most = std::tuple_size_v<decltype(FactorText::values)>;

  static std::size_t place_of(const Pair& pair) {
    return ((pair[0] * most + pair[1]) * factor_count + pair[2]) * most + pair[3];
  }

  std::vector<std::uint8_t> there_ = std::vector<std::uint8_t>(factor_count * most * factor_count * most);
};

template <class F>
void for_pairs(const Case& c, const F& visit) {
  for (std::size_t a = algorithm; a < factor_count; ++a) {
    if (!c.matters[a]) continue;
    for (std::size_t b = a + 1; b < factor_count; ++b) {
      if (!c.matters[b]) continue;
      visit(Pair{static_cast<std::uint8_t>(a), c.value[a], static_cast<std::uint8_t>(b), c.value[b]});
    }
  }
}

}  // namespace

std::vector<Case> covering_sample(std::uint64_t seed) {
  std::vector<Case> sample;
  Dice dice(seed);
  for (int verb = 0; verb < levels(operation); ++verb) {
    Pairs covered;
    Pairs refused;  // of a factor with itself
    const auto add = [&](const Case& c) {
      for_pairs(c, [&](const Pair& pair) { covered.add(pair); });
      sample.push_back(c);
    };
    const auto refusal = [&](const Case& c) {
      bool fresh = false;
      for (std::size_t factor = algorithm; factor < factor_count; ++factor) {
        const auto where = static_cast<std::uint8_t>(factor);
        const Pair itself{where, c.value[factor], where, c.value[factor]};
        if (!c.matters[factor] || refused.has(itself)) continue;
        refused.add(itself);
        fresh = true;
      }
      if (fresh) sample.push_back(c);
    };
    // What no case that works has need not be tried in pairs.
    const auto works_with = [&](std::size_t factor, int level) {
      for (int attempt = 0; attempt < 400; ++attempt) {
        Case c;
        c.value[operation] = static_cast<std::uint8_t>(verb);
        c.value[factor] = static_cast<std::uint8_t>(level);
        if (!draw(dice, c, factor, factor_count)) continue;
        if (expected_of(c) == Expected::works) return true;
        refusal(c);
      }
      return false;
    };
    std::array<std::vector<int>, factor_count> hopeful;
    for (std::size_t factor = algorithm; factor < factor_count; ++factor) {
      for (int level = 0; level < levels(factor); ++level) {
        if (works_with(factor, level)) hopeful[factor].push_back(level);
      }
    }
    for (std::size_t a = algorithm; a < factor_count; ++a) {
      for (std::size_t b = a + 1; b < factor_count; ++b) {
        for (const int i : hopeful[a]) {
          for (const int k : hopeful[b]) {
            const Pair pair{static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(b),
                            static_cast<std::uint8_t>(k)};
            if (covered.has(pair)) continue;
            Case best;
            std::size_t most = 0;
            int found = 0;
            for (int attempt = 0; attempt < 400 && found < 8; ++attempt) {
              Case c;
              c.value[operation] = static_cast<std::uint8_t>(verb);
              c.value[a] = pair[1];
              c.value[b] = pair[3];
              if (!draw(dice, c, a, b)) continue;
              if (expected_of(c) == Expected::refused) {
                refusal(c);
                continue;
              }
              ++found;
              std::size_t fresh = 0;
              for_pairs(c, [&](const Pair& other) { fresh += covered.has(other) ? 0U : 1U; });
              if (fresh <= most) continue;
              most = fresh;
              best = c;
            }
            if (most > 0) add(best);
          }
        }
      }
    }
    // An operation without pairs, such as a barrier of one rank, still has cases.
    for (int k = 0; k < 4; ++k) {
      Case c;
      c.value[operation] = static_cast<std::uint8_t>(verb);
      if (draw(dice, c, factor_count, factor_count) && expected_of(c) == Expected::works) add(c);
    }
  }
  return sample;
}

namespace {

/// Calls `visit` for all combinations of values of some factors.
template <class F>
void for_all(Case& c, const std::vector<std::size_t>& factors, std::size_t first, const F& visit) {
  if (first == factors.size()) return visit(c);
  const std::size_t factor = factors[first];
  for (int level = 0; level < levels(factor); ++level) {
    c.value[factor] = static_cast<std::uint8_t>(level);
    for_all(c, factors, first + 1, visit);
  }
}

}  // namespace

std::vector<Case> product(int size, Wiring wiring, std::uint64_t seed) {
  const std::vector<std::size_t> schedule{algorithm, place, count, ragged, root, lanes};
  const std::vector<std::size_t> arithmetic{element, combination, reproducible, wire, values};
  Dice dice(mixed(seed, static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(wiring)));
  std::vector<Case> cases;
  for (int verb = 0; verb < levels(operation); ++verb) {
    Case c;
    c.value[operation] = static_cast<std::uint8_t>(verb);
    c.value[ranks] = static_cast<std::uint8_t>(size - 1);
    c.value[topology] = static_cast<std::uint8_t>(wiring);
    // A case without a factor comes once, not once for each of that factor's values.
    const auto same_schedule = [&](const Case& settled, const Case& wanted) {
      for (const std::size_t factor : schedule) {
        if (settled.value[factor] != wanted.value[factor]) return false;
      }
      const Algorithm chosen = settled.wanted();
      return wiring == Wiring::flat || chosen == Algorithm::automatic || chosen == Algorithm::torus ||
             chosen == Algorithm::hierarchical;
    };
    std::vector<Case> sums;
    for_all(c, arithmetic, 0, [&](Case& with) {
      Case settled = with;
      if (settle(settled) && settled.value == with.value && expected_of(settled) == Expected::works)
        sums.push_back(with);
    });
    if (sums.empty()) continue;
    for_all(c, schedule, 0, [&](Case& with) {
      // Some arithmetic is not compiled in every manner, or refused by most algorithms: try a few. Of the cases that
      // are refused whatever the arithmetic, some are enough.
      for (int attempt = 0; attempt < 6; ++attempt) {
        Case taken = with;
        const Case& sum = sums[dice(sums.size())];
        for (const std::size_t factor : arithmetic) taken.value[factor] = sum.value[factor];
        taken.value[how] = static_cast<std::uint8_t>(dice(3));
        taken.seed = dice(1000000000);
        if (!settle(taken) || !same_schedule(taken, with) || !called_as_compiled(taken)) continue;
        if (expected_of(taken) == Expected::refused && (attempt < 5 || dice(16) != 0)) continue;
        cases.push_back(taken);
        break;
      }
    });
    for (const Case& sum : sums) {
      for (int attempt = 0; attempt < 8; ++attempt) {
        Case taken = sum;
        for (const std::size_t factor : schedule) {
          taken.value[factor] = static_cast<std::uint8_t>(dice(static_cast<std::uint64_t>(levels(factor))));
        }
        taken.value[how] = static_cast<std::uint8_t>(dice(3));
        taken.seed = dice(1000000000);
        if (!settle(taken) || !called_as_compiled(taken) || expected_of(taken) == Expected::refused) continue;
        cases.push_back(taken);
        break;
      }
    }
  }
  return cases;
}

}  // namespace conformance
