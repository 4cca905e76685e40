// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "../../examples/gpt/trainer.hpp"
#include "../support/launch.hpp"

using namespace gpt;

TEST_CASE("a rank that throws in the middle of training ends all ranks with its cause") {
  const Sizes sizes{13, 6, 8, 2, 4, 10, 1};
  for (int thrower = 0; thrower < 4; ++thrower) {
    for (const bool in_data : {false, true}) {
      std::atomic<int> aborted{0};
      std::string cause;
      try {
        LaunchOptions options;
        options.deadline = 20;
        launch(4, options, [&](Communicator& world) {
          try {
            const Grid mesh(world, {2, 2});
            Trainer<float> trainer(mesh, sizes, Training{});
            for (int step = 0; step < 5; ++step) {
              const auto token = [&](const auto& i) -> int {
                // In the middle of making a batch, when the others are already in the step's first collective.
                if (in_data && step == 2 && world.rank() == thrower) throw std::runtime_error("disk on fire");
                return static_cast<int>(i.linear % 13);
              };
              const auto tokens = generate<Trainer<float>::Tokens>(mesh, {4, 6}, token);
              if (!in_data && step == 2 && world.rank() == thrower) throw std::runtime_error("disk on fire");
              trainer.step(tokens, tokens);
            }
          } catch (const Error& error) {
            CHECK(error.code() == Code::aborted);
            CHECK(std::string(error.what()).find("disk on fire") != std::string::npos);
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
    launch(2, [&](Communicator& world) {
      const Grid mesh(world, {1, 2});
      Trainer<float> trainer(mesh, Sizes{13, 6, 8, 2, 4, 10, 1}, Training{});
      const auto tokens = generate<Trainer<float>::Tokens>(mesh, {2, 6}, [](const auto&) { return 13; });
      trainer.step(tokens, tokens);
    });
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK(text.find("[0, 13)") != std::string::npos);
  CHECK(text.find("13") != std::string::npos);
}
