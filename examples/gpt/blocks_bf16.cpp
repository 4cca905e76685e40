// SPDX-License-Identifier: Apache-2.0
#include "make_blocks.hpp"

namespace gpt {

template std::unique_ptr<Blocks<bf16>> make_blocks<bf16>(Recomputed, int);

}  // namespace gpt
