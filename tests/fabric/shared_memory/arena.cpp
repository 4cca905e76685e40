// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/arena.hpp"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "ranks.hpp"

namespace {

using namespace meshwise;
using namespace meshwise::detail;

constexpr std::size_t kib = 1024, mib = kib * kib;

/// An arena that nobody else sees.
struct Alone {
  explicit Alone(std::size_t bytes, Descriptor from = memory_file("test"))
      : file(std::move(from)),
        pages(mmap(nullptr, bytes + 2 * mib, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0),
              bytes + 2 * mib),
        arena(file.get(), static_cast<std::byte*>(pages.begin()), bytes) {}

  Descriptor file;
  MappedPages pages;
  Arena arena;
};

struct Block {
  unsigned char* at;
  std::size_t bytes;
  unsigned char mark;
};

}  // namespace

TEST_CASE("blocks keep their contents, and do not share bytes, whatever comes and goes beside them") {
  Alone alone(256 * mib);
  Arena& arena = alone.arena;
  CHECK(arena.reserved() == 0);
  std::mt19937 random(3);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<Block> blocks;
  const auto check = [](const Block& block) {
    for (std::size_t k = 0; k < block.bytes; k += 997) {
      if (block.at[k] != block.mark) return false;
    }
    return block.at[block.bytes - 1] == block.mark;
  };
  std::size_t total = 0;
  for (int step = 0; step < 1500; ++step) {
    if (!blocks.empty() && (random() % 2 == 0 || total > 120 * mib)) {
      const std::size_t k = random() % blocks.size();
      REQUIRE(check(blocks[k]));
      arena.release(blocks[k].at, blocks[k].bytes);
      total -= blocks[k].bytes;
      blocks[k] = blocks.back();
      blocks.pop_back();
      continue;
    }
    const std::size_t largest[] = {100, 10 * kib, 300 * kib, 2 * mib, 9 * mib};
    const std::size_t bytes = 1 + random() % largest[random() % 5];
    const std::size_t alignment = std::size_t{1} << random() % 22;
    const std::size_t phase = alignment > page && random() % 3 == 0 ? random() % alignment / page * page : 0;
    auto* const at = static_cast<unsigned char*>(arena.allocate(bytes, alignment, phase));
    REQUIRE(at != nullptr);
    // The map may begin anywhere; what counts is the place in the arena, which begins at a multiple of 2 MiB.
    REQUIRE(arena.offset_of(at) + bytes <= arena.bytes());
    REQUIRE(arena.offset_of(at) % 64 == 0);
    REQUIRE((arena.offset_of(at) - phase) % alignment == 0);
    if (bytes >= 2 * mib && phase == 0) REQUIRE(arena.offset_of(at) % (2 * mib) == 0);
    const auto mark = static_cast<unsigned char>(step);
    std::memset(at, mark, bytes);
    blocks.push_back({at, bytes, mark});
    total += bytes;
  }
  for (const Block& block : blocks) {
    REQUIRE(check(block));
    arena.release(block.at, block.bytes);
  }
  // What was small stays, the rest is the system's again, and all is in one part.
  CHECK(arena.reserved() <= 256 * mib / 8);
  void* const whole = arena.allocate(256 * mib - 256 * mib / 8, 64);
  CHECK(whole != nullptr);
  CHECK(arena.reserved() >= 256 * mib - 256 * mib / 8);
  CHECK(arena.allocate(mib, 64) == nullptr);
  CHECK(arena.error() == ENOMEM);
  CHECK(arena.allocate(kib, 64) != nullptr);
  arena.release(whole, 256 * mib - 256 * mib / 8);
  arena.release(nullptr, 5);
}

TEST_CASE("edges: nothing, too much, odd alignments, and small blocks once their part is full") {
  Alone alone(4 * mib);
  Arena& arena = alone.arena;
  void* const first = arena.allocate(0, 1);
  CHECK(first == arena.base());
  void* const second = arena.allocate(0, 64);
  CHECK(second != nullptr);
  CHECK(second != first);
  CHECK(arena.allocate(5 * mib, 64) == nullptr);
  CHECK(arena.allocate(~std::size_t{0}, 64) == nullptr);
  CHECK(arena.allocate(64, 3) == nullptr);
  CHECK(arena.allocate(64, 4 * mib) == nullptr);
  CHECK(arena.allocate(64, 4096, 64) == nullptr);
  // Half of it is for small ones; when that is full, they lie among the large.
  std::vector<void*> blocks;
  while (void* const block = arena.allocate(500 * kib, 64)) {
    std::memset(block, 1, 500 * kib);
    blocks.push_back(block);
  }
  CHECK(blocks.size() >= 7);
  for (void* const block : blocks) arena.release(block, 500 * kib);
  CHECK(arena.allocate(2 * mib, 64) != nullptr);
}

