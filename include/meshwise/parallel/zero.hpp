// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshwise/parallel/data.hpp"
#include "meshwise/parallel/detail/flat_gradients.hpp"
#include "meshwise/parallel/zero_stages.hpp"
#include "meshwise/tensor/replicas.hpp"
#include "meshwise/train/global_norm.hpp"

namespace meshwise {

namespace detail {

/// What f returns, after `then` was called too.
template <class F, class Then>
decltype(auto) call_then(const F& f, const Then& then) {
  if constexpr (std::is_void_v<std::invoke_result_t<const F&>>) {
    f();
    then();
  } else {
    decltype(auto) result = f();
    then();
    return result;
  }
}

}  // namespace detail

/// How Zero gathers what a stage has split.
struct ZeroOptions {
  std::size_t prefetch = 1;  ///< units that are gathered ahead of the one in use: 1 + prefetch are whole at once
  bool keep_last = false;    ///< the last unit stays whole after its forward: its backward is next
};

/// The parameters of a model in units, held by the data-parallel ranks as a stage of ZeRO says; one trainer for all.
///
/// A unit is what is gathered and reduced at once, a transformer block, say: its parameters, of any types and placed on
/// other axes as they like, lie one behind the other in a flat vector. `begin_unit` and `add` describe the model once;
/// then the caller drops its own parameters. In each micro-batch `forward(unit, f)` calls f with the whole parameters
/// and `backward(unit, f)` with them and a place for gradients; meanwhile the next unit is on its way, the one before
/// in the backward, and the gradients of the unit after it. `finish` ends the last micro-batch, `update` is the
/// optimizer's step on the parts whose state this rank has.
///
/// Stage: DataParallel, Zero1, Zero2, Zero3 ... <dp>, or four layouts of your own, see zero_stages.hpp. E: the element
/// of parameters and gradients.
/// Cost: bytes as each stage says, to the byte, without padding: parts begin at floor(k N / n), so that units smaller
/// than the group and empty ones are nothing special. Memory: parameters at rest and whole units count as parameters:
/// at most 1 + prefetch units are whole (and the last one, if kept). Gradients: the accumulated ones, and of stages
/// that split them two whole units, the one that is being filled and the one that is on its way, and those whose next
/// use comes before they can be reduced.
/// Ordering: all ranks along the stage's axes call forward and backward of the same units in the same order; a rank
/// that has nothing to learn in one calls backward with an f that adds nothing. Sums are in rank order where the
/// direct algorithm does them: the bits of the parameters are then the same for all stages with one micro-batch, and
/// for any prefetch. With several micro-batches stages differ in what is added first; a hybrid stage sums in its nodes
/// first. Gradients are sums: divide by the tokens of all ranks and micro-batches once, in the loss or in `update`.
/// Lifetime: tickets belong to it; not beyond the mesh. Who keeps a parameter that f was given keeps its whole unit.
/// Errors: as described at each; those of the collectives, which come when something waits for them.
/// Source: Rajbhandari et al., "ZeRO", arXiv 1910.02054; Zhao et al., "PyTorch FSDP", arXiv 2304.11277; Wang et al.,
/// "ZeRO++", arXiv 2306.10209.
template <ZeroStage Stage, Element E, class Grid>
class Zero {
  using Line = detail::grid_of<typename Stage::parameters>;
  using Flats = detail::FlatParameters<Stage, E>;
  using Sums = detail::FlatGradients<Stage, E>;
  enum class Kind { trained, frozen };
  struct Part;
  struct Unit;

  template <class T, Kind kind>
  struct Place {
    std::size_t unit;
    std::size_t number;
    Extents<typename T::dims> extents;
  };

 public:
  /// One of the parameters, of type T.
  template <class T>
  using Ticket = Place<T, Kind::trained>;
  /// One that is not trained.
  template <class T>
  using FrozenTicket = Place<T, Kind::frozen>;
  /// The part of a unit whose optimizer state this rank has.
  using Own = typename Flats::Own;

