// SPDX-License-Identifier: Apache-2.0
#include "trainer.hpp"

namespace gpt {

template <class E>
std::unique_ptr<Trainer> make_staged_trainer(const Grid& mesh, const Sizes& sizes, const Training& training);
extern template std::unique_ptr<Trainer> make_staged_trainer<float>(const Grid&, const Sizes&, const Training&);
extern template std::unique_ptr<Trainer> make_staged_trainer<bf16>(const Grid&, const Sizes&, const Training&);
extern template std::unique_ptr<Trainer> make_staged_trainer<double>(const Grid&, const Sizes&, const Training&);

std::unique_ptr<Trainer> make_trainer(const Grid& mesh, const Sizes& sizes, const Training& training) {
  switch (training.precision) {
    case Precision::bf16: return make_staged_trainer<bf16>(mesh, sizes, training);
    case Precision::f64: return make_staged_trainer<double>(mesh, sizes, training);
    default: return make_staged_trainer<float>(mesh, sizes, training);
  }
}

}  // namespace gpt
