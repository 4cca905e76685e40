// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "blocks.hpp"
#include "meshwise/parallel/vocabulary.hpp"
#include "meshwise/tensor/accumulate.hpp"
#include "meshwise/tensor/position_ids.hpp"
#include "meshwise/tensor/start_convert.hpp"
#include "meshwise/tensor/value.hpp"
#include "meshwise/train/clip.hpp"
#include "trainer.hpp"
#include "units.hpp"

namespace gpt {

/// A tensor with other elements.
template <class E, AnyTensor T>
auto with_elements(T&& x) {
  using X = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<typename X::element, E>) {
    return X(std::forward<T>(x));
  } else {
    Tensor<E, typename X::dims, typename X::layout> result(x.mesh(), x.extents());
    const auto out = result.mutable_local();
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<E>(x.local()[i]);
    return result;
  }
}

/// The trainer of a stage of ZeRO in elements of E: a pre-norm GPT, every communication a conversion.
template <class Stage, class E>
class StagedTrainer final : public Trainer {
  using Wide = accumulate_t<E>;
  using X = Activations<E>;
  template <class Element>
  using LogitsOf = Tensor<Element, Dims<batch, seq, vocab>,
                          Layout<Grid, Shard<batch, dp>, Shard<seq, Zigzag<cp>>, Shard<vocab, tp>>>;
  using OwedLoss = Tensor<Wide, Dims<>, Layout<Grid, Partial<dp>, Partial<cp>>>;
  using Loss = CrossEntropy<OwedLoss, LogitsOf<Wide>>;
  using Model = Units<Stage, E>;
  template <class T>
  using Ticket = std::optional<typename Model::template Ticket<T>>;

  /// Consecutive blocks that are one unit.
  struct Group {
    std::size_t unit, begin, end;
  };
  /// Dropout in one micro-batch: each site draws from a stream of its own.
  struct Drop {
    double p = 0;
    std::uint64_t seed = 0;

    std::uint64_t embedding_seed() const { return stream_seed(seed, 0); }
    BlockDrop in_block(std::size_t layer) const {
      return {p, stream_seed(seed, 1 + 2 * layer), stream_seed(seed, 2 + 2 * layer)};
    }
  };
  /// What the backward needs of the forward.
  struct Saved {
    std::vector<std::unique_ptr<typename Blocks<E>::Saved>> blocks;
    std::optional<X> last;
    std::optional<Normalized<X, Tensor<Wide, Dims<batch, seq>, typename X::layout>>> norm;
    std::optional<Tensor<E, Dims<batch, seq, hidden>, Layout<Grid, Shard<batch, dp>, Shard<seq, Zigzag<cp>>>>> full;
  };

 public:
  StagedTrainer(const Grid& mesh, const Sizes& sizes, const Training& training)
      : mesh_(mesh),
        training_(training),
        blocks_(make_blocks<E>(training.recompute, mesh.size<cp>())),
        units_(mesh, {training.prefetch, true}) {
    const CategoryScope scope(mesh.memory(), Category::parameters);
    const Maker<E> maker(mesh, sizes, training.initial ? training.initial : initial_values(sizes, training.seed));
    const auto add = [&](const std::string& name, const auto& parameter, auto& ticket) {
      ticket.emplace(units_.add(parameter, is_weight(name)));
    };
    units_.begin_unit();
    each_outer(add, maker.outer(), outer_);
    std::vector<std::size_t> order{0};
    const std::size_t bytes = bytes_of_block<E>(sizes, mesh.size<tp>());
    layers_.resize(sizes.layers);
    for (std::size_t layer = 0; layer < sizes.layers; ++layer) {
      if (groups_.empty() || (layer - groups_.back().begin) * bytes >= training.bucket_bytes) {
        groups_.push_back({units_.begin_unit(), layer, layer});
        order.push_back(groups_.back().unit);
      }
      each_of_block(layer, add, maker.block(layer), layers_[layer]);
      groups_.back().end = layer + 1;
    }
    order.push_back(0);  // the embedding is the output projection too
    units_.seal(order);
  }

