// SPDX-License-Identifier: Apache-2.0
// ZeRO: layers learn other layers in bf16, with master and moments in float. How ranks hold what they train is a type,
// the stage; the trainer is one. What it sends and holds is measured against the formulas.

#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "meshwise/meshwise.hpp"
#include "meshwise/trace/ledger.hpp"
#include "support/command_line.hpp"

namespace {

using namespace meshwise;
using out = key<hidden>;
using Grid = Mesh<dp>;
using X = Tensor<bf16, Dims<batch, hidden>, Layout<Grid, Shard<batch, dp>>>;
using W = Tensor<bf16, Dims<hidden, out>, Layout<Grid>>;
constexpr std::size_t samples = 64, wide = 16, layers = 4;
constexpr int steps = 80, micro_batches = 2;

W weight(const Grid& mesh, std::size_t l, std::uint64_t seed) {
  return generate<W>(mesh, {wide, wide}, [&](const auto& i) { return bf16(0.1 * normal(seed + l, i.linear)); });
}
X layer(const X& x, const W& w) { return x + rename<out, hidden>(gelu(contract<hidden>(x, w))); }

struct Result {
  std::vector<float> weights;    // the first layer's
  double first_loss, last_loss;  // the mean square of what is wrong
  std::uint64_t sent, held;      // bytes of all ranks, in a step and between micro-batches
};

template <class Stage>
Result train(Communicator& world) {
  const Grid mesh(world, {world.size()});
  Zero<Stage, bf16, Grid> model(mesh);
  std::vector<typename decltype(model)::template Ticket<W>> weights;
  std::vector<MasterState<typename decltype(model)::Own>> states;  // of the parts that this rank updates
  for (std::size_t l = 0; l < layers; ++l) model.begin_unit(), weights.push_back(model.add(weight(mesh, l, 100)));
  for (std::size_t l = 0; l < layers; ++l) states.emplace_back(model.own(l));

  std::vector<X> inputs(layers, X(mesh, {0, wide}));  // of the layers, for the backward
  const auto error = [&](std::uint64_t seed) {
    X x = generate<X>(mesh, {samples, wide}, [&](const auto&i) { return bf16(normal(seed, i.linear)); }), target = x;
    for (std::size_t l = 0; l < layers; ++l) {
      inputs[l] = x;
      x = model.forward(l, [&](const auto& p) { return layer(x, p[weights[l]]); });
      target = layer(target, weight(mesh, l, 900));
    }
    return x - target;
  };
  const auto loss = [&] {
    const X wrong = error(7);
    return double(value(convert<Replicate<dp>>(sum<batch>(sum<hidden>(wrong * wrong))))) / (samples * wide);
  };
  const double before = loss();
  std::uint64_t held = 0;
  const Traffic start = mesh.traffic<dp>();
  for (int step = 1; step <= steps; ++step) {
    for (int m = 0; m < micro_batches; ++m) {
      const auto quiet = model.no_sync(m + 1 < micro_batches);  // only the last one pays what is owed
      X dx = error(std::uint64_t(100 * step + m));
      for (std::size_t l = layers; l-- > 0;) {
        dx = model.backward(l, [&](const auto& p, auto& gradients) {
          const W w = p[weights[l]];
          const auto da = gelu_backward(rename<hidden, out>(dx), contract<hidden>(inputs[l], w));
          gradients.add(weights[l], contract<batch>(inputs[l], da));  // Partial<dp>
          return dx + contract<out>(da, w);
        });
      }
      if (step != steps || m != 0) continue;
      model.release();
      const auto memory = collect_ledger(mesh).memory;
      held = memory[0].current + memory[1].current + memory[2].current;  // parameters, gradients, optimizer
    }
    model.finish();
    AdamWOptions options{.learning_rate = 0.01 * (1 - double(step) / (steps + 1)), .weight_decay = 0};
    model.update([&](std::size_t l, auto& w, const auto& dw) {
      adamw_step(w, dw, states[l], std::uint64_t(step), options, 1.0 / (samples * micro_batches));  // the mean, once
    });
  }
  for (std::size_t l = 0; l < layers; ++l) (void)model.own(l);  // the last update has arrived
  const std::uint64_t sent = collect_ledger(mesh, {start}).axes[0].traffic.volume;
  const W first = model.forward(0, [&](const auto& p) { return p[weights[0]]; });
  return {{first.local().begin(), first.local().end()}, before, loss(), sent / steps, held};
}

// sent, held: what the formulas say, in bytes per parameter and rank.
template <class Stage>
Result show(Communicator& world, const char* name, double sent, double held) {
  const Result r = train<Stage>(world);
  const double all = double(layers * wide * wide) * world.size(), s = double(r.sent) / all, h = double(r.held) / all;
  if (world.rank() == 0)
    std::printf("%-15s %7.3f %8.3f %8.3f %8.3f   %.3f -> %.3f\n", name, s, sent, h, held, r.first_loss, r.last_loss);
  if (std::abs(s - sent) + std::abs(h - held) > 1e-9) throw std::runtime_error("the bytes differ from the formula");
  if (!(r.last_loss < 0.1 * r.first_loss)) throw std::runtime_error("it has not learnt");
  return r;
}

void compare(Communicator& world) {
  const double n = world.size(), b = 2 * (n - 1) / n, m = micro_batches;  // bf16: 2 bytes
  if (world.rank() == 0) std::puts("bytes/parameter    sent  formula     held  formula   loss");
  const Result plain = show<DataParallel<dp>>(world, "data parallel", 2 * b, 16);
  const Result one = show<Zero1<dp>>(world, "stage 1", 2 * b, 4 + 12 / n);
  const Result two = show<Zero2<dp>>(world, "stage 2", (m + 1) * b, 2 + 14 / n);
  const Result three = show<Zero3<dp>>(world, "stage 3", 3 * m * b, 16 / n);
  // The first two add micro-batches up before they sum over the ranks, the others afterwards.
  if (one.weights != plain.weights || three.weights != two.weights) throw std::runtime_error("the weights differ");
}

}  // namespace

int main(int count, char** arguments) {
  return examples::main(count, arguments, "Trains with each stage of ZeRO and compares bytes with the formulas.",
                        compare);
}
