// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// The GPT of examples/gpt in plain loops over std::vector<double>: what every parallel run is compared with.
///
/// It uses nothing of the library, so that it can be wrong only on its own. Arrays are row-major; `tokens` is
/// the number of tokens in the batch, B sequences of S = positions bytes. Each `*_backward` takes the
/// gradient of its function's result, adds the parameters' gradients in place and returns the gradient of its
/// input.
namespace plain {

using Values = std::vector<double>;
using Tokens = std::vector<std::size_t>;

/// Sizes of the model. Every sequence has exactly `positions` tokens; heads * head_dim need not equal hidden.
struct Config {
  std::size_t vocab = 256;
  std::size_t positions = 64;
  std::size_t hidden = 32;
  std::size_t heads = 4;
  std::size_t head_dim = 8;
  std::size_t ffn = 128;
  std::size_t layers = 2;
};

/// One named parameter, or its gradient. Weight decay applies where `decays`: to weights, not to biases and
/// gains (the number of dims does not tell: the biases of query, key and value are [heads, head_dim]).
struct Array {
  std::string name;
  std::vector<std::size_t> dims;
  bool decays = false;
  Values values;
};

using Parameters = std::vector<Array>;

/// The factor of one element at one dropout site: 0, or 1/(1-p). An empty function means no dropout.
///
/// Sites: 0 the sum of the embeddings, 1+2l the attention output of layer l, 2+2l its MLP output. The index
/// is that of the element in the global [batch, seq, hidden] array. The caller binds seed and step.
using Dropout = std::function<double(std::size_t site, std::uint64_t index)>;

/// All parameters in their fixed order, with every value `fill`.
inline Parameters make_parameters(const Config& c, double fill = 0.0) {
  Parameters all;
  const auto add = [&](std::string name, std::vector<std::size_t> dims, bool decays) {
    std::size_t count = 1;
    for (const std::size_t dim : dims) count *= dim;
    all.push_back({std::move(name), std::move(dims), decays, Values(count, fill)});
  };
  add("embedding", {c.vocab, c.hidden}, true);
  add("position", {c.positions, c.hidden}, true);
  for (std::size_t l = 0; l < c.layers; ++l) {
    const std::string layer = "layer" + std::to_string(l) + ".";
    add(layer + "norm1.gain", {c.hidden}, false);
    add(layer + "norm1.bias", {c.hidden}, false);
    for (const char* name : {"query", "key", "value"}) {
      add(layer + name + ".weight", {c.hidden, c.heads, c.head_dim}, true);
      add(layer + name + ".bias", {c.heads, c.head_dim}, false);
    }
    add(layer + "output.weight", {c.heads, c.head_dim, c.hidden}, true);
    add(layer + "output.bias", {c.hidden}, false);
    add(layer + "norm2.gain", {c.hidden}, false);
    add(layer + "norm2.bias", {c.hidden}, false);
    add(layer + "up.weight", {c.hidden, c.ffn}, true);
    add(layer + "up.bias", {c.ffn}, false);
    add(layer + "down.weight", {c.ffn, c.hidden}, true);
    add(layer + "down.bias", {c.hidden}, false);
  }
  add("final.gain", {c.hidden}, false);
  add("final.bias", {c.hidden}, false);
  return all;
}

/// The values of the array of that name. Errors: std::invalid_argument when there is none.
inline Values& named(Parameters& all, const std::string& name) {
  for (Array& array : all) {
    if (array.name == name) return array.values;
  }
  throw std::invalid_argument("plain::named: no parameter is called '" + name + "'");
}

inline const Values& named(const Parameters& all, const std::string& name) {
  return named(const_cast<Parameters&>(all), name);
}

// ---- linear: y[n, out] = x[n, in] w[in, out] + b[out] ----

inline Values linear(const Values& x, const Values& w, const Values& b) {
  const std::size_t outs = b.size(), ins = w.size() / outs, tokens = x.size() / ins;
  Values y(tokens * outs);
  for (std::size_t n = 0; n < tokens; ++n) {
    for (std::size_t o = 0; o < outs; ++o) {
      double sum = b[o];
      for (std::size_t i = 0; i < ins; ++i) sum += x[n * ins + i] * w[i * outs + o];
      y[n * outs + o] = sum;
    }
  }
  return y;
}

inline Values linear_backward(const Values& dy, const Values& x, const Values& w, Values& dw, Values& db) {
  const std::size_t outs = db.size(), ins = w.size() / outs, tokens = x.size() / ins;
  Values dx(x.size());
  for (std::size_t n = 0; n < tokens; ++n) {
    for (std::size_t o = 0; o < outs; ++o) {
      const double d = dy[n * outs + o];
      db[o] += d;
      for (std::size_t i = 0; i < ins; ++i) {
        dw[i * outs + o] += x[n * ins + i] * d;
        dx[n * ins + i] += w[i * outs + o] * d;
      }
    }
  }
  return dx;
}

// ---- layer norm over hidden: y = gain (x - mean) / sqrt(variance + 1e-5) + bias ----

struct Norm {
  Values unit;   ///< (x - mean) / deviation, [n, hidden]
  Values scale;  ///< 1 / deviation, [n]
  Values y;
};

inline Norm norm(const Values& x, const Values& gain, const Values& bias) {
  const std::size_t hidden = gain.size(), tokens = x.size() / hidden;
  const double width = static_cast<double>(hidden);
  Norm r{Values(x.size()), Values(tokens), Values(x.size())};
  for (std::size_t n = 0; n < tokens; ++n) {
    double mean = 0, variance = 0;
    for (std::size_t h = 0; h < hidden; ++h) mean += x[n * hidden + h] / width;
    for (std::size_t h = 0; h < hidden; ++h) {
      variance += (x[n * hidden + h] - mean) * (x[n * hidden + h] - mean) / width;
    }
    r.scale[n] = 1 / std::sqrt(variance + 1e-5);
    for (std::size_t h = 0; h < hidden; ++h) {
      r.unit[n * hidden + h] = (x[n * hidden + h] - mean) * r.scale[n];
      r.y[n * hidden + h] = gain[h] * r.unit[n * hidden + h] + bias[h];
    }
  }
  return r;
}

inline Values norm_backward(const Values& dy, const Norm& r, const Values& gain, Values& dgain, Values& dbias) {
  const std::size_t hidden = gain.size(), tokens = r.scale.size();
  const double width = static_cast<double>(hidden);
  Values dx(dy.size());
  for (std::size_t n = 0; n < tokens; ++n) {
    double mean = 0, along = 0;  // of the gradient of `unit`, and of its product with `unit`
    for (std::size_t h = 0; h < hidden; ++h) {
      const std::size_t i = n * hidden + h;
      dgain[h] += dy[i] * r.unit[i];
      dbias[h] += dy[i];
      mean += dy[i] * gain[h] / width;
      along += dy[i] * gain[h] * r.unit[i] / width;
    }
    for (std::size_t h = 0; h < hidden; ++h) {
      const std::size_t i = n * hidden + h;
      dx[i] = r.scale[n] * (dy[i] * gain[h] - mean - r.unit[i] * along);
    }
  }
  return dx;
}

// ---- GELU: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) ----

inline double gelu_inner(double x) { return std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x); }

