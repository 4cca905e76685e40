// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "meshwise/schedule/algorithm.hpp"
#include "meshwise/schedule/contract.hpp"
#include "meshwise/schedule/selection_table.hpp"

namespace meshwise {

/// What an algorithm is asked for: all of it the same on all ranks.
struct Question {
  Shape shape;
  std::uint64_t bytes = 0;    ///< of the vector that is cut in blocks, the larger side of one rank's buffers
  bool memory = false;        ///< ranks address each other's buffers
  bool commutative = true;    ///< contributions may be combined in another order than that of the ranks
  bool reproducible = false;  ///< only schedules whose bits are proven not to depend on the algorithm
  bool one_round = false;     ///< only schedules of at most one round without scratch
  Algorithm wanted = Algorithm::automatic;  ///< the caller's own choice
  int lanes = 0;                            ///< the caller's own choice; 0: the selector's
  bool foreign = false;                     ///< not by memory because there are buffers that not all ranks address
  bool narrow = false;  ///< elements round whenever a partial result of them is stored: bf16, fp16, fp8

  constexpr Way way() const { return memory ? Way::memory : foreign ? Way::foreign : Way::messages; }
};

/// What to run.
struct Choice {
  Algorithm algorithm = Algorithm::direct;
  int lanes = 1;

  friend constexpr bool operator==(const Choice&, const Choice&) = default;
};

/// A question in words, without its size and what the caller wants.
inline std::string describe(const Question& question) {
  const Shape& shape = question.shape;
  std::string text = std::string(operation_name(shape.operation)) + " on " + std::to_string(shape.ranks) + " ranks";
  if (rooted(shape.operation)) text += ", root " + std::to_string(shape.root);
  if (shape.in_place) text += ", in place";
  if (question.reproducible) text += ", reproducible";
  if (!question.commutative) text += ", in rank order";
  if (question.one_round) text += ", in one round";
  return text;
}

}  // namespace meshwise