TEST_CASE("reserved memory is there: no space is an answer, and what was before remains") {
  test::Children child(1, [](int, const test::Line&) -> std::string {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", "/dev/shm", "tmpfs", 0, "size=8m") != 0) {
      return "not permitted";
    }
    Alone alone(64 * mib, unnamed_file("/dev/shm"));
    if (!alone.file) return "no file";
    Arena& arena = alone.arena;
    auto* const kept = static_cast<char*>(arena.allocate(5 * mib, 64));
    if (kept == nullptr) return "5 MiB";
    std::memset(kept, 7, 5 * mib);
    if (arena.allocate(4 * mib, 64) != nullptr) return "too much";
    if (arena.error() != ENOSPC) return system_error(arena.error());
    std::vector<char*> little;
    while (auto* const one = static_cast<char*>(arena.allocate(100 * kib, 64))) {
      std::memset(one, 5, 100 * kib);  // would be SIGBUS
      little.push_back(one);
    }
    if (little.size() < 25) return "only " + std::to_string(little.size());
    for (std::size_t k = 0; k < 5 * mib; ++k) {
      if (kept[k] != 7) return "lost";
    }
    arena.release(kept, 5 * mib);
    char* const again = static_cast<char*>(arena.allocate(4 * mib, 64));
    if (again == nullptr) return "4 MiB";
    std::memset(again, 1, 4 * mib);
    Heap heap(arena.source());
    try {
      heap.allocate(4 * mib);
      return "no error";
    } catch (const Error& error) {
      return code_name(error.code());
    }
  });
  const std::string said = child.hear(0);
  if (said == "not permitted") {
    MESSAGE("file systems cannot be mounted here");
    return;
  }
  CHECK(said == "out_of_memory");
}

TEST_CASE("a limit of the size of files is an answer too, and signals that come in between do not matter") {
  test::Children child(1, [](int, const test::Line&) -> std::string {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    sigaction(SIGALRM, &action, nullptr);
    const itimerval often{{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &often, nullptr);
    rlimit limit{40 * mib, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    Alone alone(256 * mib);  // 32 MiB for small blocks
    if (alone.arena.allocate(64 * mib, 64) != nullptr) return "too much";
    if (alone.arena.error() != EFBIG) return system_error(alone.arena.error());
    auto* const some = static_cast<char*>(alone.arena.allocate(7 * mib, 64));
    if (some == nullptr) return "7 MiB";
    std::memset(some, 1, 7 * mib);
    return "fine";
  });
  CHECK(child.hear(0) == "fine");
}

TEST_CASE("several threads allocate and release at the same time") {
  Alone alone(512 * mib);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&, k] {
      std::mt19937 random(static_cast<unsigned>(k));
      for (int step = 0; step < 150; ++step) {
        const std::size_t bytes = 1 + random() % (step % 10 == 0 ? 3 * mib : 200 * kib);
        auto* const at = static_cast<unsigned char*>(alone.arena.allocate(bytes, 64));
        if (at == nullptr) {
          ++wrong;
          continue;
        }
        std::memset(at, k, bytes);
        sched_yield();
        for (std::size_t i = 0; i < bytes; i += 511) wrong += at[i] != k;
        alone.arena.release(at, bytes);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(alone.arena.reserved() <= 64 * mib);
}

TEST_CASE("a heap over an arena") {
  Alone alone(64 * mib);
  {
    Heap heap(alone.arena.source());
    Storage little = heap.allocate(100), large = heap.allocate(3 * mib);
    std::memset(large.data(), 1, 3 * mib);
    CHECK(alone.arena.reserved() >= 3 * mib);
    little = Storage();
    large = Storage();
    heap.trim();
    CHECK(alone.arena.reserved() <= 2 * mib);
  }
}
