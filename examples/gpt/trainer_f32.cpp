// SPDX-License-Identifier: Apache-2.0
#include "make_staged_trainer.hpp"

namespace gpt {

template std::unique_ptr<Trainer> make_staged_trainer<float>(const Grid&, const Sizes&, const Training&);

}  // namespace gpt
