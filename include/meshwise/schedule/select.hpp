// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/log.hpp"
#include "meshwise/schedule/catalogue.hpp"
#include "meshwise/schedule/cost.hpp"
#include "meshwise/schedule/detail/candidate.hpp"
#include "meshwise/schedule/detail/choice_memo.hpp"
#include "meshwise/schedule/question.hpp"
#include "meshwise/schedule/settings.hpp"
#include "meshwise/topology/topology.hpp"

namespace meshwise {

/// Chooses algorithms for the ranks of one group.
///
/// In this order: what the caller wants; what the settings force, if it fits; what their table says, if it fits; where
/// ranks address each other's buffers and are wired alike, `direct`, which moves each byte as rarely as can be; else
/// the cheapest prediction by `cost` among all that fit. Lanes likewise, the settings' own whatever the algorithm. An
/// algorithm fits if it does the operation and keeps the constraints of the question. Tables are measured by time
/// alone: between memory that ranks address, where partial results are not stored otherwise, a table has no say in
/// sums of narrow elements unless its algorithm rounds as rarely.
/// Constraints on the order of combination are decided by proof: `verify` on the shape itself.
///
/// All ranks of a group choose alike, since nothing matters but the question, the topology and the settings: neither
/// pointers nor what a rank finds in its own environment. Sizes matter by their highest bit only.
/// Cost: what was asked before, a few instructions and no allocation; a new question, the walks of all candidates.
/// Lifetime: stays where it is, generators refer to it. One thread at a time.
class Selector {
 public:
  /// speaks: whether this one warns, once for each operation, that what the settings force does not fit; one rank of a
  /// group should. budget: moves to look at for each prediction, see `cost`.
  explicit Selector(Topology topology, const Settings& settings = {}, bool speaks = false,
                    std::int64_t budget = default_walk_budget)
      : topology_(std::move(topology)), log_(settings.log), catalogue_(topology_), speaks_(speaks), budget_(budget) {
    for (int k = 0; k < operation_count; ++k) forced_[k] = settings.forced[k];
    for (int k = 0; k < settings.table.size; ++k) {
      const SelectionRule& rule = settings.table.rules[k];
      if (settings.table.group_size(rule.operation, rule.way, topology_.ranks()) != rule.ranks) continue;
      if (rule.decides()) rules_.push_back(rule);
    }
  }
  Selector(const Selector&) = delete;
  Selector& operator=(const Selector&) = delete;

  const Topology& topology() const { return topology_; }
  const Catalogue& catalogue() const { return catalogue_; }

  /// Errors: `invalid_argument` for a shape of another group, or if the wanted algorithm does not fit; `unsupported` if
  /// none does.
  Choice choose(const Question& question) {
    // Routes are too long to remember, and leave no choice.
    if (question.shape.operation == Operation::exchange) return decide(question).choice;
    const Choice* const known = question.shape.ranks == topology_.ranks() ? memo_.find(question) : nullptr;
    if (known != nullptr) return *known;
    const Choice choice = decide(question).choice;
    memo_.keep(question, choice);
    return choice;
  }

  /// What the table decides for a question, if it fits; null if that is nothing. What the caller wants and what the
  /// settings force comes before it. Valid as long as the selector.
  const SelectionRule* rule(const Question& question) {
    for (const SelectionRule& one : rules_) {
      if (one.operation != question.shape.operation || one.way != question.way()) continue;
      if (question.bytes < one.from || (question.bytes >= one.to && one.to != SelectionTable::no_end)) continue;
      if (whole_refusal(one.algorithm, question) != nullptr) return nullptr;
      const bool once = !question.narrow || one.way == Way::messages || !combines(question.shape.operation) ||
                        prove(one.algorithm, question.shape).canonical;
      return once ? &one : nullptr;
    }
    return nullptr;
  }

  /// A table in text: every algorithm with its prediction for the size class of the question, or why it is out; what is
  /// chosen, and for what reason. Errors: as `choose`.
  std::string explain(const Question& question);

 private:
  struct Decision {
    Choice choice;
    const char* reason = "";
  };
  struct Proof {
    Algorithm algorithm = Algorithm::automatic;
    Shape shape;
    detail::Order order;
  };
  static constexpr std::size_t most_proofs = 256;

  /// Why an algorithm is out before its order of combination is looked into; null if it is not.
  const char* refusal(Algorithm algorithm, const Question& question) const {
    const AnyGenerator generator = catalogue_.find(algorithm);
    if (algorithm == Algorithm::custom) return "is the caller's own";
    if (generator.empty()) return algorithm == Algorithm::torus ? "needs a torus" : "needs a topology with levels";
    if (!generator.supports(question.shape)) return "does not do this shape";
    if (question.one_round && (generator.rounds(question.shape) > 1 || generator.scratch_slots(question.shape) > 0)) {
      return "takes several rounds or scratch";
    }
    return nullptr;
  }

