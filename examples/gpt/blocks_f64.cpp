// SPDX-License-Identifier: Apache-2.0
#include "make_blocks.hpp"

namespace gpt {

template std::unique_ptr<Blocks<double>> make_blocks<double>(Recomputed, int);

}  // namespace gpt
