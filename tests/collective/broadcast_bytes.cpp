// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/broadcast_bytes.hpp"

#include <doctest/doctest.h>

#include <map>

#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/broadcast_object.hpp"
#include "rooted.hpp"

using namespace test;

TEST_CASE("the others need not know how long it is") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    on_both(ranks, [&](Communicator& communicator) {
      for (const int root : roots(ranks)) {
        for (const std::size_t size : {0U, 1U, 47U, 48U, 49U, 1000U, 100000U}) {
          std::string text(communicator.rank() == root ? size : 5, 'x');
          if (communicator.rank() == root && size > 0) text.back() = 'y';
          const std::uint64_t calls = communicator.traffic().calls;
          broadcast_bytes(communicator, text, root);
          require(
              text.size() == size && (size == 0 || text.back() == 'y') && text.find('x') == (size > 1 ? 0 : text.npos),
              "text of " + std::to_string(size));
          require(communicator.traffic().calls - calls == (size > 48 ? 2U : 1U), "short ones travel with their length");
        }
        std::vector<double> numbers;
        if (communicator.rank() == root) numbers.assign(11, 0.5);
        broadcast_bytes(communicator, numbers, root);
        require(numbers == std::vector<double>(11, 0.5), "numbers");
      }
    });
  }
}

TEST_CASE("more than the limit is an error on all ranks, and the communicator stays usable") {
  launch(3, [](Communicator& communicator) {
    std::vector<std::byte> data(communicator.rank() == 1 ? 101 : 0);
    BytesOptions options;
    options.limit = 100;
    refuse([&] { broadcast_bytes(communicator, data, 1, options); }, "expected at most 100 bytes, found 101");
    refuse([&] { broadcast_bytes(communicator, data, 3); }, "a root from 0 to 2");
    options.limit = 101;
    broadcast_bytes(communicator, data, 1, options);
    require(data.size() == 101, "at the limit");
  });
  const Outcome limits = outcome(2, Setup{}, [](Communicator& communicator) {
    std::string text;
    BytesOptions options;
    options.limit = communicator.rank() == 0 ? 1 : 2;
    broadcast_bytes(communicator, text, 0, options);
    barrier(communicator);  // the root need not wait for the others before
  });
  CHECK(limits.code[0] == Code::mismatch);
  CHECK(limits.code[1] == Code::mismatch);
  const Outcome types = outcome(2, Setup{}, [](Communicator& communicator) {
    std::string text("abcdef");
    std::vector<int> numbers;
    if (communicator.rank() == 0) {
      broadcast_bytes(communicator, text);
    } else {
      broadcast_bytes(communicator, numbers);
    }
    barrier(communicator);
  });
  CHECK(types.code[0] == Code::mismatch);
  CHECK(types.code[1] == Code::mismatch);
}

TEST_CASE("a rank that has no memory for it ends the others' waits") {
  struct Full : std::vector<int> {
    void resize(std::size_t) { throw std::bad_alloc(); }
  };
  const Outcome result = outcome(3, Setup{}, [](Communicator& communicator) {
    Full data;
    if (communicator.rank() == 0) data.assign(1000, 1);
    broadcast_bytes(communicator, data);
    barrier(communicator);
  });
  // The first to fail aborts the others, one of which may have been about to fail too.
  CHECK((result.code[1] == Code::out_of_memory || result.code[2] == Code::out_of_memory));
  CHECK(result.code[0] == Code::aborted);
  for (const std::string& text : result.text) CHECK(contains(text, "no memory for 4000 bytes"));
}

TEST_CASE("objects of any type travel as bytes") {
  on_both(3, [](Communicator& communicator) {
    std::map<int, int> table;
    if (communicator.rank() == 2) {
      for (int i = 0; i < 100; ++i) table[i] = i * i;
    }
    const auto pack = [](const std::map<int, int>& object) {
      std::vector<int> result;
      for (const auto& [key, item] : object) result.insert(result.end(), {key, item});
      return result;
    };
    const auto unpack = [](std::span<const std::byte> bytes) {
      const int* const items = reinterpret_cast<const int*>(bytes.data());
      std::map<int, int> result;
      for (std::size_t i = 0; i < bytes.size() / sizeof(int); i += 2) result[items[i]] = items[i + 1];
      return result;
    };
    broadcast_object(communicator, table, pack, unpack, 2);
    require(table.size() == 100 && table[9] == 81, "a map");
  });
}
