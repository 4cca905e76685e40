// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <span>

#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_to_all.hpp"
#include "meshwise/collective/all_to_all_v.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/gather.hpp"
#include "meshwise/collective/scatter.hpp"
#include "meshwise/collective/send_receive.hpp"
#include "work.hpp"

namespace harness {
namespace {

/// What is only copied is copied by its size; the library takes any type.
template <class T>
struct Copying {
  static std::span<T> whole_in(const Work& work) { return {reinterpret_cast<T*>(work.in), work.extent.whole}; }
  static std::span<T> whole_out(const Work& work) { return {reinterpret_cast<T*>(work.out), work.extent.whole}; }
  static std::span<T> block_in(const Work& work) {
    return {reinterpret_cast<T*>(work.in) + work.own_begin(), work.extent.count};
  }
  static std::span<T> block_out(const Work& work) {
    return {reinterpret_cast<T*>(work.out) + work.own_begin(), work.extent.count};
  }

  static void all_gather(meshwise::Communicator& world, const Work& work) {
    meshwise::all_gather(world, block_in(work), whole_out(work), work.options);
  }
  static void all_gather_within(meshwise::Communicator& world, const Work& work) {
    meshwise::all_gather(world, whole_out(work), work.options);
  }
  static void broadcast(meshwise::Communicator& world, const Work& work) {
    meshwise::broadcast(world, whole_out(work), work.root, work.options);
  }
  static void gather(meshwise::Communicator& world, const Work& work) {
    meshwise::gather(world, block_in(work), whole_out(work), work.root, work.options);
  }
  static void scatter(meshwise::Communicator& world, const Work& work) {
    meshwise::scatter(world, whole_in(work), block_out(work), work.root, work.options);
  }
  static void all_to_all(meshwise::Communicator& world, const Work& work) {
    meshwise::all_to_all(world, whole_in(work), whole_out(work), work.options);
  }
  static void all_to_all_v(meshwise::Communicator& world, const Work& work) {
    std::size_t sent = 0, received = 0;
    for (const std::size_t count : work.sent) sent += count;
    for (const std::size_t count : work.received) received += count;
    meshwise::all_to_all_v(world, whole_in(work).first(sent), whole_out(work).first(received), work.sent, work.received,
                           work.options);
  }
  static void send_recv(meshwise::Communicator& world, const Work& work) {
    const int next = work.rank + 1 < work.ranks ? work.rank + 1 : 0;
    const int previous = work.rank > 0 ? work.rank - 1 : work.ranks - 1;
    meshwise::exchange(world, whole_in(work), next, whole_out(work), previous);
  }
  static void barrier(meshwise::Communicator& world, const Work&) { meshwise::barrier(world); }

  static Perform find(Verb verb, bool in_place) {
    switch (verb) {
      case Verb::all_gather: return in_place ? all_gather_within : all_gather;
      case Verb::broadcast: return broadcast;
      case Verb::gather: return gather;
      case Verb::scatter: return scatter;
      case Verb::all_to_all: return all_to_all;
      case Verb::all_to_all_v: return all_to_all_v;
      case Verb::send_recv: return send_recv;
      default: return barrier;
    }
  }
};

}  // namespace

Perform copying(Verb verb, std::size_t element_bytes, bool in_place) {
  switch (element_bytes) {
    case 1: return Copying<std::uint8_t>::find(verb, in_place);
    case 2: return Copying<std::uint16_t>::find(verb, in_place);
    case 4: return Copying<std::uint32_t>::find(verb, in_place);
    default: return Copying<std::uint64_t>::find(verb, in_place);
  }
}

Perform perform_of(const Work& work) {
  if (!combines(work.verb)) return copying(work.verb, work.element_bytes(), work.in_place);
  return with_element(work.element,
                      [&]<class T>(T) -> Perform { return combining<T>(work.verb, work.redop, work.in_place); });
}

}  // namespace harness
