// SPDX-License-Identifier: Apache-2.0
#include "meshwise/mesh/checks.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

#include "../support/launch.hpp"
#include "meshwise/mesh/mesh.hpp"

namespace {

using namespace meshwise;

void require(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

/// A value of the variable for a while; null: not set.
class Environment {
 public:
  explicit Environment(const char* value) {
    if (const char* const text = std::getenv("MESHWISE_CHECKS")) before_ = text;
    set(value);
  }
  ~Environment() { set(before_ ? before_->c_str() : nullptr); }

 private:
  static void set(const char* value) {
    value == nullptr ? unsetenv("MESHWISE_CHECKS") : setenv("MESHWISE_CHECKS", value, 1);
  }
  std::optional<std::string> before_;
};

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("levels have names") {
  for (const Checks one : {Checks::none, Checks::light, Checks::communicating}) {
    Checks parsed = Checks::light;
    CHECK(parse(checks_name(one), parsed));
    CHECK(parsed == one);
  }
  Checks kept = Checks::none;
  for (const char* wrong : {"", "Light", "all", "light ", "none,light"}) CHECK(!parse(wrong, kept));
  CHECK(kept == Checks::none);
}

TEST_CASE("the environment says the level when a mesh is made, and its views have it too") {
  for (const auto& [text, level] : {std::pair<const char*, Checks>{nullptr, Checks::light},
                                    {"", Checks::light},
                                    {"none", Checks::none},
                                    {"light", Checks::light},
                                    {"communicating", Checks::communicating}}) {
    const Environment environment(text);
    CHECK(checks_from_environment() == level);
    launch(3, [level = level](Communicator& world) {
      const Mesh<dp, tp> mesh(world, {1, 3});
      require(mesh.checks() == level, "level");
      const auto view = mesh.without<dp>();
      require(view.checks() == level && mesh.borrowed().checks() == level, "views");
      require(world.traffic().volume == 0, "comparing levels is no traffic");
      const auto ends = mesh.only<tp>({0, 2});
      require(!ends || ends->checks() == level, "some ranks");
      mesh.set_checks(Checks::none);
      require(view.checks() == Checks::none && mesh.checks() == Checks::none, "one level for all handles");
    });
  }
}

TEST_CASE("a level that does not exist is an error that names them all") {
  const Environment environment("Full\n");
  const std::string expected =
      "MESHWISE_CHECKS: expected none, light or communicating, found \"Full?\"; correct the environment of all ranks";
  CHECK(error_of([] { checks_from_environment(); }) == expected);
  CHECK(error_of([] { launch(2, [](Communicator& world) { const Mesh<tp> mesh(world, {2}); }); }).find(expected) !=
        std::string::npos);
}

TEST_CASE("ranks that want different levels hear of it") {
  launch(3, [](Communicator& world) {
    const Checks mine = world.rank() == 1 ? Checks::communicating : Checks::light;
    const std::string text = error_of([&] { detail::agreed_checks(world, mine); });
    require(text.find("Mesh (rank " + std::to_string(world.rank()) +
                      "): expected the same level of checks on all ranks, found light on rank 0 and communicating on "
                      "rank 1; set MESHWISE_CHECKS alike") == 0,
            text.c_str());
    require(detail::agreed_checks(world, Checks::none) == Checks::none, "the group goes on");
  });
}

}  // namespace
