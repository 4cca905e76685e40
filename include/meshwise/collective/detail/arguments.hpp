// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "meshwise/collective/call.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/split.hpp"

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

/// The part of `count` elements that belongs to a rank.
constexpr Range rank_part(std::size_t count, int ranks, int rank) {
  return split(count, static_cast<std::size_t>(ranks), static_cast<std::size_t>(rank));
}

/// The regions of the span interface. context: the number of elements of the whole vector, a std::size_t; for
/// all_to_all of one rank's buffer.
inline Region span_region(const void* context, const Shape& shape, Buffer buffer, int rank, int slot) {
  const std::size_t count = *static_cast<const std::size_t*>(context);
  const bool alone = (shape.operation == Operation::reduce_scatter && buffer == Buffer::output) ||
                     (shape.operation == Operation::all_gather && buffer == Buffer::input);
  const Range part = rank_part(count, shape.ranks, alone ? rank : slot);
  return Region{alone ? 0 : part.begin, part.size, part.size, 1};
}

/// A call on spans of T. count must live as long as the call.
template <class T>
Call span_call(const char* verb, Operation operation, const T* input, T* output, const std::size_t& count,
               const CollectiveOptions& options) {
  Call call;
  call.verb = verb;
  call.shape.operation = operation;
  if constexpr (Element<T>) call.element = element_kind<T>;
  call.element_size = sizeof(T);
  call.count = count;
  call.algorithm = options.algorithm;
  call.deadline = options.deadline;
  call.input = input;
  call.output = output;
  call.regions = Regions{&span_region, &count};
  return call;
}

inline void require_data(const char* verb, const char* which, const void* data, std::size_t count, int rank) {
  if (data == nullptr && count > 0) {
    fail(verb, std::string("memory for the ") + which, "a null pointer for " + std::to_string(count) + " elements",
         "pass a valid span", rank);
  }
}

inline void require_count(const char* verb, const std::string& what, std::size_t expected, std::size_t found,
                          int rank) {
  if (expected != found) {
    fail(verb, what + ": " + std::to_string(expected) + " elements", std::to_string(found), "pass spans of these sizes",
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
