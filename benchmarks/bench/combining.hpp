// SPDX-License-Identifier: Apache-2.0
// What the files combining_*.cpp are made of.
#pragma once

#include <cstddef>
#include <span>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/reduce.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/core/reduction.hpp"
#include "work.hpp"

namespace harness {

template <class T>
std::span<T> span_at(std::byte* data, std::size_t begin, std::size_t count) {
  return {reinterpret_cast<T*>(data) + begin, count};
}

template <class T, class Op>
struct Combining {
  static std::span<const T> whole_in(const Work& work) { return span_at<T>(work.in, 0, work.extent.whole); }
  static std::span<T> whole_out(const Work& work) { return span_at<T>(work.out, 0, work.extent.whole); }

  static void all_reduce(meshwise::Communicator& world, const Work& work) {
    meshwise::all_reduce<Op>(world, whole_in(work), whole_out(work), work.options);
  }
  static void all_reduce_within(meshwise::Communicator& world, const Work& work) {
    meshwise::all_reduce<Op>(world, whole_out(work), work.options);
  }
  static void reduce_scatter(meshwise::Communicator& world, const Work& work) {
    meshwise::reduce_scatter<Op>(world, whole_in(work), span_at<T>(work.out, 0, work.extent.count), work.options);
  }
  static void reduce_scatter_within(meshwise::Communicator& world, const Work& work) {
    meshwise::reduce_scatter<Op>(world, whole_out(work), work.options);
  }
  static void reduce(meshwise::Communicator& world, const Work& work) {
    meshwise::reduce<Op>(world, whole_in(work), whole_out(work), work.root, work.options);
  }
  static void reduce_within(meshwise::Communicator& world, const Work& work) {
    meshwise::reduce<Op>(world, whole_out(work), work.root, work.options);
  }

  static Perform find(Verb verb, bool in_place) {
    switch (verb) {
      case Verb::all_reduce: return in_place ? all_reduce_within : all_reduce;
      case Verb::reduce_scatter: return in_place ? reduce_scatter_within : reduce_scatter;
      default: return in_place ? reduce_within : reduce;
    }
  }
};

template <class T>
Perform combining(Verb verb, Redop redop, bool in_place) {
  switch (redop) {
    case Redop::prod: return Combining<T, meshwise::Product>::find(verb, in_place);
    case Redop::min: return Combining<T, meshwise::Min>::find(verb, in_place);
    case Redop::max: return Combining<T, meshwise::Max>::find(verb, in_place);
    default: return Combining<T, meshwise::Sum>::find(verb, in_place);
  }
}

}  // namespace harness
