// SPDX-License-Identifier: Apache-2.0
#include "list.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "../support/sanitized.hpp"
#include "cases.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/core/error.hpp"

namespace conformance {

namespace {

/// How many samples are run, with consecutive seeds.
constexpr std::uint64_t samples = building::sanitized ? 1 : 2;

/// Cases that have found faults, which samples do not meet with certainty.
constexpr const char* once_wrong[] = {
    // Blocks of different sizes, cut by lanes in different places, took turns in one scratch slot.
    "operation=reduce_scatter_v algorithm=torus element=i8 combination=max place=apart count=tile+1 ragged=ascending "
    "ranks=5 lanes=3 how=blocking reproducible=no wire=none topology=torus seed=46287281",
    "operation=reduce_scatter_v algorithm=ring element=i8 combination=max place=apart count=tile+1 ragged=ascending "
    "ranks=5 lanes=3 how=blocking reproducible=no wire=none topology=flat seed=46287281",
    "operation=reduce algorithm=ring element=f32 combination=sum place=apart count=tile+1 ranks=4 root=last lanes=3 "
    "how=blocking reproducible=no wire=none topology=flat values=exact seed=252943395",
    "operation=exclusive_scan algorithm=automatic element=i8 combination=bit_and place=in_place count=large ranks=8 "
    "lanes=3 how=blocking reproducible=no wire=none topology=flat seed=98308847",
    // Small vectors rounded a prefix once, larger ones as often as there are ranks before.
    "operation=inclusive_scan algorithm=automatic element=bf16 combination=sum place=in_place count=odd ranks=6 "
    "lanes=automatic how=started reproducible=yes wire=none topology=flat values=rough seed=319129424",
    "operation=exclusive_scan algorithm=automatic element=f16 combination=sum place=apart count=64 ranks=6 "
    "lanes=automatic how=started reproducible=yes wire=f8e5m2 topology=nodes values=rough seed=231178164",
    // The caller's own schedule was not asked whether it keeps the order.
    "operation=all_reduce algorithm=custom element=i64 combination=sum place=in_place count=odd ranks=4 lanes=3 "
    "how=blocking reproducible=yes wire=none topology=flat seed=905999919",
};

std::vector<Case> cases_once_wrong() {
  std::vector<Case> cases;
  for (const char* line : once_wrong) {
    Case c;
    if (!parse(line, c)) throw std::logic_error(std::string("no case: ") + line);
    cases.push_back(c);
  }
  return cases;
}

/// Adds a part to the whole.
void add(Outcome& whole, const Outcome& part) {
  whole.cases += part.cases;
  whole.refused += part.refused;
  whole.failures.insert(whole.failures.end(), part.failures.begin(), part.failures.end());
}

/// Runs some cases one after another and reports a line for each; the first Error that is no refusal ends it.
class Rows final : public Program {
 public:
  Rows(const std::vector<Case>& cases, std::size_t first) : cases_(cases), first_(first) {
    verbose_ = std::getenv("MESHWISE_VERBOSE") != nullptr;
  }

  std::string run(meshwise::Communicator& communicator) override {
    std::string report;
    for (std::size_t k = first_; k < cases_.size(); ++k) {
      if (verbose_ && communicator.rank() == 0) std::fprintf(stderr, "%s\n", text(cases_[k]).c_str());
      try {
        report += run_case(communicator, cases_[k]) + "\n";
        if (expected_of(cases_[k]) == Expected::refused) require_usable(communicator);
      } catch (const std::exception& error) {
        report += std::string("failed: ") + error.what() + "\n";
        communicator.abort("a case has failed");
        break;
      }
    }
    return report;
  }

 private:
  static void require_usable(meshwise::Communicator& communicator) {
    std::int32_t sum = 0;
    const std::int32_t one = 1;
    meshwise::all_reduce(communicator, std::span(&one, 1), std::span(&sum, 1));
    if (sum != communicator.size()) throw std::runtime_error("unusable after a refusal");
  }

