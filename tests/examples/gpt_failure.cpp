// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "gpt_support.hpp"

using namespace gpt;

namespace {

constexpr Sizes few{13, 6, 8, 2, 4, 10, 1};

}  // namespace

TEST_CASE("a rank that throws in the middle of training ends all ranks with its cause") {
  for (int thrower = 0; thrower < 4; ++thrower) {
    for (const bool in_data : {false, true}) {
      std::atomic<int> aborted{0};
      std::string cause;
      try {
        test::on_mesh({2, 1, 2}, [&](const Grid& mesh) {
          const int rank = mesh.world().rank();
          try {
            Training training;
            training.zero = thrower;  // and in all stages
            const auto trainer = make_trainer(mesh, few, training);
            for (int step = 0; step < 5; ++step) {
              const auto token = [&](const auto& i) -> int {
                // In the middle of making a batch, when the others are already in the step's first collective.
                if (in_data && step == 2 && rank == thrower) throw std::runtime_error("disk on fire");
                return static_cast<int>(i.linear % 13);
              };
              const auto tokens = generate<Tokens>(mesh, {4, 6}, token);
              if (!in_data && step == 2 && rank == thrower) throw std::runtime_error("disk on fire");
              trainer->step(Batch{tokens, tokens});
            }
          } catch (const Error& error) {
            const std::string text = error.what();
            CHECK(error.code() == Code::aborted);
            // What the thrower had started may end first.
            CHECK((text.find("disk on fire") != std::string::npos || text.find("given up") != std::string::npos));
            ++aborted;
            throw;
          }
        });
      } catch (const std::runtime_error& error) {
        cause = error.what();
      }
      CHECK(cause == "disk on fire");
      CHECK(aborted == 3);
    }
  }
}

TEST_CASE("a token that the vocabulary does not have is an error that names both") {
  std::string text;
  try {
    test::on_mesh({1, 1, 2}, [&](const Grid& mesh) {
      const auto trainer = make_trainer(mesh, few, Training{});
      const auto tokens = generate<Tokens>(mesh, {2, 6}, [](const auto&) { return 13; });
      trainer->step(Batch{tokens, tokens});
    });
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK(text.find("[0, 13)") != std::string::npos);
  CHECK(text.find("13") != std::string::npos);
}
