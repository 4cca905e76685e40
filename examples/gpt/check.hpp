// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "trainer.hpp"

namespace gpt {

/// The largest differences between a parallel run and the run of one rank so far.
struct Differences {
  double loss = 0;           ///< relative
  double gradient_norm = 0;  ///< relative
  double parameters = 0;     ///< relative, in the L2 norm over all parameters
  std::int64_t steps = 0;

  static constexpr double loss_limit = 1e-4, gradient_limit = 1e-4, parameter_limit = 1e-3;
  bool passed() const {
    // Written so that a NaN fails.
    return loss < loss_limit && gradient_norm < gradient_limit && parameters < parameter_limit;
  }
};

/// Trains the same model on one rank beside the parallel one, and compares them after every step.
///
/// Every rank of the mesh takes part; the first one also holds the run of one rank, on a mesh of its own.
template <class E>
class Check {
 public:
  /// Collective over the mesh's world.
  Check(const Grid& mesh, const Sizes& sizes, const Training& training)
      : mesh_(mesh), alone_(mesh.world().split(mesh.world().rank())) {
    if (!mesh.is_first()) return;
    alone_mesh_.emplace(alone_, std::array{1, 1}, mesh.gemm());
    reference_.emplace(*alone_mesh_, sizes, training);
  }

  bool is_first() const { return reference_.has_value(); }
  /// The mesh of one rank; on the first rank only.
  const Grid& alone() const { return *alone_mesh_; }

  /// After a step of the parallel run: the same step alone, then the comparison. Collective; the tokens are those of
  /// the mesh of one rank (ignored elsewhere).
  template <class MakeTokens>
  void after_step(const Trainer<E>& parallel, const StepResult& result, const MakeTokens& tokens) {
    double difference = 0, size = 0;
    if (reference_) {
      const auto [inputs, targets] = tokens(*alone_mesh_);
      const StepResult alone = reference_->step(inputs, targets);
      raise(worst_.loss, relative(result.loss, alone.loss));
      raise(worst_.gradient_norm, relative(result.gradient_norm, alone.gradient_norm));
    }
    std::vector<std::span<const E>> expected;
    if (reference_) {
      each([&](const std::string&, const auto& p) { expected.push_back(p.local()); }, reference_->parameters());
    }
    std::size_t at = 0;
    each(
        [&](const std::string&, const auto& p) {
          const auto whole = convert<Replicate<tp>>(p);
          if (!reference_) return;
          const std::span<const E> own = expected[at++];
          for (std::size_t i = 0; i < own.size(); ++i) {
            const double a = static_cast<double>(whole.local()[i]), b = static_cast<double>(own[i]);
            difference += (a - b) * (a - b);
            size += b * b;
          }
        },
        parallel.parameters());
    if (reference_) raise(worst_.parameters, std::sqrt(difference) / std::sqrt(std::max(size, 1e-300)));
    ++worst_.steps;
  }

  /// The largest differences; on the first rank only.
  const Differences& worst() const { return worst_; }

 private:
  static double relative(double a, double b) { return std::abs(a - b) / std::max(std::abs(b), 1e-300); }
  static void raise(double& worst, double value) {
    if (!std::isnan(worst) && !(value <= worst)) worst = value;  // a NaN stays
  }

  Grid mesh_;
  Communicator alone_;
  std::optional<Grid> alone_mesh_;
  std::optional<Trainer<E>> reference_;
  Differences worst_;
};

}  // namespace gpt
