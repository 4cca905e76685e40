// SPDX-License-Identifier: Apache-2.0
// A small model in units and its trainer, which knows no stage: the stage is a type.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "meshwise/parallel/zero.hpp"
#include "meshwise/tensor/accumulate.hpp"
#include "meshwise/tensor/activation.hpp"
#include "meshwise/tensor/backward.hpp"
#include "meshwise/tensor/contract.hpp"
#include "meshwise/tensor/layer_norm.hpp"
#include "meshwise/tensor/reductions.hpp"
#include "meshwise/tensor/reshard.hpp"
#include "meshwise/tensor/value.hpp"
#include "meshwise/train/weight_decay.hpp"
#include "support.hpp"

namespace test {

/// How a model lies on a mesh of dp and tp: batches over dp with ffn split over tp, or batches over both.
struct OverDp {
  using Batch = Shard<batch, dp>;
  template <class E, class D>
  using Split = Tensor<E, D, Layout<Grid, Shard<ffn, tp>>>;
};
struct OverBoth {
  using Batch = Shard<batch, dp, tp>;
  template <class E, class D>
  using Split = Tensor<E, D, Layout<Grid>>;
};

/// A residual layer: x + gelu(norm(x) w1 + b1) w2, forward and backward.
template <class Data, class E>
struct Layer {
  using X = Tensor<E, Dims<batch, hidden>, Layout<Grid, typename Data::Batch>>;
  using Vector = Tensor<E, Dims<hidden>, Layout<Grid>>;
  using W1 = typename Data::template Split<E, Dims<hidden, ffn>>;
  using B1 = typename Data::template Split<E, Dims<ffn>>;
  using W2 = typename Data::template Split<E, Dims<ffn, hidden>>;

  /// What there is for each parameter, in the order in which they are used.
  template <template <class> class Of>
  struct All {
    Of<Vector> gain, bias;
    Of<W1> w1;
    Of<B1> b1;
    Of<W2> w2;
  };
  template <class F, class... Alls>
  static void each(const F& f, Alls&... all) {
    f(all.gain...), f(all.bias...), f(all.w1...), f(all.b1...), f(all.w2...);
  }
  template <class T>
  using Self = T;
  using Parameters = All<Self>;

  static Parameters make(const Grid& mesh, std::size_t wide, std::size_t inner, std::uint64_t seed) {
    const CategoryScope scope(mesh.memory(), Category::parameters);
    const auto of = [&]<class T>(std::type_identity<T>, const Extents<typename T::dims>& e, std::uint64_t salt,
                                 double d, double mean) {
      return generate<T>(
          mesh, e, [&](const auto& i) { return static_cast<E>(mean + d * normal(stream_seed(seed, salt), i.linear)); });
    };
    return {of(std::type_identity<Vector>{}, {wide}, 1, 0.1, 1), of(std::type_identity<Vector>{}, {wide}, 2, 0.1, 0),
            of(std::type_identity<W1>{}, {wide, inner}, 3, 0.5, 0), of(std::type_identity<B1>{}, {inner}, 4, 0.1, 0),
            of(std::type_identity<W2>{}, {inner, wide}, 5, 0.5, 0)};
  }

