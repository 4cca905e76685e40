// SPDX-License-Identifier: Apache-2.0
// Ranks that die in the middle of something: between any two of the calls that the typed layer makes of its fabric.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "launch.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/fabric/endpoint.hpp"
#include "meshwise/mesh/mesh.hpp"

namespace test {

using namespace meshwise;

/// What ends a rank without an error: its program catches it and returns.
struct Leaves {};

/// When a rank dies, and how.
struct Fate {
  int calls_left = -1;  ///< negative: it lives
  bool leaves = false;  ///< else it throws
  bool met = false;

  void call() {
    if (calls_left < 0 || calls_left-- > 0) return;
    met = true;
    if (leaves) throw Leaves{};
    throw std::runtime_error("out of luck");
  }
};

/// An endpoint, and those that are split off it, whose rank has a fate.
class Mortal final : public Endpoint {
 public:
  /// owned: null where somebody else owns the inner one.
  Mortal(Endpoint& inner, std::shared_ptr<Fate> fate, Owned<Endpoint> owned = nullptr)
      : Endpoint(inner.rank(), inner.size()), owned_(std::move(owned)), inner_(&inner), fate_(std::move(fate)) {
    set_deadline(inner.deadline());
    set_axis(inner.axis());
  }

  Capabilities capabilities() const override { return inner_->capabilities(); }
  bool run(const Call& call) override { return living().run(call); }
  std::uint64_t digest(const Call& call) const override { return inner_->digest(call); }
  Owned<Running> start(const Call& call) override { return living().start(call); }
  Owned<Sending> post_send(const char* verb, int to, std::uint64_t tag, const void* data, std::size_t bytes,
                           double seconds) override {
    return living().post_send(verb, to, tag, data, bytes, seconds);
  }
  void receive(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes, double seconds) override {
    living().receive(verb, from, tag, data, bytes, seconds);
  }
  bool try_receive(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes) override {
    return inner_->try_receive(verb, from, tag, data, bytes);  // how often it is asked is a matter of luck
  }
  std::string explain(const Question& question) override { return inner_->explain(question); }
  Owned<Endpoint> split(int color, int key) override {
    auto end = living().split(color, key);
    if (end == nullptr) return nullptr;
    Endpoint& inner = *end;
    return std::make_unique<Mortal>(inner, fate_, std::move(end));
  }
  void abort(const char* reason) noexcept override { inner_->abort(reason); }

 private:
  Endpoint& living() {
    fate_->call();
    inner_->set_deadline(deadline());
    inner_->set_axis(axis());
    return *inner_;
  }
  void expectations_changed() override {
    const auto gone = [](const auto& from, const auto& in) {
      std::vector<Expectation*> result;
      for (Expectation* one : from) {
        if (std::find(in.begin(), in.end(), one) == in.end()) result.push_back(one);
      }
      return result;
    };
    for (Expectation* one : gone(inner_->expectations(), expectations())) inner_->expect_no_more(*one);
    for (Expectation* one : gone(expectations(), inner_->expectations())) inner_->expect(*one);
  }

  Owned<Endpoint> owned_;
  Endpoint* inner_;
  std::shared_ptr<Fate> fate_;
};

struct MortalGrid {
  int dp, tp;
};
using MortalProgram = void (*)(const Mesh<dp, tp>& mesh);

struct Death {
  MortalGrid grid;
  Checks checks;
  int who;
  int calls;  ///< of the fabric that it still makes
  bool leaves;
  bool messages;  ///< collectives run over send and receive
};

/// What a rank has seen: nothing, or an error.
struct Seen {
  std::string text;
  Code code = Code::aborted;
  bool names = false;
};

/// Whether an error says which rank has died: by its number in the job, or on an axis.
inline bool names(const Error& error, const Death& death) {
  const std::string text = error.what();
  const auto contains = [](const std::string& all, const std::string& part) {
    return all.find(part) != std::string::npos;
  };
  const auto says = [&](int rank) { return contains(text, "rank " + std::to_string(rank) + " "); };
  const bool on_dp = contains(text, "axis dp"), on_tp = contains(text, "axis tp");
  return (on_dp && says(death.who / death.grid.tp)) || (on_tp && says(death.who % death.grid.tp)) || says(death.who);
}

/// Runs a program in which a rank dies, if it makes so many calls; whether it has.
inline bool dies_in(const Death& death, MortalProgram program) {
  const int ranks = death.grid.dp * death.grid.tp;
  std::vector<Seen> seen(static_cast<std::size_t>(ranks));
  bool met = false;
  LaunchOptions options;
  options.deadline = 60;
  options.messages = death.messages;
  try {
    launch(ranks, options, [&](Communicator& job) {
      const auto fate = std::make_shared<Fate>();
      Communicator world(std::make_unique<Mortal>(job.endpoint(), fate));
      const Mesh<dp, tp> mesh(world, {death.grid.dp, death.grid.tp});
      mesh.set_checks(death.checks);
      const bool dying = world.rank() == death.who;
      try {
        barrier(world);  // a slow rank may hear of it in here already
        if (dying) *fate = {death.calls, death.leaves};
        program(mesh);
        fate->calls_left = -1;
        barrier(world);  // an error comes no later than with the next call
      } catch (const Leaves&) {
        met = true;  // and the rank returns, as if nothing had happened
      } catch (const Error& error) {
        seen[static_cast<std::size_t>(world.rank())] = {error.what(), error.code(), names(error, death)};
        throw;
      } catch (...) {
        if (dying) met = fate->met;
        throw;
      }
    });
    CHECK(!met);
  } catch (const std::exception& error) {
    CHECK(met);
    if (!death.leaves) CHECK(std::string(error.what()) == "out of luck");
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const Seen& one = seen[static_cast<std::size_t>(rank)];
    INFO("rank " << rank << " when rank " << death.who << (death.leaves ? " leaves" : " throws") << " after "
                 << death.calls << " calls: " << one.text);
    CHECK(one.text.empty() == (!met || rank == death.who));
    CHECK(one.code != Code::timed_out);
    CHECK(one.names == !one.text.empty());
  }
  return met;
}

/// Every rank dies, in both ways, after every number of calls. calls: at least so many are made.
inline void check_deaths(const MortalGrid& grid, MortalProgram program, int calls) {
  for (const Checks checks : {Checks::light, Checks::communicating}) {
    for (int who = 0; who < grid.dp * grid.tp; ++who) {
      for (const bool leaves : {false, true}) {
        for (const bool messages : {false, true}) {
          int made = 0;
          while (dies_in({grid, checks, who, made, leaves, messages}, program)) ++made;
          CHECK(made >= calls);
        }
      }
    }
  }
}

}  // namespace test
