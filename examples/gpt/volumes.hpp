// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "meshwise/train/global_norm.hpp"
#include "trainer.hpp"

namespace gpt {

/// One line of what a training step must communicate, summed over all ranks.
struct Volume {
  std::string axis;  ///< or several that communicate as one: "dp+tp"
  std::string what;
  std::string formula;  ///< bytes over all ranks
  std::uint64_t bytes = 0;
};

/// What the letters of the formulas mean.
inline constexpr const char* volume_legend =
    "c, t: ranks along cp, tp; D = dp c, N = D t; m: micro-batches; L: layers; b, s, h: batch, sequence, hidden; k: "
    "heads x "
    "head_dim; e, a: bytes per element, and per accumulated one; n: parameters, o: of these outside of the blocks";

/// How many ranks there are along the axes of the mesh.
struct MeshSizes {
  int data = 1, context = 1, tensor = 1;
};

/// What one training step communicates by the transition table: exact for every split, even or not. Groups of one
/// communicate nothing.
inline std::vector<Volume> step_volumes(const Sizes& s, std::uint64_t batch, std::uint64_t micro_batches,
                                        const MeshSizes& mesh, const Training& training) {
  const auto d = static_cast<std::uint64_t>(mesh.data), c = static_cast<std::uint64_t>(mesh.context),
             t = static_cast<std::uint64_t>(mesh.tensor);
  const std::uint64_t shared = d * c, all = shared * t, m = micro_batches, layers = s.layers;
  const std::uint64_t e = training.precision == Precision::f64 ? 8 : training.precision == Precision::f32 ? 4 : 2;
  const std::uint64_t a = training.precision == Precision::f64 ? 8 : 4;
  const std::uint64_t bs = batch * s.sequence, bsh = bs * s.hidden, bsk = bs * s.heads * s.head_dim;
  const bool full = training.recompute == Recomputed::full;
  const auto name = [](std::uint64_t dp_ranks, std::uint64_t cp_ranks, std::uint64_t tp_ranks) {
    std::string text;
    for (const auto& [axis, ranks] : {std::pair{"dp", dp_ranks}, {"cp", cp_ranks}, {"tp", tp_ranks}}) {
      if (ranks > 1) text += (text.empty() ? "" : "+") + std::string(axis);
    }
    return text;
  };
  std::vector<Volume> volumes;
  const auto add = [&](const std::string& axis, const char* what, const std::string& formula, std::uint64_t bytes) {
    if (bytes != 0) volumes.push_back({axis, what, formula, bytes});
  };

  add("tp", "blocks: all-gathers", full ? "6 L (t-1) bsh e" : "4 L (t-1) bsh e",
      (full ? 6 : 4) * layers * (t - 1) * bsh * e);
  add("tp", "blocks: reduce-scatters", full ? "5 L (t-1) bsh e" : "4 L (t-1) bsh e",
      (full ? 5 : 4) * layers * (t - 1) * bsh * e);
  add("tp", "embedding and head", "4 (t-1) bsh e", 4 * (t - 1) * bsh * e);
  add("tp", "loss: three all-reduces", "3 * 2 (t-1) bs a", 6 * (t - 1) * bs * a);
  add("cp", "keys and values, there and back", full ? "L (c-1) 2 bsk (3 e + a)" : "L (c-1) 2 bsk (2 e + a)",
      layers * (c - 1) * 2 * bsk * ((full ? 3 : 2) * e + a));

  // Parameters that tp splits are shared by D ranks, the others by all N; those outside of the blocks are used twice.
  const ParameterCounts n = count_parameters(s), outside = count_outer(s);
  const auto stage = [&](const std::string& axis, const std::string& ranks, std::uint64_t others, std::uint64_t count,
                         std::uint64_t used_twice, const char* what) {
    const std::string each = "(" + ranks + "-1) ";
    switch (training.zero) {
      case 1: add(axis, what, "2 " + each + "n e", 2 * others * count * e); break;
      case 2: add(axis, what, "(m+1) " + each + "n e", (m + 1) * others * count * e); break;
      case 3: add(axis, what, "m " + each + "(3 n + o) e", m * others * (3 * count + used_twice) * e); break;
      default: add(axis, what, "2 " + each + "n e", 2 * others * count * e);
    }
  };
  stage(name(d, c, 1), "D", shared - 1, n.split, outside.split, "parameters that tp splits");
  stage(name(d, c, t), "N", all - 1, n.whole, outside.whole, "parameters that it does not");
  add(name(d, c, 1), "loss", "t 2 (D-1) a", t * 2 * (shared - 1) * a);
  add(name(d, c, t), "gradient norm", "2 (N-1) 552", 2 * (all - 1) * GlobalNorm<Grid>::bytes);
  return volumes;
}

}  // namespace gpt
