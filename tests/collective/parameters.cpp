// SPDX-License-Identifier: Apache-2.0
// Algorithms with parameters, as options carry them: ranks must have the same ones.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/schedule/hierarchical.hpp"
#include "meshwise/schedule/ring.hpp"
#include "meshwise/schedule/torus.hpp"
#include "support.hpp"

using namespace test;

namespace {

/// A ring, with a parameter that only its description tells.
struct Tuned : Ring {
  static constexpr const char* name = "tuned";
  double speed = 0;

  std::string description() const { return "tuned(" + std::to_string(speed) + ")"; }
};
static_assert(Generator<Tuned>);

/// Without a description it is taken for the same everywhere.
struct Silent : Ring {
  static constexpr const char* name = "silent";
  int parameter = 0;
};

template <class G>
Outcome reduced(const G& usual, const G& odd, std::size_t count, bool messages, bool started = false) {
  Setup setup;
  setup.messages = messages;
  return outcome(4, setup, [&](Communicator& communicator) {
    std::vector<float> data(count, 1);
    CollectiveOptions options;
    options.generator = AnyGenerator(communicator.rank() == 2 ? odd : usual);
    if (started) {
      start_all_reduce(communicator, data, options).wait();
    } else {
      all_reduce(communicator, data, options);
    }
    require(data == std::vector<float>(count, 4), "the sum");
    barrier(communicator);
  });
}

}  // namespace

TEST_CASE("ranks whose algorithm has other parameters hear of it, with both values") {
  for (const bool messages : both) {
    for (const bool started : both) {
      for (const std::size_t count : {1U, 50000U}) {
        const Outcome one = reduced(Torus{{2, 2}}, Torus{{4}}, count, messages, started);
        const Outcome two = reduced(Hierarchical({{0, 2}}), Hierarchical({{0, 1}}), count, messages, started);
        const Outcome three = reduced(Tuned{{}, 1.5}, Tuned{{}, 2.5}, count, messages, started);
        for (std::size_t rank = 0; rank < 4; ++rank) {
          CAPTURE(one.text[rank]);
          CAPTURE(two.text[rank]);
          CAPTURE(three.text[rank]);
          CHECK(one.code[rank] == Code::mismatch);
          CHECK(two.code[rank] == Code::mismatch);
          CHECK(three.code[rank] == Code::mismatch);
          CHECK(contains(one.text[rank], "the parameters of the algorithm: rank"));
          CHECK(contains(one.text[rank], "rank 2 has torus{4}"));
          CHECK(contains(one.text[rank], " has torus{2, 2}"));
          CHECK(contains(two.text[rank], "rank 2 has hierarchical{0, 1}, direct up to 16"));
          CHECK(contains(two.text[rank], " has hierarchical{0, 2}, direct up to 16"));
          CHECK(contains(three.text[rank], "rank 2 has tuned(2.500000)"));
        }
      }
    }
  }
}

TEST_CASE("equal parameters in objects of their own agree, and so do those that nobody tells") {
  for (const bool messages : both) {
    for (const std::size_t count : {0U, 1U, 3U, 50000U}) {
      for (const Outcome& result : {reduced(Torus{{2, 2}}, Torus{{2, 2}}, count, messages),
                                    reduced(Tuned{{}, 1}, Tuned{{}, 1}, count, messages),
                                    reduced(Silent{{}, 1}, Silent{{}, 2}, count, messages)}) {
        for (const std::string& text : result.text) CHECK(text.empty());
      }
    }
  }
}

TEST_CASE("explain and refusals tell the parameters") {
  launch(4, [](Communicator& communicator) {
    const Torus torus{{2, 2}}, wrong{{3, 2}};
    CollectiveOptions options;
    options.generator = AnyGenerator(torus);
    const std::string text = communicator.explain(Operation::all_reduce, 1000, options);
    require(contains(text, "torus{2, 2}, the caller's own generator, in 4 rounds"), text);
    options.generator = AnyGenerator(wrong);
    require(contains(communicator.explain(Operation::all_reduce, 1000, options), "torus{3, 2}, the caller's own"),
            "explain of what does not fit");
    std::vector<int> data(3);
    refuse([&] { all_reduce(communicator, data, options); }, "found torus{3, 2}");
  });
}