inline Values gelu(const Values& x) {
  Values y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = 0.5 * x[i] * (1 + std::tanh(gelu_inner(x[i])));
  return y;
}

inline Values gelu_backward(const Values& dy, const Values& x) {
  Values dx(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double t = std::tanh(gelu_inner(x[i]));
    const double slope = std::sqrt(2 / std::acos(-1.0)) * (1 + 3 * 0.044715 * x[i] * x[i]);
    dx[i] = dy[i] * (0.5 * (1 + t) + 0.5 * x[i] * (1 - t * t) * slope);
  }
  return dx;
}

// ---- causal attention: y[b,s,a,:] = sum over t <= s of softmax_t(q[b,s,a,:] . k[b,t,a,:] / sqrt(D))
// v[b,t,a,:] ----

struct Attention {
  Values q, k, v;  ///< [batch, seq, heads, head_dim]
  Values weight;   ///< the soft-max, [batch, heads, seq of the query, seq of the key], 0 where key > query
  Values y;
};

inline Attention attention(const Config& c, Values q, Values k, Values v) {
  const std::size_t S = c.positions, A = c.heads, D = c.head_dim, B = q.size() / (S * A * D);
  Attention r{std::move(q), std::move(k), std::move(v), Values(B * A * S * S), Values(B * S * A * D)};
  const auto at = [&](std::size_t b, std::size_t s, std::size_t a) { return ((b * S + s) * A + a) * D; };
  for (std::size_t b = 0; b < B; ++b) {
    for (std::size_t a = 0; a < A; ++a) {
      for (std::size_t s = 0; s < S; ++s) {
        double* weight = &r.weight[((b * A + a) * S + s) * S];
        double largest = -INFINITY, total = 0;
        for (std::size_t t = 0; t <= s; ++t) {
          double score = 0;
          for (std::size_t d = 0; d < D; ++d) score += r.q[at(b, s, a) + d] * r.k[at(b, t, a) + d];
          weight[t] = score / std::sqrt(static_cast<double>(D));
          largest = std::fmax(largest, weight[t]);
        }
        for (std::size_t t = 0; t <= s; ++t) total += weight[t] = std::exp(weight[t] - largest);
        for (std::size_t t = 0; t <= s; ++t) {
          weight[t] /= total;
          for (std::size_t d = 0; d < D; ++d) r.y[at(b, s, a) + d] += weight[t] * r.v[at(b, t, a) + d];
        }
      }
    }
  }
  return r;
}

