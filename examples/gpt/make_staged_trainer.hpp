// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "staged_trainer.hpp"

namespace gpt {

/// The trainer of the stage that is asked for. Defined for each E in a file of its own.
template <class E>
std::unique_ptr<Trainer> make_staged_trainer(const Grid& mesh, const Sizes& sizes, const Training& training) {
  switch (training.zero) {
    case 1: return std::make_unique<StagedTrainer<Stage1, E>>(mesh, sizes, training);
    case 2: return std::make_unique<StagedTrainer<Stage2, E>>(mesh, sizes, training);
    case 3: return std::make_unique<StagedTrainer<Stage3, E>>(mesh, sizes, training);
    default: return std::make_unique<StagedTrainer<Stage0, E>>(mesh, sizes, training);
  }
}

}  // namespace gpt
