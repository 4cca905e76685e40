// SPDX-License-Identifier: Apache-2.0
#include "make_blocks.hpp"

namespace gpt {

template std::unique_ptr<Blocks<float>> make_blocks<float>(Recomputed, int);

}  // namespace gpt