struct AttentionGradients {
  Values q, k, v;
};

inline AttentionGradients attention_backward(const Config& c, const Values& dy, const Attention& r) {
  const std::size_t S = c.positions, A = c.heads, D = c.head_dim, B = dy.size() / (S * A * D);
  AttentionGradients g{Values(dy.size()), Values(dy.size()), Values(dy.size())};
  const auto at = [&](std::size_t b, std::size_t s, std::size_t a) { return ((b * S + s) * A + a) * D; };
  for (std::size_t b = 0; b < B; ++b) {
    for (std::size_t a = 0; a < A; ++a) {
      for (std::size_t s = 0; s < S; ++s) {
        const double* weight = &r.weight[((b * A + a) * S + s) * S];
        Values dweight(S);
        double mean = 0;  // of dweight under the soft-max
        for (std::size_t t = 0; t <= s; ++t) {
          for (std::size_t d = 0; d < D; ++d) {
            dweight[t] += dy[at(b, s, a) + d] * r.v[at(b, t, a) + d];
            g.v[at(b, t, a) + d] += weight[t] * dy[at(b, s, a) + d];
          }
          mean += weight[t] * dweight[t];
        }
        for (std::size_t t = 0; t <= s; ++t) {
          const double dscore = weight[t] * (dweight[t] - mean) / std::sqrt(static_cast<double>(D));
          for (std::size_t d = 0; d < D; ++d) {
            g.q[at(b, s, a) + d] += dscore * r.k[at(b, t, a) + d];
            g.k[at(b, t, a) + d] += dscore * r.q[at(b, s, a) + d];
          }
        }
      }
    }
  }
  return g;
}

// ---- the model ----

inline void add_to(Values& x, const Values& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

/// Dropout multiplies by a constant mask, so this is its backward too.
inline void drop(const Dropout& dropout, std::size_t site, Values& x) {
  if (!dropout) return;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] *= dropout(site, i);
}

/// What the backward pass needs of one layer.
struct Layer {
  Norm norm1;
  Attention attention;
  Norm norm2;
  Values up;      ///< before the GELU
  Values active;  ///< after it
};

struct Forward {
  std::vector<Layer> layers;
  Norm final;
  Values logits;  ///< [batch, seq, vocab]
};