  /// The whole parameters of a unit, while it is in use.
  class Parameters {
   public:
    /// A parameter as a view of the unit. Errors: one of another unit.
    template <class T, Kind kind>
    T operator[](const Place<T, kind>& ticket) const {
      zero_.check("Zero::Parameters", ticket, number_);
      constexpr bool trained = kind == Kind::trained;
      const Part& part = trained ? unit_.trained : unit_.frozen;
      const auto& whole = trained ? trained_ : frozen_;
      return T(zero_.mesh_, ticket.extents, whole.storage(), whole.offset() + part.places[ticket.number].begin);
    }

   private:
    friend class Zero;
    Parameters(Zero& zero, std::size_t number)
        : zero_(zero),
          unit_(zero.units_[number]),
          number_(number),
          trained_(zero.units_[number].trained.flat.whole()),
          frozen_(zero.units_[number].frozen.flat.whole()) {}

    const Zero& zero_;
    const Unit& unit_;
    std::size_t number_;
    const typename Flats::Whole& trained_;
    const typename Flats::Whole& frozen_;
  };

  /// Where a unit's gradients go.
  class Gradients {
   public:
    /// Adds a gradient that owes a sum over the stage's axes. What never comes counts as zero, and what comes again
    /// is added. Errors: other extents; a parameter of another unit.
    template <class T, AnyTensor G>
      requires(detail::is_accepted<detail::gradient_of<T, G, Line>>)
    void add(const Ticket<T>& ticket, const G& gradient) {
      zero_.check("Zero::Gradients::add", ticket, number_);
      if (gradient.extents() != ticket.extents) {
        zero_.refuse("Gradients::add", "a gradient with the extents of the parameter", "others",
                     "pass the ticket of this parameter");
      }
      Unit& unit = zero_.units_[number_];
      unit.sums.add(zero_.line_, unit.trained.places, ticket.number, gradient.local());
    }
    template <class T, AnyTensor G>
      requires(!detail::is_accepted<detail::gradient_of<T, G, Line>>)
    auto add(const Ticket<T>& ticket, const G& gradient) -> detail::gradient_of<T, G, Line>;
    template <class T, AnyTensor G>
    auto add(const FrozenTicket<T>& ticket, const G& gradient)
        -> refused<because::parameter_is_frozen, try_<leave_its_gradient_out>, typename T::layout>;

   private:
    friend class Zero;
    Gradients(Zero& zero, std::size_t number) : zero_(zero), number_(number) {}
    Zero& zero_;
    std::size_t number_;
  };

  explicit Zero(const Grid& mesh, const ZeroOptions& options = {})
      : mesh_(mesh), line_(detail::line_of<Line>(mesh)), options_(options) {}

  /// Begins the description of the next unit; its number, from 0. Errors: after the first use.
  std::size_t begin_unit() {
    if (sealed_) refuse("begin_unit", "all units before the first use", "another one after it", "describe them first");
    close_unit();
    order_.push_back(units_.size());
    units_.emplace_back();
    return units_.size() - 1;
  }
  /// Says in which order the forward uses the units, if it is not that of their numbers, each once: {0, 1, 2, 0} for an
  /// embedding that is the output projection too. The backward is the reverse. Errors: after the first use; a unit that
  /// does not exist.
  void set_order(std::vector<std::size_t> order) {
    if (sealed_) refuse("set_order", "the order before the first use", "one after it", "set it first");
    for (const std::size_t unit : order) check_unit("set_order", unit);
    order_ = std::move(order);
  }
  /// Adds a parameter to the unit that was begun last. T: replicated over the stage's axes, any placement on others.
  /// Cost: its storage is shared until the next unit begins, then this rank's part is copied. In communicating checks
  /// ranks compare what they hold.
  template <AnyTensor T>
    requires(detail::is_accepted<detail::summed_of<T, E, Line>>)
  Ticket<T> add(const T& parameter) { return place<Kind::trained>(parameter); }
  template <AnyTensor T>
    requires(!detail::is_accepted<detail::summed_of<T, E, Line>>)
  auto add(const T& parameter) -> detail::summed_of<T, E, Line>;

