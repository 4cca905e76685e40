// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "meshwise/collective/call.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/fabric/endpoint.hpp"
#include "meshwise/fabric/move.hpp"
#include "meshwise/fabric/plans.hpp"
#include "meshwise/schedule/contract.hpp"
#include "meshwise/schedule/select.hpp"

namespace test {

using namespace meshwise;

/// One rank of a group whose other ranks are always there: their buffers are memory of this endpoint, and waits return
/// at once. The same selection, plans and moves as on a fabric of memory, in one thread, so that instructions can be
/// counted; what the others would do is not done.
///
/// Their buffers are as long as whole vectors and hold small numbers that depend on the rank.
class Instant final : public Endpoint {
 public:
  Instant(int rank, int size) : Endpoint(rank, size), selector_(Topology::flat(size)), peers_(number(size)) {}

  Capabilities capabilities() const override { return {true, false, false}; }

  bool run(const Call& call) override {
    if (call.count == 0) return false;
    if (call.element == ElementKind::u8 && call.shape.operation == Operation::all_gather) {
      agree(call);
      return false;
    }
    Question question;
    question.shape = call.shape;
    question.bytes = call.count * call.element_size;
    question.memory = true;
    question.commutative = call.commutative;
    question.reproducible = call.reproducible;
    question.wanted = call.algorithm;
    question.lanes = call.lanes;
    const Choice choice = selector_.choose(question);
    const MemoryPlan& found = *plans_.find(call.shape, choice.algorithm, call.generator, choice.lanes, rank(),
                                           [&] { return selector_.catalogue().find(choice.algorithm); });
    const detail::MoveOptions options{0, found.plan.lanes, call.finishing != nullptr && found.finishes};
    if (found.plan.scratch_slots > 0) refuse("run", "a schedule with scratch");
    if (question.bytes > capacity_) grow(question.bytes);
    for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
      std::byte* const own = memory_.data() + 2 * peer * capacity_;
      peers_[peer] = {own, call.shape.in_place ? own : own + capacity_, nullptr, nullptr};
    }
    peers_[number(rank())] = {static_cast<const std::byte*>(call.input), static_cast<std::byte*>(call.output), nullptr,
                              nullptr};
    mover_.begin(call, options);
    for (const Step& step : found.plan.steps) {
      mover_.perform(
          step.move, step.lane, [this](int peer) -> const detail::Addresses& { return peers_[number(peer)]; }, false);
    }
    traffic().messages += found.messages;
    traffic().moved += mover_.moved();
    return options.finishing;
  }

  /// A group of the same ranks: nobody else is there to be asked.
  Owned<Endpoint> split(int, int) override { return std::make_unique<Instant>(rank(), size()); }

  Owned<Running> start(const Call&) override { refuse("start", "an operation that is started"); }
  Owned<Sending> post_send(const char* verb, int, std::uint64_t, const void*, std::size_t, double) override {
    refuse(verb, "a message");
  }
  void receive(const char* verb, int, std::uint64_t, void*, std::size_t, double) override { refuse(verb, "a message"); }
  bool try_receive(const char* verb, int, std::uint64_t, void*, std::size_t) override { refuse(verb, "a message"); }
  void abort(const char*) noexcept override {}

 private:
  using MemoryPlan = detail::MemoryPlan;

  /// What ranks compare with each other is bytes: the others have what this one has.
  void agree(const Call& call) const {
    const std::size_t own = call.count / peers_.size();
    for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
      std::memcpy(static_cast<std::byte*>(call.output) + peer * own, call.input, own);
    }
  }

  static std::size_t number(int i) { return static_cast<std::size_t>(i); }

  [[noreturn]] void refuse(const char* verb, const char* found) const {
    fail(verb, "a blocking collective of one round", found, "this fabric counts instructions of those only", rank());
  }

  void grow(std::size_t bytes) {
    capacity_ = bytes;
    memory_.resize(2 * peers_.size() * bytes);
    for (std::size_t i = 0; i < memory_.size() / sizeof(float); ++i) {
      const float value = static_cast<float>(i * sizeof(float) / (2 * bytes) + 1) + static_cast<float>(i % 5);
      std::memcpy(memory_.data() + i * sizeof(float), &value, sizeof value);
    }
  }

  Selector selector_;
  detail::PlanCache<MemoryPlan> plans_;
  detail::Mover mover_;
  std::vector<detail::Addresses> peers_;
  std::vector<std::byte> memory_;  ///< input and output of every rank, one after the other
  std::size_t capacity_ = 0;       ///< bytes of one of them
};

}  // namespace test
