// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gpt {

/// The elements of parameters, gradients and activations. With bf16 the optimizer keeps a master in f32, and the loss is
/// computed in it.
enum class Precision : std::uint8_t { f32, bf16, f64 };

/// What blocks compute again in their backward instead of keeping it; see meshwise::Recompute.
enum class Recomputed : std::uint8_t { none, selective, full };

}  // namespace gpt
