// SPDX-License-Identifier: Apache-2.0
// What the strategies send and hold, by the ledger's meters, beside the formulas. See ./run volumes --help.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "table.hpp"

namespace {

using volumes::Pair;
using volumes::Row;
using volumes::Table;

constexpr const char* usage =
    "usage: volumes [OPTION...]\n"
    "  --check [FILE]  print only what is not as the formulas say, and fail if there is anything; FILE: or if it does "
    "not\n"
    "                  hold these tables, word for word\n"
    "  --dry-run [PARAMETERS [RANKS]]\n"
    "                  only the states of a model without memory, 7500000000 parameters on 64 ranks unless said\n"
    "\n"
    "Every line runs the strategy on 4 ranks: measured is what the ledger counts, the mean over the ranks unless it "
    "says\n"
    "otherwise, and quotient is measured / formula, exact: 1 means equal to the byte.\n";

[[noreturn]] void refuse(const std::string& text) {
  std::fprintf(stderr, "volumes: %s; see --help\n", text.c_str());
  std::exit(2);
}

/// A number from 1 to `most`.
std::uint64_t whole_number(const std::string& text, std::uint64_t most) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text.c_str(), &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || value < 1 || value > most) {
    refuse("--dry-run takes numbers from 1 to " + std::to_string(most) + ", not '" + text + "'");
  }
  return value;
}

std::string number(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

std::string head() {
  std::string text = "n = t = 4 ranks; θ parameters, β = 2 bytes per element (bf16); m micro-batches, 1 unless said.\n";
  for (std::size_t i = 0; i < volumes::model_count; ++i) {
    const auto& m = volumes::models[i];
    text += (i == 0 ? "\nModel A: " : "Model B: ") + std::to_string(m.layers) +
            " layers, h = " + std::to_string(m.hidden) + ", " + std::to_string(m.heads) + " heads, " +
            std::to_string(m.keys()) + " of keys in context parallelism, V = " + std::to_string(m.vocab) +
            ", s = " + std::to_string(m.sequence) + ", b = " + std::to_string(m.batch) +
            ", θ = " + std::to_string(m.parameters()) + (i == 0 ? ".\n" : ": 4 divides its layers and nothing else.\n");
  }
  return text;
}

std::string line(const Row& row) {
  std::string text = "| " + row.name + " | " + row.formula + " |";
  for (std::size_t i = 0; i < volumes::model_count; ++i) {
    text += " " + number(static_cast<double>(row.of[i].measured) / row.divisor[i]) + " | " + quotient(row.of[i]) + " |";
  }
  return text + "\n";
}

bool equal(const Row& row) {
  for (const Pair& pair : row.of) {
    if (pair.measured != pair.formula || pair.formula == 0) return false;
  }
  return true;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string volumes::quotient(const Pair& pair) {
  if (pair.measured == pair.formula) return "1";
  char text[64];
  std::snprintf(text, sizeof text, "%.9f", static_cast<double>(pair.measured) / static_cast<double>(pair.formula));
  return text;
}

int main(int count, char** arguments) {
  bool check = false, dry = false;
  volumes::DryModel model;
  std::string document;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--help") {
      std::fputs(usage, stdout);
      return 0;
    }
    if (argument == "--check") {
      check = true;
      if (i + 1 < count && arguments[i + 1][0] != '-') document = arguments[++i];
    } else if (argument == "--dry-run") {
      dry = true;
      if (i + 1 < count && arguments[i + 1][0] != '-') {
        model.parameters = whole_number(arguments[++i], std::uint64_t{1} << 46);
        if (i + 1 < count && arguments[i + 1][0] != '-')
          model.ranks = static_cast<int>(whole_number(arguments[++i], 4096));
      }
    } else {
      refuse("unknown option " + argument);
    }
  }

  int rows = 0, wrong = 0;
  std::string text;
  if (!dry) {
    text = head();
    for (const auto make : {&volumes::data_parallel, &volumes::memory, &volumes::layers, &volumes::context}) {
      const Table table = make();
      text += "\n" + table.title + ": " + table.unit + "\n\n" +
              "| | formula | A measured | quotient | B measured | quotient |\n|---|---|---|---|---|---|\n";
      for (const Row& row : table.rows) {
        text += line(row);
        ++rows;
        if (equal(row)) continue;
        ++wrong;
        if (check) std::printf("not as the formula says: %s", line(row).c_str());
      }
    }
    text += "\n";
  }
  text += volumes::dry_run(model, wrong);
  if (!check) std::fputs(text.c_str(), stdout);
  if (!document.empty() && contents(document).find(text) == std::string::npos) {
    ++wrong;
    std::printf("%s does not hold the tables as they are: put in what ./run volumes prints\n", document.c_str());
  }
  if (check) std::printf("%d lines, %d wrong\n", rows, wrong);
  return wrong == 0 ? 0 : 1;
}