  /// Adds one that is not trained: it is held and gathered like the others, and has neither gradient nor state.
  template <AnyTensor T>
    requires(detail::is_accepted<detail::summed_of<T, E, Line>>)
  FrozenTicket<T> add_frozen(const T& parameter) { return place<Kind::frozen>(parameter); }
  template <AnyTensor T>
    requires(!detail::is_accepted<detail::summed_of<T, E, Line>>)
  auto add_frozen(const T& parameter) -> detail::summed_of<T, E, Line>;

  std::size_t units() const { return units_.size(); }

  /// Calls f(parameters) with the whole parameters of a unit, and returns what it returns. Collective over the axes.
  template <class F>
  decltype(auto) forward(std::size_t unit, const F& f) {
    use(unit, Direction::forward);
    for (std::size_t i = 1; i <= options_.prefetch && at_ + i < order_.size(); ++i) gather(order_[at_ + i]);
    return detail::call_then([&]() -> decltype(auto) { return f(Parameters(*this, unit)); },
                             [&, last = at_ + 1 == order_.size()] {
                               if (!last || !options_.keep_last) units_[unit].keep(line_);
                             });
  }

  /// Calls f(parameters, gradients), returns what it returns, and starts to reduce the gradients if the stage has them
  /// reduced in each micro-batch, or this is the last one: of a unit that the order has several times once, when the
  /// last of these uses has come. Collective over the axes. Errors: more often than the order has the unit.
  template <class F>
  decltype(auto) backward(std::size_t unit, const F& f) {
    use(unit, Direction::backward);
    if (quiet_ == 0 && units_[unit].missing == 0) {
      refuse("backward", "as many uses of unit " + std::to_string(unit) + " as the order of the units has", "one more",
             "call finish and update after each step, or tell set_order that it is used several times");
    }
    for (std::size_t i = 1; i <= options_.prefetch && i <= at_; ++i) gather(order_[at_ - i]);
    return detail::call_then(
        [&]() -> decltype(auto) {
          Gradients gradients(*this, unit);
          return f(Parameters(*this, unit), gradients);
        },
        [&] {
          units_[unit].release();
          reduce(unit);
        });
  }

  /// Until the result dies, backward is of a micro-batch that is not the last one. quiet: whether it is not.
  [[nodiscard]] NoSync no_sync(bool quiet = true) { return NoSync(quiet_, quiet); }

  /// Ends the last micro-batch: whatever was not used counts as zero. Waits for the gradients. Collective over the
  /// axes. Errors: within no_sync.
  void finish() {
    seal();
    if (quiet_ != 0) refuse("finish", "the end of the last micro-batch", "a no_sync that is alive", "let it die first");
    land();
    for (Unit& unit : units_) {
      if (unit.sums.is_settled()) continue;
      if (std::exchange(unit.waits, false)) {
        unit.sums.scatter(line_, unit.trained.places);
        unit.sums.land();
      }
      unit.sums.settle(line_, unit.trained.places);
    }
    for (Unit& unit : units_) (void)unit.sums.get();
    finished_ = true;
  }

  /// The gradients of a unit, between `finish` and `update`: the part whose optimizer state this rank has.
  const Own& gradient(std::size_t unit) {
    check_unit("gradient", unit);
    check_finished("gradient");
    return units_[unit].sums.get();
  }
  /// Adds all of them to a norm, every element of the model once, between `finish` and `update`.
  void add_gradients_to(GlobalNorm<Grid>& norm) {
    check_finished("add_gradients_to");
    for (Unit& unit : units_) {
      const Own& own = unit.sums.get();
      const Range held = own.template range<flat>();
      for (std::size_t i = 0; i < unit.counts_here.size(); ++i) {
        const Range part = detail::common_range(unit.trained.places[i], held);
        if (!unit.counts_here[i] || part.size == 0 || own.local().empty()) continue;
        norm.add_elements(own.local().subspan(part.begin - held.begin, part.size));
      }
    }
  }

