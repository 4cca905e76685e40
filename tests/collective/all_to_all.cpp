// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/all_to_all.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

using namespace test;

TEST_CASE("all_to_all transposes blocks") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    on_both(ranks, [&](Communicator& communicator) {
      const int rank = communicator.rank();
      const auto item = [](int from, int to, std::size_t i) {
        return static_cast<std::int64_t>(i) * 10000 + from * 100 + to;
      };
      for (const std::size_t block : {0U, 1U, 2U, 3U, 7U, 64U, 1000U, 7282U}) {
        for (const Algorithm algorithm : algorithms) {
          const std::size_t size = block * static_cast<std::size_t>(ranks);
          Guarded<std::int64_t> in(size);
          Guarded<std::int64_t> out(size);
          for (std::size_t i = 0; i < size; ++i) {
            in.data()[i] = item(rank, static_cast<int>(i / block), i % block);
          }
          const Traffic before = communicator.traffic();
          all_to_all(communicator, in.span(), out.span(), CollectiveOptions{algorithm, -1});
          in.check("input");
          out.check("output");
          bool right = true;
          for (std::size_t i = 0; i < size; ++i) {
            right = right && out.data()[i] == item(static_cast<int>(i / block), rank, i % block) &&
                    in.data()[i] == item(rank, static_cast<int>(i / block), i % block);
          }
          require(right, "blocks of " + std::to_string(block));
          const Traffic traffic = communicator.traffic() - before;
          require(traffic.volume == (size - block) * 8 && traffic.moved == traffic.volume, "traffic");
        }
      }
    });
  }
}

TEST_CASE("all_to_all refuses what it cannot do") {
  launch(3, [](Communicator& communicator) {
    std::vector<int> data(7);
    std::vector<int> out(7);
    const auto refused = [&](std::span<int> from, std::span<int> to, const char* word) {
      try {
        all_to_all(communicator, from, to);
      } catch (const Error& error) {
        require(contains(error.what(), word), error.what());
        return;
      }
      require(false, "not refused");
    };
    refused(data, out, "that 3 ranks divide");
    refused(std::span(data).first(6), std::span(data).first(6), "does not work in place");
    refused(std::span(data).first(3), std::span(out).first(6), "as long as");
  });
}
