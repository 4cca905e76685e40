// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "meshwise/train/adamw.hpp"

namespace meshwise {

namespace detail {

/// Whether values of E are combined in a wider type, in which a master is worth its memory.
template <class E>
inline constexpr bool is_narrow = !std::is_same_v<accumulate_t<E>, E>;

template <class T>
using master_of = Tensor<accumulate_t<typename T::element>, typename T::dims, typename T::layout, typename T::space>;

/// The verdict on updating a narrow parameter: the gradient has its element, or the wider one of the master.
template <class T, class G>
consteval auto mixed_update_verdict() {
  if constexpr (std::is_same_v<typename G::element, accumulate_t<typename T::element>>) {
    return update_verdict<master_of<T>, G>();
  } else {
    return update_verdict<T, G>();
  }
}
template <class T, class G>
using mixed_update_of = typename decltype(mixed_update_verdict<operand<T>, operand<G>>())::is;

}  // namespace detail

/// What AdamW keeps of a parameter in bf16, fp16 or fp8: its value in float, the master, and the moments of that.
///
/// The parameter is what the master rounds to, to nearest: steps that are smaller than half a unit in its last place
/// add up instead of vanishing. T: any layout but a Partial, so a shard has the master and the moments of its own part
/// only. Memory: 12 bytes per element held; with parameter and gradient in two bytes each that makes 16. Refused for
/// elements that are not narrower than what they are combined in: AdamWState does for these.
/// Source: Micikevicius et al., "Mixed Precision Training", arXiv 1710.03740.
template <AnyTensor T>
struct MasterState {
  using Master = detail::master_of<T>;
  Master master;
  AdamWState<Master> moments;

  /// The master of a parameter: its value, exactly. Cost: three tensors of float, counted as optimizer state.
  explicit MasterState(const T& parameter)
      : MasterState(parameter, CategoryScope(heap_of(parameter), Category::optimizer)) {}
  /// A master that is known better than to the parameter's last place: drawn in float, or read back. Its storage is
  /// taken as it is, in the category in which it was allocated.
  explicit MasterState(Master values) : master(std::move(values)), moments(master) {}

  /// What the parameter is: the master, rounded. Cost: one allocation, in the current category.
  T parameter() const {
    T result(master.mesh(), master.extents(), detail::uninitialised{});
    auto* const out = detail::written(result);
    const auto in = master.local();
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = static_cast<typename T::element>(in[i]);
    return result;
  }

 private:
  template <class X>
  static Heap& heap_of(const X& x) {
    return x.mesh().template memory<typename T::space>();
  }
  MasterState(const T& p, const CategoryScope&) : MasterState(widened(p)) {}
  static Master widened(const T& p) {
    Master result(p.mesh(), p.extents(), detail::uninitialised{});
    auto* const out = detail::written(result);
    const auto in = p.local();
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = static_cast<typename Master::element>(in[i]);
    return result;
  }
};

/// No constructor for what is wide already, and an error that spells the reason.
template <AnyTensor T>
  requires(!detail::is_narrow<typename T::element>)
struct MasterState<T> {
  template <class Refused = refused<because::element_is_its_own_master<typename T::element>, try_<use_AdamWState>>>
  explicit MasterState(const T&) = delete;
};

namespace detail {

template <AnyTensor T, AnyTensor G>
void check_update(const T& parameter, const G& gradient, const MasterState<T>& state) {
  check_operands("adamw_step", parameter, gradient);
  check_operands("adamw_step", parameter, state.master);
}

/// Updates some local elements of the master, and rounds them into the parameter.
template <AnyTensor T, AnyTensor G>
void update_elements(T& parameter, const G& gradient, MasterState<T>& state, const AdamWUpdateOf<T>& update,
                     std::size_t begin, std::size_t count) {
  using E = typename T::element;
  using A = accumulate_t<E>;
  E* w = parameter.mutable_local().data() + begin;
  const auto* g = gradient.local().data() + begin;
  A* master = state.master.mutable_local().data() + begin;
  A* m = state.moments.first.mutable_local().data() + begin;
  A* v = state.moments.second.mutable_local().data() + begin;
  update.all(master, g, m, v, count,
             [w](std::size_t i, const auto& value, auto... few) { store(w + i, value, few...); });
}

}  // namespace detail

/// One step of AdamW in mixed precision: on the master, which is then rounded into the parameter.
///
/// parameter: only written; gradient: of the parameter's type, or in the element of the master (18 bytes per parameter:
/// what is added up over many micro-batches then rounds less). The rest, cost and errors as for AdamWState.
template <AnyTensor T, AnyTensor G>
  requires detail::is_accepted<detail::mixed_update_of<T, G>>
void adamw_step(T& parameter, const G& gradient, MasterState<T>& state, std::uint64_t step, const AdamWOptions& options,
                double gradient_scale = 1.0) {
  detail::check_update(parameter, gradient, state);
  detail::update_elements(parameter, gradient, state, {options, step, gradient_scale}, 0, parameter.local().size());
}
template <AnyTensor T, AnyTensor G>
  requires(!detail::is_accepted<detail::mixed_update_of<T, G>>)
auto adamw_step(T& parameter, const G& gradient, MasterState<T>& state, std::uint64_t step, const AdamWOptions& options,
                double gradient_scale = 1.0) -> detail::mixed_update_of<T, G>;

}  // namespace meshwise
