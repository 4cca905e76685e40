// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "meshwise/core/error.hpp"

namespace meshwise::detail {

/// The element type of something that converts to a span: std::vector, std::array, std::span, an array.
template <class R>
using item_t = typename decltype(std::span(std::declval<R&>()))::element_type;

template <class R>
concept Readable = requires(R& r) {
  std::span(r);
}
&&std::is_trivially_copyable_v<item_t<R>>;

template <class R>
concept Writable = Readable<R> && !std::is_const_v<item_t<R>>;

template <class In, class Out>
concept Matching = std::is_same_v<std::remove_const_t<item_t<In>>, item_t<Out>>;

template <class R>
std::span<const std::remove_const_t<item_t<R>>> reading(const R& range) {
  return std::span(range);
}

template <class R>
std::span<item_t<R>> writing(R& range) {
  return std::span(range);
}

inline void require_data(const char* verb, const char* which, const void* data, std::size_t count, int rank) {
  if (data == nullptr && count > 0) {
    fail(verb, std::string("memory for the ") + which, "a null pointer for " + std::to_string(count) + " elements",
         "pass a valid span", rank);
  }
}

inline void refuse_count(const char* verb, const char* what, std::size_t expected, std::size_t found, int rank) {
  fail(verb, std::string(what) + ": " + std::to_string(expected) + " elements", std::to_string(found),
       "pass spans of these sizes", rank);
}

inline void require_count(const char* verb, const char* what, std::size_t expected, std::size_t found, int rank) {
  if (expected != found) refuse_count(verb, what, expected, found, rank);
}

inline void require_root(const char* verb, int root, int size, int rank) {
  if (root < 0 || root >= size) {
    fail(verb, "a root from 0 to " + std::to_string(size - 1), std::to_string(root), "pass a rank of this communicator",
         rank);
  }
}

/// Refuses memory that is both read and written. Exact in-place use has been told apart before.
template <class T>
void require_apart(const char* verb, std::span<const T> in, std::span<T> out, const char* remedy, int rank) {
  if (in.empty() || out.empty()) return;
  const auto first = reinterpret_cast<std::uintptr_t>(in.data());
  const auto second = reinterpret_cast<std::uintptr_t>(out.data());
  if (first < second + out.size_bytes() && second < first + in.size_bytes()) {
    fail(verb, "input and output apart, or exactly in place",
         "an overlap with the output " +
             std::to_string(static_cast<std::int64_t>(second) - static_cast<std::int64_t>(first)) +
             " bytes after the input",
         remedy, rank);
  }
}

}  // namespace meshwise::detail