  StepResult step(std::span<const Batch> micro_batches) override {
    ++step_;
    double tokens = 0;
    for (const Batch& given : micro_batches) tokens += static_cast<double>(given.targets.size());
    OwedLoss loss(mesh_, {});
    for (std::size_t m = 0; m < micro_batches.size(); ++m) {
      const auto quiet = units_.no_sync(m + 1 < micro_batches.size());
      const Drop drop{training_.dropout, dropout_seed(training_, step_, m)};
      Saved saved;
      auto entropy =
          cross_entropy<vocab>(forward(micro_batches[m].inputs, drop, &saved), micro_batches[m].targets, tokens);
      loss += entropy.loss;
      backward(micro_batches[m], std::move(entropy), std::move(saved), drop);
    }
    const StepResult result{value_of(loss), units_.finish()};
    const Clipped clipped =
        clip(result.gradient_norm, training_.clip > 0 ? training_.clip : std::numeric_limits<double>::infinity());
    const Phase phase(training_.timeline, "update");
    AdamWOptions options = training_.adamw;
    options.learning_rate = learning_rate(training_, step_);
    units_.update(step_, options, clipped.gradient_scale());
    return result;
  }

  void settle() override { units_.settle(); }

  double evaluate(const Batch& given) override {
    const auto logits = forward(given.inputs, {}, nullptr);
    units_.release();
    return value_of(cross_entropy<vocab>(logits, given.targets, static_cast<double>(given.targets.size())).loss);
  }

  std::vector<double> next_logits(const Tokens& tokens, std::size_t position) override {
    const auto logits = convert<Replicate<tp>, Replicate<cp>, Replicate<dp>>(forward(tokens, {}, nullptr));
    units_.release();
    const std::size_t entries = logits.template extent<vocab>();
    const auto row = logits.local().subspan(position * entries, entries);
    return {row.begin(), row.end()};
  }

  void each_parameter(const std::function<void(const std::string&, const std::vector<double>&)>& f) override {
    const auto visit = [&](const auto& parameters) {
      return [&](const std::string& name, const auto& ticket) {
        const auto whole = convert<Replicate<tp>>(parameters[*ticket]);
        f(name, {whole.local().begin(), whole.local().end()});
      };
    };
    units_.forward(0, [&](const auto& p) {
      visit(p)("embedding", outer_.embedding);
      visit(p)("position", outer_.position);
    });
    for (const Group& group : groups_) {
      units_.forward(group.unit, [&](const auto& p) {
        for (std::size_t layer = group.begin; layer < group.end; ++layer)
          each_of_block(layer, visit(p), layers_[layer]);
      });
    }
    units_.forward(0, [&](const auto& p) {
      visit(p)("final.gain", outer_.final_gain);
      visit(p)("final.bias", outer_.final_bias);
    });
    units_.release();
  }

 private:
  LogitsOf<Wide> forward(const Tokens& tokens, const Drop& drop, Saved* saved) {
    X x = units_.forward(0, [&](const auto& p) {
      const Phase phase(training_.timeline, "embedding");
      auto rows = vocabulary_embedding<Shard<seq, tp>, vocab>(p[*outer_.embedding], tokens);
      auto places = lookup<seq>(p[*outer_.position], position_ids<seq>(rows));
      return dropout(std::move(rows) + places, drop.p, drop.embedding_seed());
    });
    for (const Group& group : groups_) {
      units_.forward(group.unit, [&](const auto& p) {
        for (std::size_t layer = group.begin; layer < group.end; ++layer) {
          const Phase phase(training_.timeline, "forward of block ", layer);
          auto [y, kept] = blocks_->forward(block_at(p, layer), x, drop.in_block(layer));
          x = std::move(y);
          if (saved != nullptr) saved->blocks.push_back(std::move(kept));
        }
      });
    }
    return units_.forward(0, [&](const auto& p) {
      const Phase phase(training_.timeline, "output");
      auto norm = layer_norm(x, p[*outer_.final_gain], p[*outer_.final_bias]);
      const auto full = convert<Replicate<tp>>(norm.y);
      auto logits = with_elements<Wide>(contract<hidden>(full, p[*outer_.embedding]));
      if (saved != nullptr) {
        saved->last.emplace(std::move(x));
        saved->norm.emplace(std::move(norm));
        saved->full.emplace(full);
      }
      return logits;
    });
  }

