// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshwise/parallel/zero.hpp"
#include "meshwise/train/weight_decay.hpp"
#include "model.hpp"

namespace gpt {

/// The stages of ZeRO, on whatever axes the gradients of a parameter owe a sum over.
struct Stage0 {
  template <Axis... As>
  using over = DataParallel<As...>;
};
struct Stage1 {
  template <Axis... As>
  using over = Zero1<As...>;
};
struct Stage2 {
  template <Axis... As>
  using over = Zero2<As...>;
};
struct Stage3 {
  template <Axis... As>
  using over = Zero3<As...>;
};

/// What the optimizer keeps of a parameter: for narrow elements a master in float, too.
template <class T>
using StateOf = std::conditional_t<std::is_same_v<typename T::element, accumulate_t<typename T::element>>,
                                   AdamWState<T>, MasterState<T>>;

/// The parameters that a stage holds over the same axes, with the state of the optimizer for this rank's part of them.
template <class Stage, class E>
class Held {
 public:
  using Model = Zero<Stage, E, Grid>;

  Held(const Grid& mesh, const ZeroOptions& options) : model_(mesh, options) {}

  Model& model() { return model_; }
  void begin_unit() {
    model_.begin_unit();
    without_decay_.emplace_back();
  }
  template <class T>
  typename Model::template Ticket<T> add(const T& parameter, bool decays) {
    const auto ticket = model_.add(parameter);
    if (!decays) without_decay_.back().push_back(ticket.number);
    return ticket;
  }
  void seal() {
    for (std::size_t u = 0; u < model_.units(); ++u) states_.emplace_back(model_.own(u));
  }
  void update(std::uint64_t step, const AdamWOptions& options, double gradient_scale) {
    model_.update([&](std::size_t unit, auto& parameters, const auto& gradients) {
      std::vector<Range> still;
      for (const std::size_t number : without_decay_[unit]) still.push_back(model_.ranges(unit)[number]);
      adamw_step(parameters, gradients, states_[unit], step, options, gradient_scale, still);
    });
  }

 private:
  Model model_;
  std::vector<std::vector<std::size_t>> without_decay_;  // numbers in their units
  std::vector<StateOf<typename Model::Own>> states_;
};

/// The parameters of the model in units: what is gathered and reduced at once.
///
/// A gradient owes a sum over the axes that share the batch and, if every rank along tp has the whole parameter (norms,
/// row biases, positions) and sees other tokens with it, over tp too. So there are two models of the same units, and
/// each sum is paid once, by the one whose stage has its axes.
template <class Stage, class E>
class Units {
  using Split = Held<typename Stage::template over<dp, cp>, E>;
  using Whole = Held<typename Stage::template over<dp, cp, tp>, E>;

 public:
  template <class T>
  static constexpr bool is_whole = std::is_same_v<typename T::layout, Layout<Grid>>;
  /// One of the parameters.
  template <class T>
  using Ticket = typename std::conditional_t<is_whole<T>, Whole, Split>::Model::template Ticket<T>;

  /// The whole parameters of a unit that is in use.
  class Parameters {
   public:
    Parameters(const typename Split::Model::Parameters& split, const typename Whole::Model::Parameters& whole)
        : split_(split), whole_(whole) {}
    template <class T>
    T operator[](const typename Split::Model::template Ticket<T>& ticket) const {
      return split_[ticket];
    }
    template <class T>
    T operator[](const typename Whole::Model::template Ticket<T>& ticket) const {
      return whole_[ticket];
    }

   private:
    const typename Split::Model::Parameters& split_;
    const typename Whole::Model::Parameters& whole_;
  };
  /// Where its gradients go.
  class Gradients {
   public:
    Gradients(typename Split::Model::Gradients& split, typename Whole::Model::Gradients& whole)
        : split_(split), whole_(whole) {}
    template <class T, class G>
    void add(const typename Split::Model::template Ticket<T>& ticket, const G& gradient) {
      split_.add(ticket, gradient);
    }
    template <class T, class G>
    void add(const typename Whole::Model::template Ticket<T>& ticket, const G& gradient) {
      whole_.add(ticket, gradient);
    }

   private:
    typename Split::Model::Gradients& split_;
    typename Whole::Model::Gradients& whole_;
  };
  /// While it lives, nothing is sent that stages do not send in every micro-batch.
  struct Quiet {
    NoSync split, whole;
  };

  Units(const Grid& mesh, const ZeroOptions& options) : mesh_(mesh), split_(mesh, options), whole_(mesh, options) {}

  std::size_t begin_unit() {
    split_.begin_unit();
    whole_.begin_unit();
    return units_++;
  }
  template <class T>
  Ticket<T> add(const T& parameter, bool decays) {
    if constexpr (is_whole<T>) {
      return whole_.add(parameter, decays);
    } else {
      return split_.add(parameter, decays);
    }
  }
  /// Ends the description: the order in which the forward uses the units, and the optimizer's state.
  void seal(const std::vector<std::size_t>& order) {
    split_.model().set_order(order);
    whole_.model().set_order(order);
    split_.seal();
    whole_.seal();
  }

  template <class F>
  decltype(auto) forward(std::size_t unit, const F& f) {
    return split_.model().forward(unit, [&](const auto& split) -> decltype(auto) {
      return whole_.model().forward(unit,
                                    [&](const auto& whole) -> decltype(auto) { return f(Parameters(split, whole)); });
    });
  }
  template <class F>
  decltype(auto) backward(std::size_t unit, const F& f) {
    return split_.model().backward(unit, [&](const auto& split, auto& split_gradients) -> decltype(auto) {
      return whole_.model().backward(unit, [&](const auto& whole, auto& whole_gradients) -> decltype(auto) {
        Gradients gradients(split_gradients, whole_gradients);
        return f(Parameters(split, whole), gradients);
      });
    });
  }
  [[nodiscard]] Quiet no_sync(bool quiet) { return {split_.model().no_sync(quiet), whole_.model().no_sync(quiet)}; }
  /// Waits for the gradients; the norm of all of them.
  double finish() {
    split_.model().finish();
    whole_.model().finish();
    GlobalNorm<Grid> norm(mesh_);
    split_.model().add_gradients_to(norm);
    whole_.model().add_gradients_to(norm);
    return norm.norm();
  }
  void update(std::uint64_t step, const AdamWOptions& options, double gradient_scale) {
    split_.update(step, options, gradient_scale);
    whole_.update(step, options, gradient_scale);
  }
  /// Waits for what the last update has started.
  void settle() {
    for (std::size_t u = 0; u < units_; ++u) {
      (void)split_.model().own(u);
      (void)whole_.model().own(u);
    }
  }
  /// Back to rest after a forward without a backward.
  void release() {
    split_.model().release();
    whole_.model().release();
  }

 private:
  Grid mesh_;
  Split split_;
  Whole whole_;
  std::size_t units_ = 0;
};

}  // namespace gpt