  /// Why the order of combination is wrong; null if it is right or does not matter.
  const char* order_refusal(Algorithm algorithm, const Question& question) {
    if (!combines(question.shape.operation) || (question.commutative && !question.reproducible)) return nullptr;
    const detail::Order order = prove(algorithm, question.shape);
    if (question.reproducible && !order.canonical) return "is not proven to be reproducible";
    if (!question.commutative && !order.in_rank_order) return "is not proven to combine in rank order";
    return nullptr;
  }

  /// The proof, or what is remembered of it.
  detail::Order prove(Algorithm algorithm, const Shape& shape) {
    for (const Proof& proof : proofs_) {
      if (proof.algorithm == algorithm && proof.shape == shape) return proof.order;
    }
    if (proofs_.size() >= most_proofs) proofs_.clear();
    proofs_.push_back(Proof{algorithm, shape, detail::prove_order(catalogue_.find(algorithm), shape)});
    return proofs_.back().order;
  }

  /// Why an algorithm cannot be chosen; null if it can.
  const char* whole_refusal(Algorithm algorithm, const Question& question) {
    const char* const refused = refusal(algorithm, question);
    return refused != nullptr ? refused : order_refusal(algorithm, question);
  }

  int wanted_lanes(const Question& question) const {
    return question.lanes > 0 ? question.lanes : forced(question).lanes;
  }

  const Settings::Forced& forced(const Question& question) const {
    return forced_[static_cast<std::size_t>(question.shape.operation)];
  }

  /// One algorithm with its lanes; predicted only if there is something to choose. lanes: where nobody asks for others.
  Decision single(Algorithm algorithm, const Question& question, const char* reason, int lanes = 0) const {
    detail::Candidate one;
    one.algorithm = algorithm;
    one.lanes = wanted_lanes(question) > 0 ? wanted_lanes(question) : lanes;
    const AnyGenerator generator = catalogue_.find(algorithm);
    if (one.lanes == 0 && generator.rounds(question.shape) < 2) one.lanes = 1;
    if (one.lanes == 0) {
      predict(one, generator, question.shape, bytes(question), topology_, 0, budget_);
    }
    return Decision{Choice{algorithm, one.lanes}, reason};
  }

  static std::uint64_t bytes(const Question& question) {
    return detail::class_bytes(detail::size_class(question.bytes));
  }

  void require(const Question& question) const {
    if (!valid(question.shape) || question.shape.ranks != topology_.ranks()) {
      fail("Selector", "a valid shape of " + std::to_string(topology_.ranks()) + " ranks", describe(question),
           "ask the selector of the group that the collective runs on");
    }
    if (question.lanes < 0 || question.lanes > most_lanes) {
      fail(operation_name(question.shape.operation), "lanes from 0 to " + std::to_string(most_lanes),
           std::to_string(question.lanes), "0 leaves their number to the library");
    }
  }

  Decision decide(const Question& question) {
    require(question);
    if (question.wanted != Algorithm::automatic) {
      const char* const refused = whole_refusal(question.wanted, question);
      if (refused != nullptr) {
        fail(operation_name(question.shape.operation), "an algorithm that fits " + describe(question),
             std::string(algorithm_name(question.wanted)) + ", which " + refused, "leave the algorithm to the library");
      }
      return single(question.wanted, question, "the caller wants it");
    }
    const Algorithm imposed = forced(question).algorithm;
    const bool misfit = imposed != Algorithm::automatic && whole_refusal(imposed, question) != nullptr;
    if (imposed != Algorithm::automatic && !misfit)
      return single(imposed, question, "the settings force it (MESHWISE_ALGORITHM)");
    const SelectionRule* const measured = rule(question);
    const Decision decision =
        measured == nullptr
            ? unforced(question)
            : single(measured->algorithm, question, "the measured table says so (MESHWISE_TUNING)", measured->lanes);
    if (misfit) report(imposed, decision.choice.algorithm, question);
    return decision;
  }

  Decision unforced(const Question& question) {
    if (question.shape.operation == Operation::exchange && whole_refusal(Algorithm::exchange, question) == nullptr) {
      return single(Algorithm::exchange, question, "nothing else does it");
    }
    const bool alike = topology_.levels().empty() && topology_.torus_dims().empty();
    if (question.memory && alike && whole_refusal(Algorithm::direct, question) == nullptr) {
      return single(Algorithm::direct, question, "ranks address each other's buffers, all alike: one fused round");
    }
    // In the order of their predictions, so that as few as possible have to be proven.
    for (const detail::Candidate& candidate : rated(question)) {
      if (candidate.refusal != nullptr) continue;
      if (order_refusal(candidate.algorithm, question) != nullptr) continue;
      return Decision{Choice{candidate.algorithm, candidate.lanes},
                      candidate.cost.walked ? "the cheapest prediction" : "nothing that fits could be predicted"};
    }
    Report report;
    report.code = Code::unsupported;
    report.operation = operation_name(question.shape.operation);
    report.expected = "an algorithm for " + describe(question);
    report.found = "none that fits";
    report.remedy = "drop a constraint";
    throw Error(std::move(report));
  }