  struct Saved {
    X x;
    decltype(layer_norm(std::declval<const X&>(), std::declval<const Vector&>(), std::declval<const Vector&>())) norm;
    decltype(contract<hidden>(std::declval<const X&>(), std::declval<const W1&>())) a;
  };
  static X forward(const Parameters& w, const X& x, std::optional<Saved>& saved) {
    auto norm = layer_norm(x, w.gain, w.bias);
    auto a = contract<hidden>(norm.y, w.w1) + w.b1;
    X y = reshard<typename X::layout>(contract<ffn>(gelu(a), w.w2));
    y += x;
    saved.emplace(Saved{x, std::move(norm), std::move(a)});
    return y;
  }
  /// The gradient of x, and those of the parameters, which owe sums.
  static auto backward(const Parameters& w, const Saved& saved, const X& dy) {
    auto dw2 = contract<batch>(gelu(saved.a), dy);
    const auto da = gelu_backward(contract<hidden>(dy, w.w2), saved.a);
    auto dn = layer_norm_backward(reshard<typename X::layout>(contract<ffn>(da, w.w1)), saved.x, saved.norm, w.gain);
    dn.x += dy;
    return std::pair(std::move(dn.x), std::tuple(std::move(dn.gain), std::move(dn.bias),
                                                 contract<batch>(saved.norm.y, da), sum<batch>(da), std::move(dw2)));
  }
  /// Calls f(place, gradient) in the order in which gradients come.
  template <class F, class Places, class Gradients>
  static void give(const F& f, const Places& places, const Gradients& gradients) {
    const auto& [gain, bias, w1, b1, w2] = gradients;
    f(places.w2, w2), f(places.b1, b1), f(places.w1, w1), f(places.bias, bias), f(places.gain, gain);
  }
  /// The same beside something else for each parameter.
  template <class F, class Places, class States, class Gradients>
  static void give3(const F& f, Places& p, States& s, const Gradients& gradients) {
    const auto& [gain, bias, w1, b1, w2] = gradients;
    f(p.w2, s.w2, w2), f(p.b1, s.b1, b1), f(p.w1, s.w1, w1), f(p.bias, s.bias, bias), f(p.gain, s.gain, gain);
  }
};

struct ModelShape {
  std::size_t samples = 7, wide = 6, inner = 5, layers = 3;
  int steps = 20, micro_batches = 1;
  double clip = 0;  // the largest norm of a gradient, if there is one
};

/// What the gradients are multiplied by.
inline double scale_for(const ModelShape& shape, double norm) {
  return shape.clip > 0 && norm > shape.clip ? shape.clip / norm : 1.0;
}

/// What a run leaves: the loss of each step, and all parameters at the end.
struct Outcome {
  std::vector<double> losses, norms;
  std::vector<std::vector<double>> parameters;
};

template <class Data, class E>
auto samples_of(const Grid& mesh, const ModelShape& shape, int step, int micro_batch) {
  using X = typename Layer<Data, E>::X;
  const auto seed = static_cast<std::uint64_t>(100 * step + 2 * micro_batch);
  return std::pair(random<X>(mesh, {shape.samples, shape.wide}, seed),
                   random<X>(mesh, {shape.samples, shape.wide}, seed + 1));
}

/// The gradient of half the squared error over all samples of a step, and that error.
template <class X>
std::pair<X, double> loss_of(const X& y, const X& target, double count) {
  using E = typename X::element;
  const X error = y - target;
  const auto all = [&]<class... As>(detail::list<As...>) {
    return static_cast<double>(value(convert<Replicate<As>...>(sum<batch>(sum<hidden>(error * error)))));
  }(detail::axes_of<typename detail::placement_on<typename X::layout, dp>>{});
  return {error * static_cast<E>(1 / count), all / 2 / count};
}

inline AdamWOptions options_of_test() {
  AdamWOptions options;
  options.learning_rate = 0.02;
  return options;
}

/// Trains with a stage. look(zero, when): is called while it does, for the tests that measure.
template <class Stage, class Data, class E, class Look>
Outcome train(const Grid& mesh, const ModelShape& shape, const ZeroOptions& how, const Look& look) {
  using L = Layer<Data, E>;
  using Z = Zero<Stage, E, Grid>;
  Z zero(mesh, how);
  using Places = typename L::template All<Z::template Ticket>;
  std::vector<Places> places;
  for (std::size_t l = 0; l < shape.layers; ++l) {
    const auto w = L::make(mesh, shape.wide, shape.inner, l);
    zero.begin_unit();
    places.push_back({zero.add(w.gain), zero.add(w.bias), zero.add(w.w1), zero.add(w.b1), zero.add(w.w2)});
  }
  const auto whole_of = [&](const typename Z::Parameters& p, std::size_t l) {
    const Places& t = places[l];
    return typename L::Parameters{p[t.gain], p[t.bias], p[t.w1], p[t.b1], p[t.w2]};
  };
  std::vector<AdamWState<typename Z::Own>> moments;
  for (std::size_t l = 0; l < shape.layers; ++l) moments.emplace_back(zero.own(l));
  look(zero, "rest");

  Outcome outcome;
  const double count = std::max(1.0, static_cast<double>(shape.samples) * shape.micro_batches);
  for (int step = 0; step < shape.steps; ++step) {
    look(zero, "step");
    double loss = 0;
    for (int m = 0; m < shape.micro_batches; ++m) {
      const auto quiet = zero.no_sync(m + 1 < shape.micro_batches);
      const auto samples = samples_of<Data, E>(mesh, shape, step, m);
      typename L::X x = samples.first;
      std::vector<std::optional<typename L::Saved>> saved(shape.layers);
      for (std::size_t l = 0; l < shape.layers; ++l) {
        x = zero.forward(l, [&](const auto& p) { return L::forward(whole_of(p, l), x, saved[l]); });
      }
      look(zero, "forward");
      const auto wrong = loss_of(x, samples.second, count);
      typename L::X dx = wrong.first;
      loss += wrong.second;
      for (std::size_t l = shape.layers; l-- > 0;) {
        dx = zero.backward(l, [&](const auto& p, auto& g) {
          auto [next, gradients] = L::backward(whole_of(p, l), *saved[l], dx);
          L::give([&](const auto& place, const auto& gradient) { g.add(place, gradient); }, places[l], gradients);
          return next;
        });
        saved[l].reset();
      }
      look(zero, "backward");
    }
    zero.finish();
    GlobalNorm<Grid> norm(mesh);
    zero.add_gradients_to(norm);
    outcome.norms.push_back(norm.norm());
    outcome.losses.push_back(loss);
    const double scale = scale_for(shape, outcome.norms.back());
    zero.update([&](std::size_t l, auto& w, const auto& g) {
      const auto& ranges = zero.ranges(l);
      const Range vectors[] = {ranges[0], ranges[1], ranges[3]};  // gain, bias and b1 do not decay
      adamw_step(w, g, moments[l], static_cast<std::uint64_t>(step + 1), options_of_test(), scale, vectors);
    });
    look(zero, "update");
  }
  for (std::size_t l = 0; l < shape.layers; ++l) {
    zero.forward(l, [&](const auto& p) {
      auto w = whole_of(p, l);
      L::each([&](const auto& x) { outcome.parameters.push_back(whole(x)); }, w);
    });
  }
  zero.release();
  return outcome;
}
struct NoLook {
  template <class Z>
  void operator()(Z&, const char*) const {}
};
template <class Stage, class Data = OverDp, class E = float>
Outcome train(const Grid& mesh, const ModelShape& shape, const ZeroOptions& how = {}) {
  return train<Stage, Data, E>(mesh, shape, how, NoLook{});
}

/// The same without units: gradients in buckets, every parameter with a state of its own; or on one rank.
template <class Data = OverDp, class E = float, class Over = dp>
Outcome train_plainly(const Grid& mesh, const ModelShape& shape, std::size_t bucket_bytes) {
  using L = Layer<Data, E>;
  GradientBuckets<Over, E, Grid> buckets(mesh, bucket_bytes);
  std::vector<typename L::Parameters> parameters;
  using Places = typename L::template All<GradientBuckets<Over, E, Grid>::template Ticket>;
  std::vector<Places> places;
  using States = typename L::template All<AdamWState>;
  std::vector<States> moments;
  for (std::size_t l = 0; l < shape.layers; ++l) {
    auto w = L::make(mesh, shape.wide, shape.inner, l);
    places.push_back({buckets.expect(w.gain), buckets.expect(w.bias), buckets.expect(w.w1), buckets.expect(w.b1),
                      buckets.expect(w.w2)});
    moments.push_back(
        States{AdamWState(w.gain), AdamWState(w.bias), AdamWState(w.w1), AdamWState(w.b1), AdamWState(w.w2)});
    parameters.push_back(std::move(w));
  }
  Outcome outcome;
  const double count = std::max(1.0, static_cast<double>(shape.samples) * shape.micro_batches);
  for (int step = 0; step < shape.steps; ++step) {
    double loss = 0;
    for (int m = 0; m < shape.micro_batches; ++m) {
      const auto quiet = buckets.no_sync(m + 1 < shape.micro_batches);
      auto [x, target] = samples_of<Data, E>(mesh, shape, step, m);
      std::vector<std::optional<typename L::Saved>> saved(shape.layers);
      for (std::size_t l = 0; l < shape.layers; ++l) x = L::forward(parameters[l], x, saved[l]);
      auto [dx, part] = loss_of(x, target, count);
      loss += part;
      for (std::size_t l = shape.layers; l-- > 0;) {
        auto [next, gradients] = L::backward(parameters[l], *saved[l], dx);
        dx = next;
        L::give([&](const auto& place, const auto& gradient) { buckets.add(place, gradient); }, places[l], gradients);
      }
    }
    buckets.finish();
    GlobalNorm<Grid> norm(mesh);
    for (std::size_t l = 0; l < shape.layers; ++l) {
      L::each([&](const auto& place) { norm.add(buckets.take(place)); }, places[l]);
    }
    outcome.norms.push_back(norm.norm());
    outcome.losses.push_back(loss);
    const double scale = scale_for(shape, outcome.norms.back());
    for (std::size_t l = 0; l < shape.layers; ++l) {
      L::each(
          [&]<class T>(T& w, const auto& place, auto& state) {
            adamw_step(w, buckets.take(place), state, static_cast<std::uint64_t>(step + 1),
                       options_for<T>(options_of_test()), scale);
          },
          parameters[l], places[l], moments[l]);
    }
  }
  for (auto& w : parameters) L::each([&](const auto& x) { outcome.parameters.push_back(whole(x)); }, w);
  return outcome;
}

}  // namespace test