inline Forward forward(const Config& c, const Parameters& parameters, const Tokens& tokens,
                       const Dropout& dropout = {}) {
  if (tokens.empty() || tokens.size() % c.positions != 0) {
    throw std::invalid_argument("plain::forward: the tokens are not one or more whole sequences");
  }
  for (const std::size_t token : tokens) {
    if (token >= c.vocab) throw std::invalid_argument("plain::forward: a token is outside the vocabulary");
  }
  const Values& embedding = named(parameters, "embedding");
  const Values& position = named(parameters, "position");
  Values x(tokens.size() * c.hidden);
  for (std::size_t n = 0; n < tokens.size(); ++n) {
    for (std::size_t h = 0; h < c.hidden; ++h) {
      x[n * c.hidden + h] = embedding[tokens[n] * c.hidden + h] + position[n % c.positions * c.hidden + h];
    }
  }
  drop(dropout, 0, x);

  Forward f;
  for (std::size_t l = 0; l < c.layers; ++l) {
    const auto p = [&](const char* name) -> const Values& {
      return named(parameters, "layer" + std::to_string(l) + "." + name);
    };
    Layer layer;
    layer.norm1 = norm(x, p("norm1.gain"), p("norm1.bias"));
    layer.attention = attention(c, linear(layer.norm1.y, p("query.weight"), p("query.bias")),
                                linear(layer.norm1.y, p("key.weight"), p("key.bias")),
                                linear(layer.norm1.y, p("value.weight"), p("value.bias")));
    Values branch = linear(layer.attention.y, p("output.weight"), p("output.bias"));
    drop(dropout, 1 + 2 * l, branch);
    add_to(x, branch);

    layer.norm2 = norm(x, p("norm2.gain"), p("norm2.bias"));
    layer.up = linear(layer.norm2.y, p("up.weight"), p("up.bias"));
    layer.active = gelu(layer.up);
    branch = linear(layer.active, p("down.weight"), p("down.bias"));
    drop(dropout, 2 + 2 * l, branch);
    add_to(x, branch);
    f.layers.push_back(std::move(layer));
  }

  f.final = norm(x, named(parameters, "final.gain"), named(parameters, "final.bias"));
  f.logits.resize(tokens.size() * c.vocab);
  for (std::size_t n = 0; n < tokens.size(); ++n) {
    for (std::size_t v = 0; v < c.vocab; ++v) {
      for (std::size_t h = 0; h < c.hidden; ++h) {
        f.logits[n * c.vocab + v] += f.final.y[n * c.hidden + h] * embedding[v * c.hidden + h];
      }
    }
  }
  return f;
}

struct LossAndGradients {
  double loss = 0;  ///< mean cross-entropy over all tokens of the batch, in nats
  Parameters gradients;
};

