// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>

#include "meshwise/core/math.hpp"
#include "meshwise/core/random.hpp"

namespace meshwise {

/// A learning rate as a function of the number of the step, from 1, as adamw_step counts: `rate(step)`.
///
/// There is no state: a run that goes on from a checkpoint, or skips a step without counting it, has the right rate.
template <class S>
concept RateSchedule = requires(const S& schedule, std::uint64_t step) {
  { schedule(step) } -> std::same_as<double>;
};

namespace detail {

/// How much of the way from `from` to `to` is done: 0 before, 1 after.
constexpr double done(std::uint64_t step, std::uint64_t from, std::uint64_t to) {
  if (step <= from) return 0;
  if (step >= to) return 1;
  return static_cast<double>(step - from) / static_cast<double>(to - from);
}
constexpr double warmed_up(double peak, std::uint64_t step, std::uint64_t warmup) {
  return step >= warmup ? peak : peak * (static_cast<double>(step) / static_cast<double>(warmup));
}

}  // namespace detail

/// Linear from 0 to the peak in `warmup` steps, then constant.
struct ConstantRate {
  double peak = 1e-3;
  std::uint64_t warmup = 0;

  constexpr double operator()(std::uint64_t step) const { return detail::warmed_up(peak, step, warmup); }
};

/// Linear to the peak at step `warmup`, half a cosine down to `least` at `steps`, which stays.
/// Source: Loshchilov, Hutter, "SGDR", arXiv 1608.03983.
struct CosineRate {
  double peak = 1e-3;
  std::uint64_t warmup = 0, steps = 1;
  double least = 0;

  constexpr double operator()(std::uint64_t step) const {
    if (step < warmup) return detail::warmed_up(peak, step, warmup);
    const double cosine = detail::sine_cosine_of_turns(0.5 * detail::done(step, warmup, steps)).cosine;
    return least + 0.5 * (peak - least) * (1.0 + cosine);
  }
};

/// Linear to the peak at step `warmup`, then as 1 / sqrt(step), which needs no end.
/// Source: Vaswani et al., "Attention Is All You Need", arXiv 1706.03762.
struct InverseSquareRootRate {
  double peak = 1e-3;
  std::uint64_t warmup = 1;

  double operator()(std::uint64_t step) const {
    const std::uint64_t full = warmup == 0 ? 1 : warmup;
    if (step <= full) return detail::warmed_up(peak, step, warmup);
    return peak * math::sqrt(static_cast<double>(full) / static_cast<double>(step));
  }
};

/// Linear to the peak at step `warmup`, constant up to `decay_from`, linear down to `least` at `steps`, which stays
/// (WSD): a run is prolonged by going on from before decay_from.
/// Source: Hu et al., "MiniCPM", arXiv 2404.06395.
struct WarmupStableDecayRate {
  double peak = 1e-3;
  std::uint64_t warmup = 0, decay_from = 0, steps = 1;
  double least = 0;

  constexpr double operator()(std::uint64_t step) const {
    if (step < warmup) return detail::warmed_up(peak, step, warmup);
    const double way = detail::done(step, decay_from > warmup ? decay_from : warmup, steps);
    return (1.0 - way) * peak + way * least;
  }
};

}  // namespace meshwise
