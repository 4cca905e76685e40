// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "meshwise/core/error.hpp"
#include "meshwise/tensor/backward.hpp"
#include "meshwise/tensor/scale.hpp"

namespace meshwise {

/// The numbers of a dynamic loss scale; powers of two, so that scaling rounds nothing.
struct LossScaleOptions {
  double initial = 65536;
  std::uint64_t interval = 2000;  ///< good steps in a row after which the scale doubles
  double least = 1;               ///< an overflow at this scale is an error
  double most = 16777216;
};

/// A dynamic loss scale, for gradients in fp16: they are computed of a multiple of the loss, so that small ones do not
/// vanish, and divided again in the optimizer; when one of them overflows, the step is skipped and the scale halved.
///
/// E: the element of the loss. The scale enters as the seed of the backward and so has to be a number of E: fp16 limits
/// it to 32768 (losses in float do not). In each step:
///
///   backward(..., scale.seed(loss))                        gradients are scale.value() times too large
///   const Clipped clipped = clip(norm, 1.0, scale.value());  norm: GlobalNorm of these gradients, as they are
///   if (scale.update(clipped.finite())) adamw_step(..., ++step, options, clipped.gradient_scale());
///
/// or, where nothing is clipped, `AllFinite(mesh).add(...).agreed()` and a gradient_scale of 1 / scale.value(), read
/// before `update`. A value: two numbers, which a checkpoint keeps. Cost: none; all ranks are told the same by the norm
/// or by AllFinite, and so have the same scale without talking about it. A skipped step changes neither parameters nor
/// moments nor the number of the step.
/// Source: Micikevicius et al., "Mixed Precision Training", arXiv 1710.03740.
template <FloatElement E = float>
class LossScale {
 public:
  /// good: good steps since the scale was last changed, for those who go on from a checkpoint with options.initial as
  /// it was then. Errors: numbers that are not powers of two with least <= initial <= most; an interval of 0.
  explicit LossScale(const LossScaleOptions& options = {}, std::uint64_t good = 0) : options_(options), good_(good) {
    if (options_.most > largest()) options_.most = largest();
    if (options_.initial > options_.most && options_.initial <= options.most) options_.initial = options_.most;
    const auto check = [](const char* name, double x) {
      int exponent = 0;
      if (x > 0 && x - x == 0 && __builtin_frexp(x, &exponent) == 0.5) return;
      fail("LossScale", "a power of two", std::string(name) + " = " + std::to_string(x), "scaling must not round");
    };
    check("least", options_.least);
    check("initial", options_.initial);
    check("most", options_.most);
    if (!(options_.least <= options_.initial && options_.initial <= options_.most)) {
      fail("LossScale", "least <= initial <= most",
           std::to_string(options_.least) + ", " + std::to_string(options_.initial) + ", " +
               std::to_string(options_.most),
           "a loss of this element allows a scale of at most " + std::to_string(largest()));
    }
    if (options_.interval == 0) fail("LossScale", "an interval of at least 1 step", "0", "2000 is usual");
    value_ = options_.initial;
  }

  double value() const { return value_; }
  /// Good steps since the scale was last changed.
  std::uint64_t good_steps() const { return good_; }

  /// gradient_seed of a loss, times the scale. Cost and errors: as gradient_seed.
  template <AnyTensor T>
    requires(detail::is_accepted<detail::seed_of<T>>&& std::is_same_v<typename detail::bare<T>::element, E>)
  [[nodiscard]] auto seed(const T& loss) const { return gradient_seed(loss) * value_; }
  template <AnyTensor T>
    requires(!detail::is_accepted<detail::seed_of<T>>)
  [[nodiscard]] auto seed(const T& loss) const -> detail::seed_of<T>;
  template <AnyTensor T>
    requires(detail::is_accepted<detail::seed_of<T>> && !std::is_same_v<typename detail::bare<T>::element, E>)
  [[nodiscard]] auto seed(const T& loss) const
      -> refused<because::elements_differ, try_<use_one_element_type>, typename detail::bare<T>::element, E>;

  /// Ends a step; whether to take it. finite: whether all gradients of all ranks are, the same on all ranks.
  /// Errors: an overflow at the least scale, on all ranks alike: no scale helps.
  [[nodiscard]] bool update(bool finite) {
    if (!finite) {
      if (value_ / 2 < options_.least) {
        fail("LossScale::update", "finite gradients at the least scale, " + std::to_string(options_.least),
             "infinite ones or NaN", "the loss itself diverges: lower the learning rate, look at the data");
      }
      value_ /= 2;
      good_ = 0;
    } else if (++good_ >= options_.interval) {
      if (value_ * 2 <= options_.most) value_ *= 2;
      good_ = 0;
    }
    return finite;
  }

 private:
  /// The largest power of two that E has.
  static constexpr double largest() {
    double result = 1;
    for (int i = 0; i < 126; ++i) {
      const double next = static_cast<double>(static_cast<E>(result * 2));
      if (!(next == result * 2)) break;
      result = next;
    }
    return result;
  }

  LossScaleOptions options_;
  double value_ = 1;
  std::uint64_t good_ = 0;
};

}  // namespace meshwise