/// One forward and backward pass over the whole batch.
inline LossAndGradients loss_and_gradients(const Config& c, const Parameters& parameters, const Tokens& tokens,
                                           const Tokens& targets, const Dropout& dropout = {}) {
  if (targets.size() != tokens.size()) {
    throw std::invalid_argument("plain::loss_and_gradients: as many targets as tokens are needed");
  }
  for (const std::size_t target : targets) {
    if (target >= c.vocab) throw std::invalid_argument("plain::loss_and_gradients: a target is outside the vocabulary");
  }
  const Forward f = forward(c, parameters, tokens, dropout);
  LossAndGradients result{0, make_parameters(c)};
  Parameters& gradients = result.gradients;

  const double count = static_cast<double>(tokens.size());
  Values dlogits(f.logits.size());
  for (std::size_t n = 0; n < tokens.size(); ++n) {
    const double* logits = &f.logits[n * c.vocab];
    double largest = -INFINITY, total = 0;
    for (std::size_t v = 0; v < c.vocab; ++v) largest = std::fmax(largest, logits[v]);
    for (std::size_t v = 0; v < c.vocab; ++v) total += std::exp(logits[v] - largest);
    result.loss += (largest + std::log(total) - logits[targets[n]]) / count;
    for (std::size_t v = 0; v < c.vocab; ++v) {
      const double probability = std::exp(logits[v] - largest) / total;
      dlogits[n * c.vocab + v] = (probability - (v == targets[n] ? 1 : 0)) / count;
    }
  }

  // The head is the embedding transposed.
  const Values& embedding = named(parameters, "embedding");
  Values& dembedding = named(gradients, "embedding");
  Values dx(tokens.size() * c.hidden);
  for (std::size_t n = 0; n < tokens.size(); ++n) {
    for (std::size_t v = 0; v < c.vocab; ++v) {
      for (std::size_t h = 0; h < c.hidden; ++h) {
        dx[n * c.hidden + h] += dlogits[n * c.vocab + v] * embedding[v * c.hidden + h];
        dembedding[v * c.hidden + h] += dlogits[n * c.vocab + v] * f.final.y[n * c.hidden + h];
      }
    }
  }
  dx = norm_backward(dx, f.final, named(parameters, "final.gain"), named(gradients, "final.gain"),
                     named(gradients, "final.bias"));

  for (std::size_t l = c.layers; l-- > 0;) {
    const Layer& layer = f.layers[l];
    const auto p = [&](const char* name) -> const Values& {
      return named(parameters, "layer" + std::to_string(l) + "." + name);
    };
    const auto g = [&](const char* name) -> Values& {
      return named(gradients, "layer" + std::to_string(l) + "." + name);
    };
    Values branch = dx;
    drop(dropout, 2 + 2 * l, branch);
    branch = linear_backward(branch, layer.active, p("down.weight"), g("down.weight"), g("down.bias"));
    branch = gelu_backward(branch, layer.up);
    branch = linear_backward(branch, layer.norm2.y, p("up.weight"), g("up.weight"), g("up.bias"));
    add_to(dx, norm_backward(branch, layer.norm2, p("norm2.gain"), g("norm2.gain"), g("norm2.bias")));

    branch = dx;
    drop(dropout, 1 + 2 * l, branch);
    branch = linear_backward(branch, layer.attention.y, p("output.weight"), g("output.weight"), g("output.bias"));
    const AttentionGradients d = attention_backward(c, branch, layer.attention);
    branch = linear_backward(d.q, layer.norm1.y, p("query.weight"), g("query.weight"), g("query.bias"));
    add_to(branch, linear_backward(d.k, layer.norm1.y, p("key.weight"), g("key.weight"), g("key.bias")));
    add_to(branch, linear_backward(d.v, layer.norm1.y, p("value.weight"), g("value.weight"), g("value.bias")));
    add_to(dx, norm_backward(branch, layer.norm1, p("norm1.gain"), g("norm1.gain"), g("norm1.bias")));
  }

  drop(dropout, 0, dx);
  Values& dposition = named(gradients, "position");
  for (std::size_t n = 0; n < tokens.size(); ++n) {
    for (std::size_t h = 0; h < c.hidden; ++h) {
      dembedding[tokens[n] * c.hidden + h] += dx[n * c.hidden + h];
      dposition[n % c.positions * c.hidden + h] += dx[n * c.hidden + h];
    }
  }
  return result;
}

/// The Euclidean norm of all gradients taken as one vector.
inline double gradient_norm(const Parameters& gradients) {
  double sum = 0;
  for (const Array& array : gradients) {
    for (const double value : array.values) sum += value * value;
  }
  return std::sqrt(sum);
}

/// AdamW with bias correction, decoupled weight decay and clipping by the global norm.
/// Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019, algorithm 2.
struct AdamW {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double clip = 1.0;  ///< largest gradient norm; 0 for no clipping
  int steps = 0;      ///< done so far
  std::vector<Values> mean{}, square{};

  /// Changes the parameters by one step; returns the gradient norm before clipping.
  double step(Parameters& parameters, const Parameters& gradients, double learning_rate) {
    if (steps == 0) {
      mean.clear();
      for (const Array& array : parameters) mean.push_back(Values(array.values.size()));
      square = mean;
    }
    ++steps;
    const double length = gradient_norm(gradients);
    const double shrink = clip > 0 && length > clip ? clip / length : 1;
    for (std::size_t a = 0; a < parameters.size(); ++a) {
      for (std::size_t i = 0; i < parameters[a].values.size(); ++i) {
        const double g = gradients[a].values[i] * shrink;
        double& w = parameters[a].values[i];
        mean[a][i] = beta1 * mean[a][i] + (1 - beta1) * g;
        square[a][i] = beta2 * square[a][i] + (1 - beta2) * g * g;
        const double unbiased_mean = mean[a][i] / (1 - std::pow(beta1, steps));
        const double unbiased_square = square[a][i] / (1 - std::pow(beta2, steps));
        const double decay = parameters[a].decays ? weight_decay * w : 0;
        w -= learning_rate * (unbiased_mean / (std::sqrt(unbiased_square) + epsilon) + decay);
      }
    }
    return length;
  }
};

}  // namespace plain
