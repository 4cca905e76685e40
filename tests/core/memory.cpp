// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/memory.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>

namespace {

using namespace meshwise;

/// A source that knows what it has given out.
struct Counted {
  std::size_t blocks = 0, bytes = 0, allocations = 0;
  bool exhausted = false;

  MemorySource source() {
    return {[](void* self, std::size_t n, std::size_t alignment) -> void* {
              auto& counted = *static_cast<Counted*>(self);
              if (counted.exhausted) return nullptr;
              ++counted.blocks;
              ++counted.allocations;
              counted.bytes += n;
              return host_memory().allocate(nullptr, n, alignment);
            },
            [](void* self, void* memory, std::size_t n) {
              auto& counted = *static_cast<Counted*>(self);
              --counted.blocks;
              counted.bytes -= n;
              host_memory().release(nullptr, memory, n);
            },
            this};
  }
};

TEST_CASE("memory is aligned, writable, as large as asked for, and disjoint") {
  Heap heap;
  std::vector<Storage> live;
  for (const std::size_t bytes :
       std::initializer_list<std::size_t>{0, 1, 63, 64, 65, 1000, 1024, 1025, 65537, 3 << 20}) {
    Storage s = heap.allocate(bytes);
    CHECK(s.bytes() == bytes);
    CHECK(s.data() != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(s.data()) % 64 == 0);
    std::memset(s.data(), static_cast<int>(live.size() + 1), bytes);
    live.push_back(s);
  }
  for (std::size_t i = 0; i < live.size(); ++i) {
    const Storage& s = live[i];
    for (const std::size_t at : {std::size_t{0}, s.bytes() / 2, s.bytes() - 1}) {
      if (s.bytes() != 0) CHECK(s.data()[at] == static_cast<std::byte>(i + 1));
    }
  }
}

TEST_CASE("usage by category: current, peak, and the sum of all") {
  Heap heap;
  CHECK(heap.category() == Category::activations);
  Storage a = heap.allocate(100);
  {
    const CategoryScope scope(heap, Category::parameters);
    Storage b = heap.allocate(1000);
    {
      const CategoryScope inner(heap, Category::optimizer);
      Storage c = heap.allocate(10);
      CHECK(heap.usage(Category::optimizer).current == 10);
      CHECK(heap.total().current == 1110);
    }
    CHECK(heap.category() == Category::parameters);
    CHECK(heap.usage(Category::parameters).current == 1000);
    CHECK(heap.usage(Category::optimizer).current == 0);
    CHECK(heap.usage(Category::optimizer).peak == 10);
  }
  CHECK(heap.category() == Category::activations);
  CHECK(heap.usage(Category::parameters).current == 0);
  CHECK(heap.usage(Category::parameters).peak == 1000);
  CHECK(heap.usage(Category::activations).current == 100);
  CHECK(heap.total().current == 100);
  CHECK(heap.total().peak == 1110);

  // Memory stays in the category it was allocated in, wherever it dies.
  const CategoryScope scope(heap, Category::gradients);
  a = Storage();
  CHECK(heap.usage(Category::activations).current == 0);
  CHECK(heap.usage(Category::gradients).current == 0);
  CHECK(heap.total().current == 0);
}

TEST_CASE("memory is reused, sizes that differ little share blocks, and trim gives it back") {
  Counted counted;
  {
    Heap heap(counted.source());
    for (int step = 0; step < 10; ++step) {
      const Storage a = heap.allocate(1000), b = heap.allocate(100000);
      const Storage c = heap.allocate(1001);
    }
    CHECK(counted.allocations == 3);
    const std::byte* before = heap.allocate(5000).data();
    CHECK(heap.allocate(4999).data() == before);  // the last one died at the end of its statement
    heap.trim();
    CHECK(counted.blocks == 0);
    const Storage kept = heap.allocate(64);
    heap.trim();
    CHECK(counted.blocks == 1);
  }
  CHECK(counted.blocks == 0);
  CHECK(counted.bytes == 0);
}

TEST_CASE("rounding wastes at most an eighth beyond the first kilobyte") {
  for (std::size_t bytes = 1; bytes < (std::size_t{1} << 40); bytes += bytes / 7 + 1) {
    const std::size_t capacity = detail::HeapCore::round_up(bytes);
    CHECK(capacity >= bytes);
    CHECK(capacity % 64 == 0);
    CHECK(capacity - bytes <= (bytes < 512 ? 64 : bytes / 8));
    CHECK(detail::HeapCore::round_up(capacity) == capacity);
  }
}

TEST_CASE("storage outlives its heap, and the last one releases everything") {
  Counted counted;
  {
    Storage survivor;
    {
      std::optional<Heap> heap(std::in_place, counted.source());
      const Storage dead = heap->allocate(2000);
      survivor = heap->allocate(100);
      std::memset(survivor.data(), 7, 100);
    }
    CHECK(counted.blocks == 2);
    CHECK(survivor.data()[99] == std::byte{7});
    const Storage copy = survivor;
    survivor = Storage();
    CHECK(copy.data()[99] == std::byte{7});
  }
  CHECK(counted.blocks == 0);
  CHECK(counted.bytes == 0);
}

TEST_CASE("storage counts its owners") {
  Heap heap;
  Storage a = heap.allocate(8);
  CHECK(a.unique());
  {
    const Storage b = a;
    CHECK(!a.unique());
    CHECK(b.data() == a.data());
  }
  CHECK(a.unique());
  Storage c = std::move(a);
  CHECK(c.unique());
  CHECK(a.data() == nullptr);  // NOLINT(bugprone-use-after-move): moved-from storage is empty
  CHECK(a.bytes() == 0);
  CHECK(!a.unique());
  Storage& self = c;
  c = self;
  CHECK(c.unique());
  CHECK(heap.total().current == 8);
  c = Storage();
  CHECK(heap.total().current == 0);
}

TEST_CASE("memory that cannot be had is an Error with the bytes asked for and in use, and the heap goes on") {
  Counted counted;
  Heap heap(counted.source());
  const Storage held = heap.allocate(300);
  const auto refusal = [&](std::size_t bytes) {
    try {
      heap.allocate(bytes);
    } catch (const Error& error) {
      CHECK(error.code() == Code::out_of_memory);
      return std::string(error.what());
    }
    return std::string();
  };
  counted.exhausted = true;
  const std::string text = refusal(70000);
  CHECK(text.find("Heap::allocate") == 0);
  CHECK(text.find("70000 bytes") != std::string::npos);
  CHECK(text.find("300 bytes are in use") != std::string::npos);
  counted.exhausted = false;
  // The size of a negative count: neither a small block nor an endless search.
  CHECK(refusal(~std::size_t{0}).find("18446744073709551615 bytes") != std::string::npos);
  CHECK(refusal(~std::size_t{0} - 7).find("could not be had") != std::string::npos);
  CHECK(refusal(std::size_t{1} << 63).find("could not be had") != std::string::npos);
  CHECK(heap.allocate(70000).bytes() == 70000);
  CHECK(heap.total().current == 300);
}

TEST_CASE("categories have names") {
  CHECK(std::string(category_name(Category::parameters)) == "parameters");
  CHECK(std::string(category_name(Category::workspace)) == "workspace");
  static_assert(static_cast<int>(Category::workspace) + 1 == categories);
}

}  // namespace