  /// The parameters of a unit whose optimizer state this rank has: to make that state for. Not while it is updated.
  Own own(std::size_t unit) {
    check_unit("own", unit);
    seal();
    return units_[unit].trained.flat.own();
  }
  /// Where the parameters of a unit lie in it: ranges of the flat dim, in the order of `add`.
  const std::vector<Range>& ranges(std::size_t unit) const {
    check_unit("ranges", unit);
    return units_[unit].trained.places.all();
  }

  /// The optimizer's step: calls f(unit, parameters, gradients) for every unit with the parts whose state this rank
  /// has, as Own& and const Own&, and starts to bring the new parameters to the others. Collective over the axes.
  /// Errors: before `finish`.
  template <class F>
  void update(const F& f) {
    check_finished("update");
    for (std::size_t i = 0; i < units_.size(); ++i) {
      Unit& unit = units_[i];
      unit.trained.flat.update(line_, [&](Own& own) { f(i, own, unit.sums.get()); });
      unit.sums.reset();
    }
    begin_step();
  }

  /// Goes back to rest between micro-batches: waits for gradients that are on their way, and drops what is whole though
  /// the stage splits it, such as the last unit after an evaluation.
  void release() {
    land();
    for (Unit& unit : units_) unit.release();
  }

 private:
  enum class Direction { forward, backward };

  struct Part {
    detail::FlatPlaces places;
    Flats flat;
  };
  struct Unit {
    Part trained, frozen;
    Sums sums;
    std::vector<bool> counts_here;  // whether this rank counts a trained parameter in a norm
    std::size_t uses = 0;           // in the order
    std::size_t missing = 0;        // visits that have not come yet in the last micro-batch
    std::size_t to_come = 0;        // visits that have not come yet in this one
    bool waits = false;             // whether gradients wait for other visits before they are reduced

    void gather(const Line& mesh) {
      trained.flat.gather(mesh);
      frozen.flat.gather(mesh);
    }
    void keep(const Line& mesh) {
      trained.flat.keep(mesh);
      frozen.flat.keep(mesh);
    }
    void release() {
      trained.flat.release();
      frozen.flat.release();
    }
  };
  /// What add has been given for the unit that is open.
  struct Given {
    std::vector<Storage> storage;
    std::vector<std::span<const E>> trained, frozen;
  };

  template <Kind kind, class T>
  Place<T, kind> place(const T& parameter) {
    if (sealed_ || units_.empty()) {
      refuse("add", "a unit that was begun", sealed_ ? "a use of the units" : "none", "call begin_unit first");
    }
    detail::check_replicas_if_asked("Zero::add", parameter);
    Unit& unit = units_.back();
    given_.storage.push_back(parameter.storage());
    const auto elements = parameter.local();
    const std::size_t size = detail::elements_before(parameter, T::rank);
    if constexpr (kind == Kind::trained) {
      given_.trained.push_back(elements);
      unit.counts_here.push_back(counts_here<typename T::layout>());
      return {units_.size() - 1, unit.trained.places.add(size), parameter.extents()};
    } else {
      given_.frozen.push_back(elements);
      return {units_.size() - 1, unit.frozen.places.add(size), parameter.extents()};
    }
  }
  /// Replicas count at coordinate 0: along other axes those of the parameter, along the stage's those of its state.
  template <class L>
  bool counts_here() const {
    return [&]<class... As>(detail::list<As...>) {
      return (
          (detail::placement_traits<detail::placement_on<
               std::conditional_t<detail::contains<As, typename Line::axes>, typename Stage::state, L>, As>>::shard ||
           mesh_.template coordinate<As>() == 0) &&
          ...);
    }(typename Grid::axes{});
  }
  void close_unit() {
    if (units_.empty()) return;
    Unit& unit = units_.back();
    unit.trained.flat.fill(line_, unit.trained.places, given_.trained);
    unit.frozen.flat.fill(line_, unit.frozen.places, given_.frozen);
    given_ = {};
  }
  void seal() {
    if (sealed_) return;
    close_unit();
    sealed_ = true;
    begin_step();
  }
  void begin_step() {
    for (Unit& unit : units_) unit.uses = 0;
    for (const std::size_t unit : order_) ++units_[unit].uses;
    for (Unit& unit : units_) unit.missing = unit.to_come = unit.uses;
    finished_ = false;
  }