  void backward(const Batch& given, Loss entropy, Saved saved, const Drop& drop) {
    X dx = units_.backward(0, [&](const auto& p, auto& gradients) {
      const Phase phase(training_.timeline, "output's backward");
      const auto seed = gradient_seed(entropy.loss);
      const LogitsOf<E> dlogits =
          with_elements<E>(cross_entropy_backward<vocab>(seed, std::move(entropy), given.targets));
      // On its way while the gradient of the embedding is computed.
      auto dnorm = start_convert<Shard<seq, tp>>(contract<vocab>(dlogits, p[*outer_.embedding]));
      gradients.add(*outer_.embedding, einsum<Dims<vocab, hidden>>(dlogits, *saved.full));
      auto norm = layer_norm_backward(X(dnorm.wait()), *saved.last, *saved.norm, p[*outer_.final_gain]);
      gradients.add(*outer_.final_gain, norm.gain);
      gradients.add(*outer_.final_bias, norm.bias);
      return std::move(norm.x);
    });
    saved.full.reset();
    for (std::size_t g = groups_.size(); g-- > 0;) {
      units_.backward(groups_[g].unit, [&](const auto& p, auto& gradients) {
        for (std::size_t layer = groups_[g].end; layer-- > groups_[g].begin;) {
          const Phase phase(training_.timeline, "backward of block ", layer);
          auto [next, of_block] = blocks_->backward(block_at(p, layer), *saved.blocks.back(), dx, drop.in_block(layer));
          dx = std::move(next);
          each_of_block(
              layer,
              [&](const std::string&, const auto& ticket, const auto& gradient) { gradients.add(*ticket, *gradient); },
              layers_[layer], of_block);
          saved.blocks.pop_back();
        }
      });
    }
    units_.backward(0, [&](const auto& p, auto& gradients) {
      const Phase phase(training_.timeline, "embedding's backward");
      dx = dropout(std::move(dx), drop.p, drop.embedding_seed());
      gradients.add(*outer_.position, lookup_backward<seq>(sum<batch>(dx), p[*outer_.position], position_ids<seq>(dx)));
      gradients.add(*outer_.embedding, vocabulary_embedding_backward<vocab>(dx, p[*outer_.embedding], given.inputs));
    });
  }

  /// The parameters of a block as views of its unit.
  template <class P>
  typename Blocks<E>::Parameters block_at(const P& p, std::size_t layer) const {
    const auto& t = layers_[layer];
    return {{p[*t.norm1_gain], p[*t.norm1_bias], p[*t.output_weight], p[*t.output_bias], p[*t.norm2_gain],
             p[*t.norm2_bias], p[*t.up_weight], p[*t.up_bias], p[*t.down_weight], p[*t.down_bias]},
            p[*t.query_weight],
            p[*t.query_bias],
            p[*t.key_weight],
            p[*t.key_bias],
            p[*t.value_weight],
            p[*t.value_bias]};
  }

  static double value_of(const OwedLoss& loss) {
    return static_cast<double>(value(convert<Replicate<dp>, Replicate<cp>>(loss)));
  }

  Grid mesh_;
  Training training_;
  std::unique_ptr<Blocks<E>> blocks_;
  Model units_;
  OuterOf<Ticket, E> outer_;
  std::vector<BlockOf<Ticket, E, Grid>> layers_;
  std::vector<Group> groups_;
  std::uint64_t step_ = 0;
};

}  // namespace gpt
