// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "elements.hpp"
#include "meshwise/collective/call.hpp"
#include "meshwise/collective/communicator.hpp"
#include "operations.hpp"

namespace harness {

/// One operation on buffers, as one rank calls it.
struct Work {
  Verb verb = Verb::all_reduce;
  meshwise::ElementKind element = meshwise::ElementKind::f32;
  Redop redop = Redop::sum;
  int root = 0;
  int rank = 0;
  int ranks = 1;
  bool in_place = false;
  bool ragged = false;  ///< all_to_all_v: blocks of different sizes
  Extent extent;
  std::byte* in = nullptr;   ///< in place: the same as `out`
  std::byte* out = nullptr;  ///< both hold the whole; where a block is meant it is this rank's in place, else the first
  std::vector<std::size_t> sent, received;  ///< of all_to_all_v: elements to and from each rank
  meshwise::CollectiveOptions options;

  std::size_t element_bytes() const { return meshwise::element_size(element); }
  std::size_t bytes() const { return extent.whole * element_bytes(); }

  /// Where this rank's part begins in a buffer, in elements: its block, which in place lies among the others.
  std::size_t own_begin() const { return in_place ? static_cast<std::size_t>(rank) * extent.count : 0; }
};

/// Performs a work once. Which function does it depends on verb, element, redop and in_place: asked for once, so that
/// the call costs one jump.
using Perform = void (*)(meshwise::Communicator&, const Work&);
Perform perform_of(const Work& work);

/// The parts of it, one file for each element so that they compile side by side.
template <class T>
Perform combining(Verb verb, Redop redop, bool in_place);
/// By the bytes of an element: 1, 2, 4 or 8.
Perform copying(Verb verb, std::size_t element_bytes, bool in_place);

}  // namespace harness
