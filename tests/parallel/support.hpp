// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../support/launch.hpp"
#include "meshwise/core/random.hpp"
#include "meshwise/mesh/mesh.hpp"
#include "meshwise/tensor/convert.hpp"
#include "meshwise/tensor/generate.hpp"
#include "meshwise/trace/traffic.hpp"

namespace test {

using namespace meshwise;

using Grid = Mesh<dp, tp>;

/// Ranks along dp and along tp.
struct Ranks {
  int data = 1, tensor = 1;
};

/// Whether the long products are wanted.
inline bool full() {
  const char* value = std::getenv("MESHWISE_FULL");
  return value != nullptr && std::string_view(value) == "1";
}

/// Fails a rank, and through launch the test.
inline void require(bool good, const std::string& what) {
  if (!good) throw std::runtime_error(what);
}

/// Runs a program on a mesh of data x tensor ranks.
inline void on_grid(Ranks ranks, const std::function<void(const Grid&)>& program) {
  LaunchOptions options;
  options.deadline = 120;
  launch(ranks.data * ranks.tensor, options, [&](Communicator& world) {
    const Grid mesh(world, {ranks.data, ranks.tensor});
    program(mesh);
  });
}

/// Numbers from a seed, the same on every rank.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  std::size_t operator()(std::size_t below) { return static_cast<std::size_t>(random_bits(seed_, next_++) % below); }
  template <std::size_t N>
  std::size_t of(const std::size_t (&choices)[N]) {
    return choices[(*this)(N)];
  }
  /// A mesh of 1 to 9 ranks.
  Ranks ranks() {
    const int data = static_cast<int>((*this)(3)) + 1;
    return {data, static_cast<int>((*this)(static_cast<std::size_t>(9 / data))) + 1};
  }

 private:
  std::uint64_t seed_, next_ = 0;
};

/// A tensor of normal numbers that depend on the seed and the global index only; no Partial.
template <AnyTensor T>
T random(const Grid& mesh, const Extents<typename T::dims>& extents, std::uint64_t seed, double deviation = 1) {
  return generate<T>(mesh, extents, [&](const auto& index) {
    return static_cast<typename T::element>(deviation * normal(seed, index.linear));
  });
}

/// A tensor of indices in [0, below).
template <AnyTensor T>
T random_ids(const Grid& mesh, const Extents<typename T::dims>& extents, std::uint64_t seed, std::size_t below) {
  return generate<T>(mesh, extents, [&](const auto& index) {
    return static_cast<typename T::element>(random_bits(seed, index.linear) % below);
  });
}

/// A replicated tensor of values that everybody knows, in the layout of T.
template <AnyTensor T>
T placed(const Grid& mesh, const Extents<typename T::dims>& extents, const std::vector<double>& values) {
  return generate<T>(mesh, extents,
                     [&](const auto& index) { return static_cast<typename T::element>(values[index.linear]); });
}

/// The whole tensor on every rank: gathered where it is sharded, summed where it owes a sum. Collective.
template <AnyTensor T>
std::vector<double> whole(const T& x) {
  const auto all = convert<Replicate<tp>, Replicate<dp>>(x);
  return {all.local().begin(), all.local().end()};
}

/// A rank's own piece.
template <AnyTensor T>
std::vector<typename T::element> piece(const T& x) {
  return {x.local().begin(), x.local().end()};
}

inline double largest(const std::vector<double>& values) {
  double top = 0;
  for (double v : values) top = std::max(top, std::abs(v));
  return top;
}

/// The largest difference, as a fraction of the largest expected value or of `floor` if that is more.
inline double difference(const std::vector<double>& found, const std::vector<double>& expected, double floor = 1e-30) {
  if (found.size() != expected.size()) return HUGE_VAL;
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double d = std::abs(found[i] - expected[i]);
    if (!(d <= worst)) worst = d;  // a NaN stays
  }
  return worst / std::max(largest(expected), floor);
}

inline void require_near(const std::vector<double>& found, const std::vector<double>& expected, double bound,
                         const std::string& what, double floor = 1.0) {
  const double d = difference(found, expected, floor);
  char text[120];
  std::snprintf(text, sizeof text, ": %zu and %zu elements, relative difference %.3g, at most %.3g", found.size(),
                expected.size(), d, bound);
  require(d <= bound, what + text);
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// y[n, out] = x[n, in] w[in, out] + b[out], by loops; any size may be 0.
inline std::vector<double> dense_linear(std::size_t n, std::size_t ins, std::size_t outs, const std::vector<double>& x,
                                        const std::vector<double>& w, const std::vector<double>& b) {
  std::vector<double> y(n * outs);
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t o = 0; o < outs; ++o) {
      y[r * outs + o] = b[o];
      for (std::size_t i = 0; i < ins; ++i) y[r * outs + o] += x[r * ins + i] * w[i * outs + o];
    }
  }
  return y;
}

struct DenseGradients {
  std::vector<double> x, w, b;
};

inline DenseGradients dense_linear_backward(std::size_t n, std::size_t ins, std::size_t outs,
                                            const std::vector<double>& dy, const std::vector<double>& x,
                                            const std::vector<double>& w) {
  DenseGradients g{std::vector<double>(n * ins), std::vector<double>(ins * outs), std::vector<double>(outs)};
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t o = 0; o < outs; ++o) {
      const double d = dy[r * outs + o];
      g.b[o] += d;
      for (std::size_t i = 0; i < ins; ++i) {
        g.x[r * ins + i] += w[i * outs + o] * d;
        g.w[i * outs + o] += x[r * ins + i] * d;
      }
    }
  }
  return g;
}

/// What a program communicates along one axis, on this rank.
template <Axis A, class F>
Traffic traffic_of(const Grid& mesh, F&& program) {
  const Traffic before = mesh.along<A>().traffic();
  program();
  return mesh.along<A>().traffic() - before;
}

/// A number of every rank, summed. Collective over the mesh, and counted there: ask for it after measuring.
inline std::uint64_t sum_over_ranks(const Grid& mesh, std::uint64_t own) {
  Tensor<double, Dims<>, Layout<Grid, Partial<dp>, Partial<tp>>> x(mesh, {});
  x.mutable_local()[0] = static_cast<double>(own);
  return static_cast<std::uint64_t>(whole(x)[0]);
}

}  // namespace test
