// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "meshwise/train/global_norm.hpp"
#include "model.hpp"

namespace gpt {

/// One line of what a training step must communicate, summed over all ranks.
struct Volume {
  std::string axis;  ///< or several that communicate as one: "dp+tp"
  std::string what;
  std::string formula;  ///< bytes over all ranks; t and d are the sizes of tp and dp
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
};

/// The numbers of parameters that tp splits and that it replicates.
struct ParameterCounts {
  std::uint64_t split = 0;
  std::uint64_t replicated = 0;
};
inline ParameterCounts count_parameters(const Sizes& s) {
  const std::uint64_t h = s.hidden, inner = s.heads * s.head_dim;
  ParameterCounts n;
  n.split =
      s.vocab * h + s.sequence * h + s.layers * (3 * (h * inner + inner) + inner * h + h * s.ffn + s.ffn + s.ffn * h);
  n.replicated = s.layers * 6 * h + 2 * h;
  return n;
}

/// What one training step communicates by the transition table: exact for every split, even or not. Groups of one
/// communicate nothing. calls: over all ranks, buckets apart, whose number depends on their size.
inline std::vector<Volume> step_volumes(const Sizes& s, std::uint64_t batch, int d, int t, std::size_t element) {
  const auto D = static_cast<std::uint64_t>(d), T = static_cast<std::uint64_t>(t), e = std::uint64_t{element};
  const std::uint64_t bsh = batch * s.sequence * s.hidden, bs = batch * s.sequence, layers = s.layers;
  const ParameterCounts n = count_parameters(s);
  std::vector<Volume> all;
  const auto add = [&](const char* axis, std::uint64_t ranks, const char* what, const char* formula,
                       std::uint64_t calls, std::uint64_t bytes) {
    if (ranks > 1) all.push_back({axis, what, formula, calls * D * T, bytes});
  };
  add("tp", T, "blocks: all-gathers", "4 L (t-1) bsh e", 4 * layers, 4 * layers * (T - 1) * bsh * e);
  add("tp", T, "blocks: reduce-scatters", "4 L (t-1) bsh e", 4 * layers, 4 * layers * (T - 1) * bsh * e);
  add("tp", T, "embedding and head", "4 (t-1) bsh e", 4, 4 * (T - 1) * bsh * e);
  add("tp", T, "loss: three all-reduces", "3 * 2 (t-1) bs e", 3, 6 * (T - 1) * bs * e);
  add("tp", T, "gradients of replicated parameters", "d 2 (t-1) n_replicated e", 0, D * 2 * (T - 1) * n.replicated * e);
  add("dp", D, "gradients", "2 (d-1) (n_split + t n_replicated) e", 0, 2 * (D - 1) * (n.split + T * n.replicated) * e);
  add("dp", D, "loss", "t 2 (d-1) e", 1, T * 2 * (D - 1) * e);
  // A sum over all ranks at once.
  add(D == 1   ? "tp"
      : T == 1 ? "dp"
               : "dp+tp",
      D * T, "gradient norm", "2 (d t - 1) 552", 1, 2 * (D * T - 1) * GlobalNorm<Grid>::bytes);
  return all;
}

}  // namespace gpt
