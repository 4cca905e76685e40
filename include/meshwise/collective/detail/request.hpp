// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "meshwise/collective/call.hpp"
#include "meshwise/collective/detail/choices.hpp"
#include "meshwise/collective/detail/regions.hpp"
#include "meshwise/collective/detail/wire.hpp"
#include "meshwise/collective/detail/workspace.hpp"
#include "meshwise/collective/volume.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/fabric/endpoint.hpp"
#include "meshwise/fabric/hold.hpp"
#include "meshwise/schedule/settings.hpp"

namespace meshwise::detail {

using ConvertKinds = void (*)(ElementKind from_kind, const void* from, ElementKind to_kind, void* to,
                              std::size_t count);

/// One collective of one rank, described once and performed any number of times: the Call, what its context points to,
/// and the work on the own buffers before and after it.
///
/// Stays where it is made, because the Call points into it. An operation's rule (detail/*_rule or the operation's
/// header) fills it in: `describe`, what else it needs, then `bind`. Whoever performs it calls `before`, runs or starts
/// `call`, then `after`.
class Request {
 public:
  /// What the operation's rule knows of the own buffers, in elements; null and 0 for what the rank does not have.
  struct Own {
    const void* input = nullptr;
    std::size_t input_count = 0;
    void* output = nullptr;
    std::size_t output_count = 0;
  };

  Request(Endpoint& end, Workspace& room, const char* verb) : endpoint_(end), workspace_(room) {
    call.verb = verb;
    call.shape.ranks = end.size();
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  Call call;
  Own own;

  Endpoint& endpoint() const { return endpoint_; }
  Workspace& workspace() const { return workspace_; }
  int rank() const { return endpoint_.rank(); }
  int size() const { return endpoint_.size(); }
  const char* verb() const { return call.verb; }

  /// The call without its regions. whole: elements of the whole vector, which the regions of equal parts are made of.
  template <class T, class... Choices>
  void describe(Operation operation, std::size_t whole, const CollectiveOptions& options) {
    whole_ = whole;
    call.shape.operation = operation;
    call.count = whole;
    call.regions = Regions{&span_region, &whole_, 0, true};
    if constexpr (Element<T>) call.element = element_kind<T>;
    call.element_size = sizeof(T);
    call.algorithm = options.algorithm;
    call.lanes = options.lanes;
    call.reproducible = options.reproducible;
    call.deadline = options.deadline;
    using G = generator_in<Choices...>;
    constexpr bool named = !std::is_same_v<G, NoChoice>;
    const bool passed = !options.generator.empty();
    if ((named && passed) ||
        ((named || passed) && options.algorithm != Algorithm::automatic && options.algorithm != Algorithm::custom)) {
      fail(verb(), "one algorithm", "two: a generator by its type or in options.generator, and another in the options",
           "name it in one place", rank());
    }
    if (named || passed) {
      if constexpr (named) {
        call.generator = AnyGenerator::of<G>();
      } else {
        call.generator = options.generator;
      }
      call.algorithm = Algorithm::custom;
      agree(name_signature(call.generator.name));
      if (call.generator.parametrised()) agree(name_signature(call.generator.description().c_str()));
    } else if (options.algorithm == Algorithm::custom) {
      fail(verb(), "a generator for the algorithm custom", "none",
           "name its type, as in all_reduce<Ring>, or set options.generator", rank());
    }
    if (options.lanes > most_lanes) {
      fail(verb(), "at most " + std::to_string(most_lanes) + " lanes", std::to_string(options.lanes),
           "0 leaves the choice to the library", rank());
    }
    if (options.lanes < 0) {
      fail(verb(), "a number of lanes >= 0", std::to_string(options.lanes), "0 leaves the choice to the library",
           rank());
    }
    if (options.wire.set) set_wire<T>(options.wire.kind);
    if (options.factor != 1 && !std::is_same_v<combination_in<Choices...>, PreMultipliedSum>) {
      fail(verb(), "a factor for a PreMultipliedSum only", std::to_string(options.factor),
           "write all_reduce<PreMultipliedSum>(...), or leave options.factor at 1", rank());
    }
  }

  /// How contributions are combined. After `describe`, for operations that combine.
  template <class T, class... Choices>
  void combine(double factor) {
    using C = combination_in<Choices...>;
    using Op = reduction_of<C>;
    call.reduction = combination_kind<C>;
    call.commutative = Op::commutative;
    if constexpr (Op::kind == ReductionKind::user) agree(reduction_signature<Op>);
    if constexpr (std::is_same_v<C, PreMultipliedSum>) {
      factor_ = factor;
      scale_ = scale_kernel<T>();
    }
    if constexpr (FloatElement<T>) {
      if (wired_) {
        const WireKernels kernels = wire_kernels<C>(call.element);
        call.kernel = kernels.kernel;
        call.finishing = kernels.finishing;
        divide_ = kernels.divide;
        return;
      }
    }
    call.kernel = meshwise::reduce_kernel<T, Op>();
    if constexpr (std::is_same_v<C, Average>) {
      call.finishing = meshwise::reduce_kernel<T, Average>();
      divide_ = average_kernel<T>();
    }
    if constexpr (is_logical<Op>) {
      truth_ = [](std::size_t count, void* data) {
        T* const items = static_cast<T*>(data);
        for (std::size_t i = 0; i < count; ++i) items[i] = static_cast<T>(items[i] != 0);
      };
    }
  }

  /// What the own output becomes instead of a result: neutral values. For rank 0 of an exclusive scan.
  template <class T, class Op>
  void fill_with_identity() {
    fill_ = [](std::size_t count, void* data) {
      T* const items = static_cast<T*>(data);
      for (std::size_t i = 0; i < count; ++i) items[i] = static_cast<T>(Op::template identity<T>());
    };
  }

  /// Whatever else must be the same on all ranks.
  void agree(std::uint64_t value) { call.signature = join_signature(call.signature, value); }

  /// The own input is copied before it is sent, because it lies where the output goes without that being agreed.
  void copy_input() { copied_ = true; }

  /// Fixes the addresses. The last step of a description.
  void bind() {
    call.input = own.input;
    call.output = own.output;
    const bool staged = wired_ || scale_ != nullptr || copied_;
    works_ = staged || divide_ != nullptr || truth_ != nullptr || fill_ != nullptr;
    if (!staged) return;
    if (wired_) return bind_wire();
    // Rooted operations run on plans for in place on all ranks, whether or not the root is.
    if (!rooted(call.shape.operation)) call.shape.in_place = false;
    call.input = workspace_.input.take(own.input_count * call.element_size, endpoint_.memory());
  }

  /// The own work before the collective.
  void before() {
    if (works_) stage();
  }

  /// The own work after it, and the counting. finished: what the endpoint said.
  void after(bool finished) {
    if (works_) finish(finished);
    const Hold hold(endpoint_.latch());
    Traffic& traffic = endpoint_.traffic();
    ++traffic.calls;
    if (volume_ == unknown) volume_ = volume(call, rank());
    traffic.volume += volume_;
  }

  /// How many ranks contribute to the own output, if not all.
  void set_contributors(int ranks) { contributors_ = ranks; }

  /// Performs it.
  void run() {
    before();
    after(endpoint_.run(call));
  }

 private:
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};

