// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../../examples/gpt/trainer.hpp"
#include "../parallel/support.hpp"

namespace test {

/// The tokens of one step, and the tokens that follow them: a function of the step and the position only.
template <class Tokens>
Tokens tokens_of(const Grid& mesh, std::size_t sequences, const gpt::Sizes& z, std::uint64_t step,
                 std::uint64_t shift) {
  return generate<Tokens>(mesh, {sequences, z.sequence}, [&](const auto& index) {
    const std::uint64_t b = index.template position<batch>(), s = index.template position<seq>() + shift;
    // Half noise, half a rule that can be learnt.
    const std::uint64_t noise = random_bits(stream_seed(77, step), b * 1000 + s);
    return static_cast<std::int32_t>((noise % 4 == 0 ? noise / 4 : b + 3 * s) % z.vocab);
  });
}

/// Every parameter (or gradient) of a model whole, in the order of gpt::each. Collective.
template <class Model>
std::vector<std::vector<double>> gathered(const Model& model) {
  std::vector<std::vector<double>> all;
  gpt::each(
      [&]<class T>(const std::string&, const T& x) {
        if constexpr (AnyTensor<T>) {
          all.push_back(whole(x));
        } else {
          all.push_back(whole(*x));
        }
      },
      model);
  return all;
}

}  // namespace test