  const std::vector<Case>& cases_;
  std::size_t first_;
  bool verbose_;
};

std::vector<std::string> lines_of(const std::string& report) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < report.size();) {
    const std::size_t end = report.find('\n', at);
    lines.push_back(report.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// What is wrong with the ranks' reports on one case; empty if nothing is.
std::string complaint(const Case& c, const std::vector<std::string>& reports) {
  const bool refused = expected_of(c) == Expected::refused;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const std::string& report = reports[rank];
    const std::string who = "rank " + std::to_string(rank) + " ";
    const bool works = report.compare(0, 2, "ok") == 0;
    const bool refuses = report.compare(0, 7, "refused") == 0;
    if (!works && !refuses) return who + report;
    if (works && refused) return who + "accepted what must be refused";
    if (refuses && !refused) return who + report;
    if (works && report != reports[0]) return who + "got other bits than rank 0";
  }
  return "";
}

/// The sample of a seed, drawn once for all worlds.
const std::vector<Case>& sample_of(std::uint64_t seed) {
  static std::map<std::uint64_t, std::vector<Case>> drawn;
  const auto [at, is_new] = drawn.try_emplace(seed);
  if (is_new) at->second = covering_sample(seed);
  return at->second;
}

std::uint64_t seed_wanted() {
  const char* const wanted = std::getenv("MESHWISE_SEED");
  return wanted == nullptr ? 20240229 : std::strtoull(wanted, nullptr, 10);
}

/// Cases that run on the same ranks.
void run_together(World& world, const std::vector<Case>& cases, Outcome& outcome) {
  constexpr std::size_t most_failures = 40;
  for (std::size_t first = 0; first < cases.size() && outcome.failures.size() < most_failures;) {
    Rows rows(cases, first);
    const std::vector<std::string> reports = world.run(topology_of(cases[first]), rows);
    std::vector<std::vector<std::string>> lines;
    for (const std::string& report : reports) lines.push_back(lines_of(report));
    std::size_t k = first;
    for (bool broken = false; k < cases.size() && !broken; ++k) {
      std::vector<std::string> row;
      std::string deepest;
      for (const auto& rank : lines) {
        row.push_back(k - first < rank.size() ? rank[k - first] : "did not come so far");
        // Ranks that were only aborted have the least to say.
        if (row.back().compare(0, 6, "failed") != 0 && row.back().compare(0, 7, "did not") != 0) continue;
        broken = true;
        const bool echo =
            row.back().find("aborted") != std::string::npos || row.back().find("stopped by") != std::string::npos;
        if (deepest.empty() || !echo) deepest = "rank " + std::to_string(row.size() - 1) + " " + row.back();
      }
      const std::string fault = broken ? deepest : complaint(cases[k], row);
      ++outcome.cases;
      if (expected_of(cases[k]) == Expected::refused) ++outcome.refused;
      if (!fault.empty()) {
        outcome.failures.push_back("MESHWISE_CASE=\"" + text(cases[k]) + "\" on " + world.name() + ": " + fault);
      }
    }
    first = k;
  }
}

}  // namespace

Outcome run_cases(World& world, const std::vector<Case>& cases) {
  std::map<std::pair<int, int>, std::vector<Case>> launches;
  for (const Case& c : cases) launches[{c.size(), c.value[topology]}].push_back(c);
  Outcome outcome;
  for (const auto& [where, together] : launches) run_together(world, together, outcome);
  return outcome;
}

Outcome run_list(World& world, std::size_t every) {
  const char* const full = std::getenv("MESHWISE_FULL");
  const bool wants_all = full != nullptr && std::string_view(full) == "1";
  const char* const single = std::getenv("MESHWISE_CASE");
  const std::uint64_t seed = seed_wanted();
  Outcome outcome;
  std::string what = "samples that cover all pairs";
  if (single != nullptr) {
    Case c;
    if (!parse(single, c)) {
      outcome.failures.push_back(std::string("MESHWISE_CASE is no case: ") + single);
      return outcome;
    }
    what = "one case";
    outcome = run_cases(world, {c});
  } else if (wants_all && every == 1) {
    what = "the product";
    for (int ranks = 1; ranks <= 9; ++ranks) {
      for (int wiring = 0; wiring < levels(topology); ++wiring) {
        add(outcome, run_cases(world, product(ranks, static_cast<Wiring>(wiring), seed)));
      }
    }
  } else {
    outcome = run_cases(world, cases_once_wrong());
    const std::size_t step = wants_all ? 1 : every * (building::sanitized ? 3 : 1);
    if (step > 1) what = "each " + std::to_string(step) + "th of a sample that covers all pairs";
    // Worlds that run a part run different ones.
    std::size_t first = 0;
    for (const char letter : std::string_view(world.name())) first += static_cast<unsigned char>(letter);
    for (std::uint64_t k = 0; k < (step > 1 ? 1 : samples); ++k) {
      const std::vector<Case>& sample = sample_of(seed + k);
      std::vector<Case> some;
      for (std::size_t i = first % step; i < sample.size(); i += step) some.push_back(sample[i]);
      add(outcome, run_cases(world, some));
    }
  }
  std::printf("conformance of %s: %s, MESHWISE_SEED=%llu, %zu cases, %zu of them refused, %zu failed\n", world.name(),
              what.c_str(), static_cast<unsigned long long>(seed), outcome.cases, outcome.refused,
              outcome.failures.size());
  std::fflush(stdout);
  return outcome;
}

}  // namespace conformance
