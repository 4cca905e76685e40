// SPDX-License-Identifier: Apache-2.0
// What the schedules cost: for each algorithm and operation, by number of ranks, the rounds and the blocks (a p-th of
// the vector) that ranks read from and write to each other, beside the closed formula. See ./run schedules --help.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "meshwise/schedule/verify.hpp"
#include "support/schedule_table.hpp"

namespace {

using meshwise::Algorithm;
using meshwise::Operation;
using meshwise::Shape;

constexpr const char* usage =
    "usage: schedules [OPTION...]\n"
    "  --bytes N        length of the vector, for the column of bytes (default 1048576)\n"
    "  --ranks N,N...   numbers of ranks (default 2 to 33, 64 and 1000)\n"
    "  --algorithm NAME one algorithm only, such as ring\n"
    "  --operation NAME one operation only, such as all_reduce\n"
    "  --check          print only what is not as the formulas say, and fail if there is anything\n"
    "\n"
    "columns: rounds, ours and the formula's; blocks that moves read from other ranks, of the busiest rank and in all; "
    "blocks that they write "
    "to\n"
    "other ranks, likewise; the blocks that the formula speaks of: per rank, on the path (of each round the rank that\n"
    "takes in or gives out most, summed over rounds) or, where it says busiest, of the busiest rank over all rounds; "
    "the\n"
    "same in bytes; the comparison. Root 0; rooted operations in place, others out of place. Up to 64 ranks every\n"
    "schedule is also proven by symbolic execution. torus: two dims, as equal as they can be. hierarchical: nodes of "
    "4\n"
    "ranks. exchange: 4 blocks on each rank, dealt to all ranks in turn.\n";

[[noreturn]] void refuse(const std::string& text) {
  std::fprintf(stderr, "schedules: %s; see --help\n", text.c_str());
  std::exit(2);
}

/// A positive decimal number that is all there is, or 0.
std::int64_t number(const char* text) {
  if (*text < '0' || *text > '9') return 0;
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  return *end == '\0' && value > 0 && value < (1LL << 50) ? value : 0;
}

struct Options {
  std::int64_t bytes = 1 << 20;
  std::vector<int> ranks;
  std::string algorithm;
  std::string operation;
  bool check = false;
};

std::vector<int> numbers(const std::string& text) {
  std::vector<int> result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = text.find(',', begin);
    const std::size_t end = comma == std::string::npos ? text.size() : comma;
    const std::int64_t value = number(text.substr(begin, end - begin).c_str());
    if (value < 2 || value > 100000) refuse("--ranks takes numbers from 2 to 100000, not '" + text + "'");
    result.push_back(static_cast<int>(value));
    begin = end + 1;
  }
  return result;
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const auto value = [&]() -> const char* {
      if (i + 1 == count) refuse(argument + " needs a value");
      return arguments[++i];
    };
    if (argument == "--help") {
      std::fputs(usage, stdout);
      std::exit(0);
    } else if (argument == "--check") {
      options.check = true;
    } else if (argument == "--bytes") {
      const char* text = value();
      options.bytes = number(text);
      if (options.bytes == 0) refuse(std::string("--bytes takes a positive number, not '") + text + "'");
    } else if (argument == "--ranks") {
      options.ranks = numbers(value());
    } else if (argument == "--algorithm") {
      options.algorithm = value();
    } else if (argument == "--operation") {
      options.operation = value();
    } else {
      refuse("unknown option " + argument);
    }
  }
  if (options.ranks.empty()) {
    for (int p = 2; p <= 33; ++p) options.ranks.push_back(p);
    options.ranks.push_back(64);
    options.ranks.push_back(1000);
  }
  return options;
}

/// Rows of the whole table, checked and printed.
class Table {
 public:
  explicit Table(const Options& options) : options_(options) {
    for (const int p : options.ranks) parameters_.emplace_back(std::make_unique<meshwise::table::Parameters>(p));
  }

  void group(Algorithm algorithm, Operation operation) {
    if (!options_.algorithm.empty() && options_.algorithm != meshwise::algorithm_name(algorithm)) return;
    if (!options_.operation.empty() && options_.operation != meshwise::operation_name(operation)) return;
    headed_ = false;
    for (std::size_t i = 0; i < options_.ranks.size(); ++i) {
      const int p = options_.ranks[i];
      const meshwise::AnyGenerator generator = parameters_[i]->generator(algorithm);
      const Shape shape = parameters_[i]->shape(operation, p);
      if (generator.supports(shape)) row(algorithm, generator, shape);
    }
  }

  int finish() const {
    if (rows_ == 0) refuse("there is no such schedule");
    std::printf("%s%d schedules: %d equal to the formulas, %d differ as explained, %d are wrong; %d proven\n",
                options_.check ? "" : "\n", rows_, equal_, rows_ - equal_ - wrong_, wrong_, proven_);
    return wrong_ == 0 ? 0 : 1;
  }

