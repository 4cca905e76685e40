// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace volumes {

/// A model of the kind that examples/gpt trains, and the batch of one micro-batch.
struct Model {
  std::size_t layers, hidden, heads, vocab, sequence, batch;

  std::size_t ffn() const { return 4 * hidden; }
  std::size_t head_dim() const { return hidden / heads; }
  std::size_t keys() const { return heads % 2 == 0 ? heads / 2 : heads / 3; }  ///< heads of keys, where they are shared
  /// Parameters of what is gathered and reduced at once: the embeddings, each block, the last norm.
  std::vector<std::size_t> units() const {
    std::vector<std::size_t> result{(vocab + sequence) * hidden};
    for (std::size_t l = 0; l < layers; ++l) result.push_back(12 * hidden * hidden + 13 * hidden);
    result.push_back(2 * hidden);
    return result;
  }
  std::uint64_t parameters() const {
    std::uint64_t all = 0;
    for (const std::size_t n : units()) all += n;
    return all;
  }
};

/// The small one is divisible by 4 in every way, the other one in none.
inline constexpr Model models[] = {{2, 64, 4, 256, 32, 4}, {4, 162, 9, 1002, 97, 3}};
inline constexpr std::size_t model_count = 2;
inline constexpr int ranks = 4;

/// What a meter says and what the formula says, summed over the ranks.
struct Pair {
  std::uint64_t measured = 0;
  std::uint64_t formula = 0;
};

/// Measured / formula: exactly 1 if they are equal.
std::string quotient(const Pair& pair);

/// One line of a table.
struct Row {
  std::string name;
  std::string formula;  ///< of one rank, as text
  Pair of[model_count];
  double divisor[model_count] = {1, 1};  ///< what the sums are shown as parts of
};

/// Lines under one heading.
struct Table {
  std::string title;
  std::string unit;  ///< of the numbers
  std::vector<Row> rows;
};

Table data_parallel();
Table memory();
Table layers();
Table context();

/// What is sized without memory.
struct DryModel {
  std::uint64_t parameters = 7'500'000'000;
  int ranks = 64;
};
/// The states of a model, in Markdown. wrong: counts what is not as it should be.
std::string dry_run(const DryModel& model, int& wrong);

}  // namespace volumes
