// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "meshwise/core/error.hpp"

namespace meshwise {

/// What the optimizer multiplies gradients by, and the norm that says so.
class Clipped {
 public:
  Clipped(double norm, double scale) : norm_(norm), scale_(scale) {}

  /// The norm of the gradients without their loss scale, before they were clipped.
  double norm() const { return norm_; }
  /// Whether the gradients are numbers. If not, skip the step on all ranks: parameters, state and step stay.
  bool finite() const { return is_number(norm_); }
  /// For adamw_step's gradient_scale: takes the loss scale off and clips, in one multiplication. Errors: gradients that
  /// are not finite, on all ranks alike, so that a trainer that does not ask `finite` ends instead of learning NaN.
  double gradient_scale() const {
    if (!finite()) {
      fail("Clipped::gradient_scale", "gradients with a finite norm", "the norm " + std::to_string(norm_),
           "skip the step where finite() says no, or find out why: the learning rate, the data, a narrow element");
    }
    return scale_;
  }

  static bool is_number(double x) { return x - x == 0; }

 private:
  double norm_, scale_;
};

/// Clips gradients by their global norm: to at most `most`, with their direction kept.
///
/// norm: of all gradients as they are, see GlobalNorm: the same bits on all ranks, so that all of them decide alike.
/// most: for the norm of the gradients without their loss scale; infinity clips nothing. loss_scale: what the gradients
/// have been multiplied by on the way, see LossScale. Norms up to `most`, and of 0, change nothing: the scale is then
/// 1 / loss_scale to the bit. Cost: none. Errors: a `most` or a loss_scale that is not positive.
/// Source: Pascanu, Mikolov, Bengio, "On the difficulty of training recurrent neural networks", arXiv 1211.5063.
[[nodiscard]] inline Clipped clip(double norm, double most, double loss_scale = 1.0) {
  if (!(most > 0)) {
    fail("clip", "a positive bound", std::to_string(most), "pass an infinite one to clip nothing");
  }
  if (!(loss_scale > 0) || !Clipped::is_number(loss_scale)) {
    fail("clip", "a positive loss scale", std::to_string(loss_scale), "leave it out if the loss was not scaled");
  }
  const double unscaled = norm / loss_scale;
  return {unscaled, unscaled > most ? most / norm : 1.0 / loss_scale};
}

}  // namespace meshwise
