// SPDX-License-Identifier: Apache-2.0
// Attention and its gradients as the formulas say, by loops over whole arrays in double.
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

namespace plain {

struct AttentionSizes {
  std::size_t batch = 1, queries = 1, keys = 1, heads = 1, shares = 1, width = 1, value_width = 1;

  std::size_t q(std::size_t b, std::size_t s, std::size_t h) const { return ((b * queries + s) * heads + h) * width; }
  std::size_t out(std::size_t b, std::size_t s, std::size_t h) const {
    return ((b * queries + s) * heads + h) * value_width;
  }
  std::size_t row(std::size_t b, std::size_t s, std::size_t h) const { return (b * queries + s) * heads + h; }
  std::size_t k(std::size_t b, std::size_t t, std::size_t h) const {
    return ((b * keys + t) * shares + h * shares / heads) * width;
  }
  std::size_t v(std::size_t b, std::size_t t, std::size_t h) const {
    return ((b * keys + t) * shares + h * shares / heads) * value_width;
  }
};

struct AttentionArrays {
  std::vector<double> q, k, v, dout;             // given
  std::vector<double> out, log_sum, dq, dk, dv;  // computed
};

/// sees(query, key): whether a query sees a key.
inline void attention(const AttentionSizes& z, const std::function<bool(std::size_t, std::size_t)>& sees, double factor,
                      AttentionArrays& a) {
  a.out.assign(a.dout.size(), 0);
  a.log_sum.assign(z.batch * z.queries * z.heads, 0);
  a.dq.assign(a.q.size(), 0);
  a.dk.assign(a.k.size(), 0);
  a.dv.assign(a.v.size(), 0);
  std::vector<double> p(z.keys), dp(z.keys);
  for (std::size_t b = 0; b < z.batch; ++b) {
    for (std::size_t s = 0; s < z.queries; ++s) {
      for (std::size_t h = 0; h < z.heads; ++h) {
        const double none = -std::numeric_limits<double>::infinity();
        double top = none, sum = 0, dot = 0;
        for (std::size_t t = 0; t < z.keys; ++t) {
          p[t] = 0;
          for (std::size_t d = 0; d < z.width; ++d) p[t] += factor * a.q[z.q(b, s, h) + d] * a.k[z.k(b, t, h) + d];
          if (sees(s, t) && p[t] > top) top = p[t];
        }
        for (std::size_t t = 0; t < z.keys; ++t) {
          p[t] = sees(s, t) ? std::exp(p[t] - top) : 0;
          sum += p[t];
        }
        a.log_sum[z.row(b, s, h)] = sum == 0 ? none : top + std::log(sum);
        for (std::size_t t = 0; t < z.keys; ++t) {
          if (p[t] != 0) p[t] /= sum;
          dp[t] = 0;
          for (std::size_t d = 0; d < z.value_width; ++d) {
            a.out[z.out(b, s, h) + d] += p[t] * a.v[z.v(b, t, h) + d];
            a.dv[z.v(b, t, h) + d] += p[t] * a.dout[z.out(b, s, h) + d];
            dp[t] += a.dout[z.out(b, s, h) + d] * a.v[z.v(b, t, h) + d];
          }
          dot += p[t] * dp[t];
        }
        for (std::size_t t = 0; t < z.keys; ++t) {
          const double ds = factor * p[t] * (dp[t] - dot);
          for (std::size_t d = 0; d < z.width; ++d) {
            a.dq[z.q(b, s, h) + d] += ds * a.k[z.k(b, t, h) + d];
            a.dk[z.k(b, t, h) + d] += ds * a.q[z.q(b, s, h) + d];
          }
        }
      }
    }
  }
}

}  // namespace plain
