// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>

#include "meshwise/core/detail/isa.hpp"
#include "meshwise/core/detail/recode.hpp"
#include "meshwise/core/element.hpp"
#include "meshwise/core/error.hpp"

namespace meshwise {

namespace detail {

/// How one float type converts: to and from float, to doubles' odd neighbours where another rounding follows.
struct Recodes {
  std::size_t size = 0;  ///< of an element, in bytes; 0: not a float type
  Recode to_float = nullptr;
  Recode to_odd_float = nullptr;
  Recode from_float = nullptr;
};

template <class T>
Recodes recodes_of(Isa isa) {
  if constexpr (std::is_same_v<T, float>) {
    return {sizeof(T), nullptr, nullptr, nullptr};
  } else if constexpr (std::is_same_v<T, double>) {
    return {sizeof(T), to_float<T>(isa), doubles_to_odd, from_float<T>(isa)};
  } else {
    return {sizeof(T), to_float<T>(isa), to_float<T>(isa), from_float<T>(isa)};
  }
}

/// A template, so that a program that never converts does not compile the kernels.
template <class Kind>
Recodes recodes_of_kind(Kind kind, Isa isa) {
  switch (kind) {
    case Kind::f32: return recodes_of<float>(isa);
    case Kind::f64: return recodes_of<double>(isa);
    case Kind::bf16: return recodes_of<bf16>(isa);
    case Kind::f16: return recodes_of<fp16>(isa);
    case Kind::f8e4m3: return recodes_of<f8e4m3>(isa);
    case Kind::f8e5m2: return recodes_of<f8e5m2>(isa);
    default: return {};
  }
}

/// Not for equal types.
inline void convert_elements(std::size_t count, const Recodes& first, const void* from, const Recodes& second,
                             void* to) {
  const char* const source = static_cast<const char*>(from);
  char* const target = static_cast<char*>(to);
  if (second.from_float == nullptr) return first.to_float(count, source, target);
  if (first.to_float == nullptr) return second.from_float(count, source, target);
  recode_through_floats(count, source, first.size, first.to_odd_float, target, second.size, second.from_float);
}

}  // namespace detail

/// Converts an array from one float type to another, rounding each element once, as the types' constructors do.
///
/// count: elements. from: of type From; to: of type To; any alignment, null if count is 0. `to` may be `from` if To is
/// not the larger type; partial overlap is undefined. Equal types are copied bit for bit.
/// Cost: one pass, no allocation; bf16, fp16, f8e4m3 and f8e5m2 to and from float at the speed of memory. The bits do
/// not depend on the processor (which NaN a NaN becomes is unspecified).
template <FloatElement From, FloatElement To>
void convert_elements(std::size_t count, const void* from, void* to) {
  if constexpr (std::is_same_v<From, To>) {
    detail::recode_copy(count * sizeof(From), from, to);
  } else {
    const detail::Isa isa = detail::best_isa();
    detail::convert_elements(count, detail::recodes_of<From>(isa), from, detail::recodes_of<To>(isa), to);
  }
}

/// The same for types that are known at run time.
///
/// Errors: `invalid_argument` if a kind is not one of f32, f64, bf16, f16, f8e4m3 and f8e5m2.
template <class Kind>
  requires std::is_same_v<Kind, ElementKind>
void convert_elements(Kind from_kind, const void* from, Kind to_kind, void* to, std::size_t count) {
  const detail::Isa isa = detail::best_isa();
  const detail::Recodes first = detail::recodes_of_kind(from_kind, isa);
  const detail::Recodes second = detail::recodes_of_kind(to_kind, isa);
  if (first.size == 0 || second.size == 0) {
    fail("convert_elements", "float types", element_name(first.size == 0 ? from_kind : to_kind),
         "convert among f32, f64, bf16, f16, f8e4m3 and f8e5m2");
  }
  if (from_kind == to_kind) return detail::recode_copy(count * first.size, from, to);
  detail::convert_elements(count, first, from, second, to);
}

}  // namespace meshwise