  void gather(std::size_t unit) { units_[unit].gather(line_); }
  void use(std::size_t unit, Direction direction) {
    check_unit(direction == Direction::forward ? "forward" : "backward", unit);
    seal();
    step_to(unit, direction);
    gather(unit);
    for (Unit& other : units_) other.sums.test();
  }
  /// Where in the order this use of a unit is.
  void step_to(std::size_t unit, Direction direction) {
    const bool turned = std::exchange(direction_, direction) != direction;
    if (turned && direction == Direction::backward) {
      for (Unit& other : units_) other.to_come = other.uses;
    }
    if (direction == Direction::forward) {
      if (!turned && at_ + 1 < order_.size() && order_[at_ + 1] == unit) {
        ++at_;
      } else {
        for (at_ = 0; at_ + 1 < order_.size() && order_[at_] != unit;) ++at_;
      }
    } else if (!turned && at_ != 0 && order_[at_ - 1] == unit) {
      --at_;
    } else {
      for (at_ = order_.size() - 1; at_ != 0 && order_[at_] != unit;) --at_;
    }
  }
  void reduce(std::size_t number) {
    Unit& unit = units_[number];
    const bool settles = quiet_ == 0 && --unit.missing == 0;
    if constexpr (Sums::stay_owed) {
      if (settles) unit.sums.settle(line_, unit.trained.places);
    } else {
      unit.waits = unit.to_come > 1;
      if (unit.waits) return void(--unit.to_come);
      unit.to_come = unit.uses;
      land();  // so that at most one is on its way
      unit.sums.scatter(line_, unit.trained.places);
      flying_ = number;
      settles_ = settles;
    }
  }
  void land() {
    if (flying_ == none) return;
    Unit& unit = units_[std::exchange(flying_, none)];
    unit.sums.land();
    if (settles_) unit.sums.settle(line_, unit.trained.places);
  }

  template <class T, Kind kind>
  void check(const char* verb, const Place<T, kind>& ticket, std::size_t unit) const {
    if (ticket.unit == unit) return;
    fail(verb, "a parameter of unit " + std::to_string(unit), "one of unit " + std::to_string(ticket.unit),
         "use it in forward and backward of its own unit; set_order says when a unit is used several times",
         mesh_.world().rank());
  }
  void check_unit(const char* verb, std::size_t unit) const {
    if (unit < units_.size()) return;
    refuse(verb, "a unit below " + std::to_string(units_.size()), std::to_string(unit), "begin_unit says its number");
  }
  void check_finished(const char* verb) const {
    if (!finished_) refuse(verb, "gradients that have been summed", "a step that is not finished", "call finish first");
  }
  [[noreturn]] void refuse(const char* verb, std::string expected, std::string found, const char* remedy) const {
    fail(std::string("Zero::") + verb, std::move(expected), std::move(found), remedy, mesh_.world().rank());
  }

  static constexpr std::size_t none = ~std::size_t{0};

  Grid mesh_;
  Line line_;
  ZeroOptions options_;
  std::vector<Unit> units_;
  std::vector<std::size_t> order_;
  std::size_t at_ = 0;  // in the order
  Direction direction_ = Direction::backward;
  Given given_;
  std::size_t flying_ = none;
  bool settles_ = false;
  int quiet_ = 0;
  bool sealed_ = false, finished_ = false;
};

}  // namespace meshwise
