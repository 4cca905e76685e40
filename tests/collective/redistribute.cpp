// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/redistribute.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "rooted.hpp"

namespace {

using namespace test;

/// A split of `total` elements, the same on every rank.
std::vector<std::size_t> drawn_split(Draw& draw, int ranks, std::size_t total) {
  std::vector<std::size_t> cuts{0, total};
  for (int i = 1; i < ranks; ++i) cuts.push_back(draw(3) == 0 ? total / 2 : static_cast<std::size_t>(draw(total + 1)));
  std::sort(cuts.begin(), cuts.end());
  std::vector<std::size_t> result;
  for (std::size_t i = 1; i < cuts.size(); ++i) result.push_back(cuts[i] - cuts[i - 1]);
  return result;
}

}  // namespace

TEST_CASE("a vector keeps its order from any split to any other") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    on_both(ranks, [&](Communicator& communicator) {
      Draw draw(static_cast<std::uint64_t>(ranks));
      const auto me = static_cast<std::size_t>(communicator.rank());
      for (const std::size_t total : sizes) {
        const std::vector<std::size_t> before = drawn_split(draw, ranks, total);
        const std::vector<std::size_t> after = drawn_split(draw, ranks, total);
        const std::size_t first = sum_of(before, me);
        const std::size_t then = sum_of(after, me);
        Guarded<int> in(before[me]);
        Guarded<int> out(after[me]);
        for (std::size_t i = 0; i < before[me]; ++i) in.data()[i] = static_cast<int>(first + i);
        const Traffic start = communicator.traffic();
        for (int again = 0; again < 2; ++again) {
          redistribute(communicator, std::span<const int>(in.span()), out.span(), before, after);
        }
        const std::uint64_t volume = communicator.traffic().volume - start.volume;
        out.check("redistribute");
        require_items(out.data(), after[me], "redistribute", [&](std::size_t i) { return static_cast<int>(then + i); });
        const std::size_t begin = std::max(first, then);
        const std::size_t end = std::min(first + before[me], then + after[me]);
        const std::size_t kept = end > begin ? end - begin : 0;
        require(volume == 2 * (after[me] - kept) * sizeof(int), "volume: what the rank lacks");
      }
    });
  }
}

TEST_CASE("started and prepared redistributions") {
  launch(2, [](Communicator& communicator) {
    const std::vector<std::size_t> all{4, 0};
    const std::vector<std::size_t> halves{2, 2};
    const bool first = communicator.rank() == 0;
    const std::vector<int> whole = first ? std::vector<int>{1, 2, 3, 4} : std::vector<int>{};
    std::vector<int> half = start_redistribute(communicator, whole, std::vector<int>(2), all, halves).wait();
    require(half == (first ? std::vector<int>{1, 2} : std::vector<int>{3, 4}), "there");
    std::vector<int> back(whole.size());
    auto prepared = prepare_redistribute(communicator, half, back, halves, all);
    for (int i = 0; i < 3; ++i) {
      half[0] += 10;
      prepared.run();
      require(!first || (back[0] == half[0] && back[3] == 4), "and back, with what the buffers hold then");
    }
  });
}

TEST_CASE("splits that do not fit are refused") {
  launch(2, [](Communicator& communicator) {
    std::vector<int> in(2), out(2);
    const std::vector<std::size_t> even{2, 2}, odd{2, 3}, one{2};
    refuse([&] { redistribute(communicator, in, out, even, one); }, "a count for each of 2 ranks");
    refuse([&] { redistribute(communicator, in, in, even, even); }, "an overlap");
    refuse([&] { redistribute(communicator, in, std::vector<int>(3), even, even); }, "this rank's part after: 2");
    if (communicator.rank() == 0) refuse([&] { redistribute(communicator, in, out, even, odd); }, "elements");
  });
}