  /// All algorithms: the cheapest first, then those with too many moves, fewest rounds first, then those that are out.
  detail::List<detail::Candidate> rated(const Question& question) const {
    detail::List<detail::Candidate> candidates;
    for (int k = 0; k < algorithm_count; ++k) {
      detail::Candidate one;
      one.algorithm = static_cast<Algorithm>(k);
      if (one.algorithm == Algorithm::automatic || one.algorithm == Algorithm::custom) continue;
      const AnyGenerator generator = catalogue_.find(one.algorithm);
      one.refusal = refusal(one.algorithm, question);
      if (one.refusal == nullptr) {
        predict(one, generator, question.shape, bytes(question), topology_, wanted_lanes(question), budget_);
        one.cost.rounds = generator.rounds(question.shape);
      }
      std::size_t place = candidates.size();
      while (place > 0 && before(one, candidates[place - 1])) --place;
      candidates.insert(place, one);
    }
    return candidates;
  }

  /// Whether a candidate comes before another one that has been put in its place already.
  static bool before(const detail::Candidate& a, const detail::Candidate& b) {
    if ((a.refusal == nullptr) != (b.refusal == nullptr)) return a.refusal == nullptr;
    if (a.cost.walked != b.cost.walked) return a.cost.walked;
    return a.cost.walked ? detail::cheaper(a.cost, b.cost) : a.cost.rounds < b.cost.rounds;
  }

  void report(Algorithm forced, Algorithm chosen, const Question& question) {
    bool& said = said_[static_cast<std::size_t>(question.shape.operation)];
    if (speaks_ && !said) {
      detail::Log(log_).write(LogLevel::warning, std::string("MESHWISE_ALGORITHM: ") + algorithm_name(forced) +
                                                     " does not fit " + describe(question) + "; " +
                                                     algorithm_name(chosen) + " takes its place");
    }
    said = true;
  }

  Topology topology_;
  Settings::Forced forced_[static_cast<std::size_t>(operation_count)];
  LogLevel log_;
  detail::List<SelectionRule> rules_;  ///< of the table, those for groups of this size
  Catalogue catalogue_;
  bool speaks_;
  std::int64_t budget_;
  bool said_[static_cast<std::size_t>(operation_count)] = {};
  detail::ChoiceMemo memo_;
  detail::List<Proof> proofs_;
};

inline std::string Selector::explain(const Question& question) {
  const Decision decision = decide(question);
  std::string text = describe(question) + ", " + std::to_string(question.bytes) + " bytes (as " +
                     std::to_string(bytes(question)) + ")" +
                     (question.memory    ? ", by memory\n"
                      : question.foreign ? ", by messages between foreign buffers\n"
                                         : ", by messages\n");
  const auto line = [&text](const char* format, auto... values) {
    char buffer[160];
    std::snprintf(buffer, sizeof buffer, format, values...);
    text += buffer;
  };
  line("  %-20s %5s %8s %14s %12s %12s\n", "algorithm", "lanes", "rounds", "busiest bytes", "messages", "microseconds");
  for (detail::Candidate& one : rated(question)) {
    if (one.refusal == nullptr) one.refusal = order_refusal(one.algorithm, question);
    const char mark = one.algorithm == decision.choice.algorithm ? '*' : ' ';
    if (one.refusal != nullptr) {
      line("%c %-20s %s\n", mark, algorithm_name(one.algorithm), one.refusal);
    } else if (!one.cost.walked) {
      line("%c %-20s %5d %8d   too many moves to predict\n", mark, algorithm_name(one.algorithm), one.lanes,
           one.cost.rounds);
    } else {
      line("%c %-20s %5d %8d %14.0f %12.0f %12.3f\n", mark, algorithm_name(one.algorithm), one.lanes, one.cost.rounds,
           one.cost.bytes, one.cost.messages, one.cost.seconds * 1e6);
    }
  }
  text += std::string("chosen: ") + algorithm_name(decision.choice.algorithm) + ", " +
          std::to_string(decision.choice.lanes) + (decision.choice.lanes == 1 ? " lane: " : " lanes: ") +
          decision.reason + "\n";
  return text;
}

}  // namespace meshwise
