// SPDX-License-Identifier: Apache-2.0
// Transformer blocks of any form: parameters, inputs, and what they give.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/parallel/transformer.hpp"
#include "support.hpp"

namespace test {

/// Global sizes of a block and its input.
struct BlockSizes {
  std::size_t b = 3, s = 5, h = 6, heads = 3, head_dim = 2, ffn = 7, kv = 1;
};

/// Calls f(name, member of each of b) for all parameters with separate projections.
template <class F, class... Bs>
void each_parameter(const F& f, Bs&... b) {
  f("norm1 gain", b.norm1_gain...), f("norm1 bias", b.norm1_bias...);
  f("query weight", b.query_weight...), f("query bias", b.query_bias...);
  f("key weight", b.key_weight...), f("key bias", b.key_bias...);
  f("value weight", b.value_weight...), f("value bias", b.value_bias...);
  f("output weight", b.output_weight...), f("output bias", b.output_bias...);
  f("norm2 gain", b.norm2_gain...), f("norm2 bias", b.norm2_bias...);
  f("up weight", b.up_weight...), f("up bias", b.up_bias...);
  f("down weight", b.down_weight...), f("down bias", b.down_bias...);
}

template <class D>
std::size_t size_of(const BlockSizes& z) {
  if constexpr (std::is_same_v<D, batch>) return z.b;
  if constexpr (std::is_same_v<D, seq>) return z.s;
  if constexpr (std::is_same_v<D, hidden>) return z.h;
  if constexpr (std::is_same_v<D, heads>) return z.heads;
  if constexpr (std::is_same_v<D, head_dim>) return z.head_dim;
  if constexpr (std::is_same_v<D, ffn>) return z.ffn;
  if constexpr (std::is_same_v<D, kv>) return z.kv;
  return 2;
}
template <class... Ds>
Extents<Dims<Ds...>> extents_of(const BlockSizes& z, Dims<Ds...>) {
  return {size_of<Ds>(z)...};
}

/// A tensor of normal numbers, the same for every layout and, but for rounding, every element.
template <AnyTensor T>
T drawn(const typename T::grid& mesh, const BlockSizes& z, std::uint64_t seed, double deviation) {
  using E = typename T::element;
  return generate<T>(mesh, extents_of(z, typename T::dims{}), [&](const auto& index) {
    return static_cast<E>(static_cast<accumulate_t<E>>(deviation * normal(seed, index.linear)));
  });
}

/// Parameters with separate projections, each made by one(type of the tensor) in the order of each_parameter.
template <class W, class F>
W made(const F& one) {
  using detail::type;
  auto gain1 = one(type<decltype(W::norm1_gain)>{}), bias1 = one(type<decltype(W::norm1_bias)>{});
  auto qw = one(type<decltype(W::query_weight)>{});
  auto qb = one(type<decltype(W::query_bias)>{});
  auto kw = one(type<decltype(W::key_weight)>{});
  auto kb = one(type<decltype(W::key_bias)>{});
  auto vw = one(type<decltype(W::value_weight)>{});
  auto vb = one(type<decltype(W::value_bias)>{});
  auto ow = one(type<decltype(W::output_weight)>{});
  auto ob = one(type<decltype(W::output_bias)>{});
  auto gain2 = one(type<decltype(W::norm2_gain)>{}), bias2 = one(type<decltype(W::norm2_bias)>{});
  auto uw = one(type<decltype(W::up_weight)>{});
  auto ub = one(type<decltype(W::up_bias)>{});
  auto dw = one(type<decltype(W::down_weight)>{});
  auto db = one(type<decltype(W::down_bias)>{});
  return {{gain1, bias1, ow, ob, gain2, bias2, uw, ub, dw, db}, qw, qb, kw, kb, vw, vb};
}
template <class W>
W block_parameters(const auto& mesh, const BlockSizes& z, std::uint64_t seed = 3) {
  std::uint64_t stream = 0;
  return made<W>([&]<class T>(detail::type<T>) { return drawn<T>(mesh, z, stream_seed(seed, stream++), 0.7); });
}

template <class Block>
typename Block::X block_input(const auto& mesh, const BlockSizes& z) {
  return drawn<typename Block::X>(mesh, z, 901, 1);
}
template <class Block>
typename Block::X block_upstream(const auto& mesh, const BlockSizes& z) {
  return drawn<typename Block::X>(mesh, z, 902, 1);
}

/// This rank's pieces of the result, of the gradient of the input and of those of the parameters.
template <class Block>
std::vector<std::vector<typename Block::X::element>> block_pieces(const auto& mesh, const BlockSizes& z,
                                                                  const typename Block::Drop& drop) {
  const auto w = block_parameters<typename Block::Parameters>(mesh, z);
  const auto [y, saved] = Block::forward(w, block_input<Block>(mesh, z), drop);
  const auto [dx, gradients] = Block::backward(w, saved, block_upstream<Block>(mesh, z), drop);
  std::vector<std::vector<typename Block::X::element>> all{piece(y), piece(dx)};
  each_parameter([&](const char*, const auto& g) { all.push_back(piece(*g)); }, gradients);
  return all;
}

/// The whole tensor on every rank of any mesh: gathered where it is sharded, summed where it owes a sum. Collective.
template <AnyTensor T>
std::vector<double> entire(const T& x) {
  const auto all = [&]<class... As>(detail::list<As...>) {
    return convert<Replicate<As>...>(x);
  }(detail::reversed(detail::axes_of_layout<typename T::layout>{}));
  std::vector<double> values;
  for (const auto& value : all.local()) {
    values.push_back(static_cast<double>(static_cast<accumulate_t<typename T::element>>(value)));
  }
  return values;
}

/// The result, the gradient of the input and those of the parameters, whole.
template <class Block>
std::vector<std::vector<double>> block_entire(const auto& mesh, const BlockSizes& z, const typename Block::Drop& drop) {
  const auto w = block_parameters<typename Block::Parameters>(mesh, z);
  const auto [y, saved] = Block::forward(w, block_input<Block>(mesh, z), drop);
  const auto [dx, gradients] = Block::backward(w, saved, block_upstream<Block>(mesh, z), drop);
  std::vector<std::vector<double>> all{entire(y), entire(dx)};
  each_parameter([&](const char*, const auto& g) { all.push_back(entire(*g)); }, gradients);
  return all;
}

inline void require_same(const std::vector<std::vector<double>>& found,
                         const std::vector<std::vector<double>>& expected, double bound = 1e-12) {
  require(found.size() == expected.size(), "as many tensors");
  for (std::size_t i = 0; i < found.size(); ++i) {
    require_near(found[i], expected[i], bound, "tensor " + std::to_string(i));
  }
}

/// The derivative of <forward, upstream> along random directions of the input and of each parameter, by central
/// differences of order four, against <gradient, direction>.
template <class Block>
void check_derivatives(const auto& mesh, const BlockSizes& z, const typename Block::Drop& drop) {
  auto w = block_parameters<typename Block::Parameters>(mesh, z);
  typename Block::X x = block_input<Block>(mesh, z);
  const auto weights = entire(block_upstream<Block>(mesh, z));
  const auto [y, saved] = Block::forward(w, x, drop);
  const auto [dx, gradients] = Block::backward(w, saved, block_upstream<Block>(mesh, z), drop);
  std::uint64_t seed = 70;
  const auto check = [&](const char* name, auto& parameter, const auto& gradient) {
    using T = std::remove_cvref_t<decltype(parameter)>;
    const auto slope = entire(gradient);
    const T old = parameter;
    for (int i = 0; i < 2; ++i) {
      const T direction = drawn<T>(mesh, z, seed++, 1);
      const auto at = [&](double h) {
        parameter = old + direction * h;
        return dot(entire(Block::forward(w, x, drop).first), weights);
      };
      const double h = 4e-4;
      const double numeric = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
      const double exact = dot(slope, entire(direction));
      parameter = old;
      require(std::abs(numeric - exact) < 2e-8 * (1 + std::abs(exact)),
              std::string(name) + ": derivative " + std::to_string(numeric) + ", gradient " + std::to_string(exact));
    }
  };
  check("input", x, dx);
  each_parameter([&](const char* name, auto& parameter, const auto& gradient) { check(name, parameter, *gradient); }, w,
                 gradients);
}

}  // namespace test
