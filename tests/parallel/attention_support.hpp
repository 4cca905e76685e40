// SPDX-License-Identifier: Apache-2.0
// Attention on a mesh of dp x cp x tp ranks beside the same by loops over whole arrays.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "../reference/plain_attention.hpp"
#include "../support/launch.hpp"
#include "meshwise/core/random.hpp"
#include "meshwise/parallel/context.hpp"
#include "meshwise/tensor/backward.hpp"
#include "meshwise/tensor/generate.hpp"
#include "meshwise/tensor/reshard.hpp"
#include "support.hpp"

namespace attending {

using namespace test;

using Cube = Mesh<dp, cp, tp>;
using Query = Dims<batch, seq, heads, head_dim>;
using Keys = Dims<batch, key<seq>, kv, head_dim>;
template <class E, class D, class... Ps>
using Over = Tensor<E, D, Layout<Cube, Ps...>>;

/// Any mask, so that the laws are compiled once for all of them.
struct AnyMask {
  std::string name;
  std::function<Range(std::size_t)> see;

  Range operator()(std::size_t query) const { return see(query); }
  bool sees(std::size_t query, std::size_t key) const {
    const Range r = see(query);
    return key >= r.begin && key - r.begin < r.size;
  }
};

inline std::vector<AnyMask> all_masks() {
  return {{"none", NoMask{}},
          {"causal", CausalMask{}},
          {"the last 3", WindowMask{3}},
          {"nothing", WindowMask{0}},
          {"documents of 4, every third query sees nothing",
           [](std::size_t q) {
             return q % 3 == 2 ? Range{} : Range{q / 4 * 4, q % 4 + 1};
           }},
          {"later keys only", [](std::size_t q) {
             return Range{q + 1, ~std::size_t{0}};
           }}};
}

inline void on_cube(std::array<int, 3> sizes, const std::function<void(const Cube&)>& program) {
  LaunchOptions options;
  options.deadline = 120;
  launch(sizes[0] * sizes[1] * sizes[2], options, [&](Communicator& world) {
    const Cube mesh(world, sizes);
    program(mesh);
  });
}

/// Normal numbers by global index.
template <class T>
T normals(const Cube& mesh, const Extents<typename T::dims>& extents, std::uint64_t seed, double deviation = 1) {
  return generate<T>(mesh, extents, [&](const auto& index) {
    return static_cast<typename T::element>(deviation * normal(seed, index.linear));
  });
}
template <class T>
std::vector<double> all_of(const T& x) {
  const auto all = reshard<Layout<Cube>>(x);
  std::vector<double> result;
  for (const auto value : all.local()) result.push_back(static_cast<double>(value));
  return result;
}
inline double total(const Cube& mesh, double own) {
  Over<double, Dims<>, Partial<dp>, Partial<cp>, Partial<tp>> x(mesh, {});
  x.mutable_local()[0] = own;
  return all_of(x)[0];
}

/// The text of the Error that f throws; empty if it throws none.
template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}
inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Equal where infinite, close otherwise: |a - b| <= tolerance max(1, |b|).
inline void require_alike(const std::vector<double>& a, const std::vector<double>& b, double tolerance,
                          const std::string& what) {
  require(a.size() == b.size(), what + ": size");
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool good = a[i] == b[i] || std::abs(a[i] - b[i]) <= tolerance * std::max(1.0, std::abs(b[i]));
    require(good,
            what + ": element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", not " + std::to_string(b[i]));
  }
}

/// What goes into an attention, in the layouts of Q and K, and what has to come out.
template <class Q, class K>
struct Problem {
  Problem(const Cube& mesh, const plain::AttentionSizes& sizes, double deviation = 1)
      : z(sizes),
        q(normals<Q>(mesh, {z.batch, z.queries, z.heads, z.width}, 1, deviation)),
        dout(normals<Q>(mesh, {z.batch, z.queries, z.heads, z.value_width}, 2)),
        k(normals<K>(mesh, {z.batch, z.keys, z.shares, z.width}, 3, deviation)),
        v(normals<K>(mesh, {z.batch, z.keys, z.shares, z.value_width}, 4)) {
    expected.q = all_of(q);
    expected.k = all_of(k);
    expected.v = all_of(v);
    expected.dout = all_of(dout);
  }
  std::string text(const AnyMask& mask) const {
    std::string result = "mask " + mask.name + ", ranks";
    for (const int n : {q.mesh().template size<dp>(), q.mesh().template size<cp>(), q.mesh().template size<tp>()}) {
      result += " " + std::to_string(n);
    }
    result += ", sizes";
    for (const std::size_t n : {z.batch, z.queries, z.keys, z.heads, z.shares, z.width, z.value_width}) {
      result += " " + std::to_string(n);
    }
    return result + ": ";
  }
  template <class Forward, class Backward>
  void check(const Forward& forward, const Backward& backward, const AnyMask& mask, double tolerance) {
    plain::attention(
        z, [&](std::size_t s, std::size_t t) { return mask.sees(s, t); }, factor, expected);
    require_alike(all_of(forward.out), expected.out, tolerance, text(mask) + "out");
    require_alike(all_of(forward.log_sum), expected.log_sum, tolerance, text(mask) + "log of sums");
    require_alike(all_of(backward.q), expected.dq, tolerance, text(mask) + "gradient of queries");
    require_alike(all_of(backward.k), expected.dk, tolerance, text(mask) + "gradient of keys");
    require_alike(all_of(backward.v), expected.dv, tolerance, text(mask) + "gradient of values");
  }

  plain::AttentionSizes z;
  double factor = 0.7;
  Q q, dout;
  K k, v;
  plain::AttentionArrays expected;
};

}  // namespace attending