 private:
  void row(Algorithm algorithm, const meshwise::AnyGenerator& generator, const Shape& shape) {
    const meshwise::table::Counts counts = meshwise::table::count(generator, shape);
    const meshwise::table::Formula formula = meshwise::table::formula(algorithm, shape);
    const meshwise::table::Difference difference = meshwise::table::compare(counts, formula);
    bool good = difference.expected;
    std::string comment = "equal";
    if (!difference.none()) {
      comment = difference.expected ? formula.why : "NOT AS EXPECTED";
      if (difference.blocks != 0) comment = signed_text(difference.blocks) + " blocks: " + comment;
      if (difference.rounds != 0) comment = signed_text(difference.rounds) + " rounds: " + comment;
    } else if (!difference.expected) {
      comment = "equal, but a difference was expected";
    }
    if (shape.ranks <= 64) {
      const meshwise::Verdict verdict = prove(generator, shape);
      if (!verdict.ok()) {
        comment += std::string("; WRONG: ") + meshwise::text(verdict.fault);
        good = false;
      } else if (!(verdict.read == counts.read && verdict.written == counts.written)) {
        comment += "; WRONG: counts differ from those of the proof";
        good = false;
      } else {
        ++proven_;
      }
    }
    ++rows_;
    equal_ += difference.none() && good ? 1 : 0;
    wrong_ += good ? 0 : 1;
    if (options_.check && good) return;
    const bool path = formula.measure == meshwise::table::Measure::path;
    if (!headed_) {
      head(algorithm, shape.operation, path);
      headed_ = true;
    }
    const std::int64_t blocks = meshwise::table::blocks_of(counts, formula);
    // An exchange has several blocks on each rank.
    const double length = static_cast<double>(options_.bytes) / meshwise::blocks(shape) *
                          (shape.operation == Operation::all_to_all ? shape.ranks : 1);
    std::printf("%6d %7d %7lld %9lld %11lld %9lld %11lld %9lld %9lld %12.0f  %s\n", shape.ranks, counts.rounds,
                static_cast<long long>(formula.rounds), static_cast<long long>(counts.read.most),
                static_cast<long long>(counts.read.total), static_cast<long long>(counts.written.most),
                static_cast<long long>(counts.written.total), static_cast<long long>(blocks),
                static_cast<long long>(formula.blocks), static_cast<double>(blocks) * length, comment.c_str());
  }

  static void head(Algorithm algorithm, Operation operation, bool path) {
    const meshwise::table::Formula even = meshwise::table::formula(algorithm, Shape{operation, 4, 0, false, nullptr});
    const meshwise::table::Formula uneven = meshwise::table::formula(algorithm, Shape{operation, 3, 0, false, nullptr});
    std::printf("\n%s %s: rounds %s, blocks %s%s", meshwise::operation_name(operation),
                meshwise::algorithm_name(algorithm), even.rounds_text, even.blocks_text, path ? "" : " (busiest)");
    if (std::string(even.rounds_text) != uneven.rounds_text || std::string(even.blocks_text) != uneven.blocks_text) {
      std::printf("; if p is no power of two, rounds %s, blocks %s", uneven.rounds_text, uneven.blocks_text);
    }
    std::printf("\n%6s %7s %7s %9s %11s %9s %11s %9s %9s %12s  %s\n", "p", "rounds", "formula", "read", "in all",
                "written", "in all", "blocks", "formula", "bytes", "compared");
  }

  static std::string signed_text(std::int64_t value) { return (value > 0 ? "+" : "") + std::to_string(value); }

  static meshwise::Verdict prove(const meshwise::AnyGenerator& generator, const Shape& shape) {
    meshwise::Schedule schedule{shape, generator.scratch_slots(shape), {}};
    for (int k = 0; k < generator.rounds(shape); ++k) {
      meshwise::Round round;
      for (int rank = 0; rank < shape.ranks; ++rank) {
        for (meshwise::Move& move : generator.by(shape, rank, k)) round.push_back(std::move(move));
      }
      schedule.rounds.push_back(std::move(round));
    }
    return meshwise::verify(schedule);
  }

  const Options& options_;
  std::vector<std::unique_ptr<meshwise::table::Parameters>> parameters_;
  bool headed_ = false;
  int rows_ = 0;
  int equal_ = 0;
  int wrong_ = 0;
  int proven_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
  const Options options = parse(count, arguments);
  Table table(options);
  for (const Operation operation : meshwise::table::operations) {
    for (int a = 0; a < meshwise::algorithm_count; ++a) table.group(static_cast<Algorithm>(a), operation);
  }
  return table.finish();
}