  /// Out of the way of calls that need nothing of this.
  [[gnu::noinline]] void stage() {
    const std::size_t count = own.input_count;
    if (count == 0) return;
    void* const staged = const_cast<void*>(call.input);
    if (wired_) {
      const ElementKind wire = call.element;
      if (scale_ == nullptr) return convert_(element_, own.input, wire, staged, count);
      const std::size_t size = element_size(element_);
      alignas(8) std::byte run[1024 * sizeof(double)];
      for (std::size_t first = 0; first < count; first += 1024) {
        const std::size_t n = count - first < 1024 ? count - first : 1024;
        scale_(n, static_cast<const std::byte*>(own.input) + first * size, run, factor_);
        convert_(element_, run, wire, static_cast<std::byte*>(staged) + first * call.element_size, n);
      }
    } else if (scale_ != nullptr) {
      scale_(count, own.input, staged, factor_);
    } else if (copied_) {
      std::memcpy(staged, own.input, count * call.element_size);
    }
  }

  [[gnu::noinline]] void finish(bool finished) {
    const std::size_t count = own.output_count;
    if (fill_ != nullptr) {
      fill_(count, own.output);
    } else if (count > 0) {
      if (divide_ != nullptr && !finished && size() > 1) divide_(count, call.output, call.output, size());
      if (truth_ != nullptr && contributors_ == 1) truth_(count, call.output);
      if (wired_) convert_(call.element, call.output, element_, own.output, count);
    }
  }

  template <class T>
  void set_wire(ElementKind kind) {
    if constexpr (FloatElement<T>) {
      if (is_float_kind(kind)) {
        if (kind == element_kind<T>) return;
        agree(static_cast<std::uint64_t>(element_kind<T>) + 1);
        wired_ = true;
        element_ = element_kind<T>;
        call.element = kind;
        call.element_size = meshwise::element_size(kind);
        convert_ = &meshwise::convert_elements<ElementKind>;
        return;
      }
    }
    const std::string data = Element<T> ? element_name(call.element) : "plain bytes";
    fail(verb(), "floating-point data and a floating-point wire element", data + " and " + element_name(kind),
         "leave options.wire alone, or convert the data first", rank());
  }

  /// Staged buffers alias exactly as the caller's do, since the ranks have agreed on that.
  void bind_wire() {
    const std::size_t from = meshwise::element_size(element_);
    const std::size_t to = call.element_size;
    const auto input = reinterpret_cast<std::uintptr_t>(own.input);
    const auto output = reinterpret_cast<std::uintptr_t>(own.output);
    const std::size_t input_bytes = own.input_count * from;
    const std::size_t output_bytes = own.output_count * from;
    if (call.shape.in_place && own.input != nullptr && own.output != nullptr) {
      if (input <= output && output + output_bytes <= input + input_bytes) {
        std::byte* const staged = workspace_.input.take(own.input_count * to, endpoint_.memory());
        call.input = staged;
        call.output = staged + (output - input) / from * to;
        return;
      }
      if (output <= input && input + input_bytes <= output + output_bytes) {
        std::byte* const staged = workspace_.output.take(own.output_count * to, endpoint_.memory());
        call.output = staged;
        call.input = staged + (input - output) / from * to;
        return;
      }
    }
    call.input = own.input_count == 0 ? nullptr : workspace_.input.take(own.input_count * to, endpoint_.memory());
    call.output = own.output_count == 0 ? nullptr : workspace_.output.take(own.output_count * to, endpoint_.memory());
  }

  Endpoint& endpoint_;
  Workspace& workspace_;
  std::size_t whole_ = 0;
  std::uint64_t volume_ = unknown;
  bool works_ = false;  ///< there is own work before or after
  int contributors_ = size();
  bool copied_ = false;
  bool wired_ = false;
  ElementKind element_ = ElementKind::f32;  ///< the caller's, if wired
  double factor_ = 1;
  ConvertKinds convert_ = nullptr;
  Scale scale_ = nullptr;
  Divide divide_ = nullptr;
  void (*truth_)(std::size_t count, void* data) = nullptr;
  void (*fill_)(std::size_t count, void* data) = nullptr;
};

}  // namespace meshwise::detail
