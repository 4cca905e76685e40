// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "meshwise/tensor/layer_norm.hpp"
#include "trainer.hpp"

namespace gpt {

/// Activations between blocks: the sequence is split over cp, and what that leaves over tp.
template <class E>
using Activations = Tensor<E, Dims<batch, seq, hidden>, Layout<Grid, Shard<batch, dp>, Shard<seq, Zigzag<cp>, tp>>>;

/// Dropout of one block in one micro-batch.
struct BlockDrop {
  double p = 0;
  std::uint64_t attention_seed = 0, mlp_seed = 0;
};

/// How blocks are computed, chosen at run time: the same parameters, activations and gradients in all cases, so that the
/// trainers are compiled once for all of them.
template <class E>
class Blocks {
 public:
  using X = Activations<E>;
  using Parameters = BlockOf<Value, E, Grid>;
  using Gradients = BlockOf<OwedGradient, E, Grid>;
  /// What the backward of a block needs of its forward.
  struct Saved {
    virtual ~Saved() = default;
  };

  virtual ~Blocks() = default;
  virtual std::pair<X, std::unique_ptr<Saved>> forward(const Parameters& w, const X& x,
                                                       const BlockDrop& drop) const = 0;
  virtual std::pair<X, Gradients> backward(const Parameters& w, const Saved& saved, const X& dout,
                                           const BlockDrop& drop) const = 0;
};

/// Those that recompute what is said, on a mesh with so many ranks along cp. Defined for each E in a file of its own.
template <class E>
std::unique_ptr<Blocks<E>> make_blocks(Recomputed recompute, int context);

}  // namespace gpt
