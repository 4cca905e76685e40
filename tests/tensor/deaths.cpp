// SPDX-License-Identifier: Apache-2.0
// A rank that throws, or returns early, between any two calls that the typed layer makes of its fabric: every other
// rank gets an Error that names it, and nobody waits for a deadline.
#include <doctest/doctest.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "../support/launch.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/tensor/arg_max.hpp"
#include "meshwise/tensor/inside.hpp"
#include "meshwise/tensor/replicas.hpp"
#include "meshwise/tensor/reshard.hpp"
#include "meshwise/tensor/stream.hpp"
#include "meshwise/tensor/top_k.hpp"
#include "mortal.hpp"
#include "support.hpp"

namespace test {
namespace {

using Square = Dims<d0, d1>;
template <class... Ps>
using T = Tensor<double, Square, On<Ps...>>;
using Program = void (*)(const Grid& mesh);

struct Death {
  GridSize grid;
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
bool names(const Error& error, const Death& death) {
  const std::string text = error.what();
  const auto says = [&](int rank) { return contains(text, "rank " + std::to_string(rank) + " "); };
  const bool on_dp = contains(text, "axis dp"), on_tp = contains(text, "axis tp");
  return (on_dp && says(death.who / death.grid.tp)) || (on_tp && says(death.who % death.grid.tp)) || says(death.who);
}

/// Runs a program in which a rank dies, if it makes so many calls; whether it has.
bool dies_in(const Death& death, Program program) {
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
      const Grid mesh(world, {death.grid.dp, death.grid.tp});
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
void check_deaths(const GridSize& grid, Program program, int calls) {
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

TEST_CASE("a rank dies in an exchange") {
  check_deaths(
      {1, 3},
      [](const Grid& mesh) {
        const T<Shard<d0, Zigzag<tp>>> x(mesh, {61, 40});
        static_cast<void>(convert<Shard<d0, tp>>(x));
        static_cast<void>(convert<Shard<d1, tp>>(x));
      },
      2);
}

TEST_CASE("a rank dies between the steps of a plan") {
  using From = T<Shard<d0, Zigzag<dp>>, Partial<tp>>;
  using To = On<Shard<d0, dp>>;
  static_assert(plan<From::layout, To, Square>.count == 2);
  check_deaths(
      {2, 2},
      [](const Grid& mesh) {
        static_cast<void>(reshard<To>(From(mesh, {60, 41})));
      },
      2);
}

TEST_CASE("a rank dies in a stream") {
  check_deaths(
      {1, 3},
      [](const Grid& mesh) {
        const T<Shard<d0, tp>> x(mesh, {200, 150});
        static_cast<void>(stream<tp>(x, [](const auto& piece, int) { return piece; }));
      },
      4);
}

TEST_CASE("a rank dies in choices that are made by all ranks") {
  check_deaths(
      {2, 2},
      [](const Grid& mesh) {
        const T<Shard<d1, dp, tp>> x(mesh, {5, 30});
        static_cast<void>(distributed_arg_max<d1>(x));
        static_cast<void>(distributed_top_k<d1>(x, 4));
      },
      4);
}

TEST_CASE("a rank dies in comparisons of replicas, and in claims") {
  check_deaths(
      {1, 3},
      [](const Grid& mesh) {
        const T<> x(mesh, {50, 4});
        check_replicas(x);
        const auto parts = outside<Shard<d0, Counted<tp>>>(mesh, inside<tp>(x));
        static_cast<void>(convert<Shard<d0, tp>>(parts));
      },
      3);
}

}  // namespace
}  // namespace test
