// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/registration.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ranks.hpp"

namespace {

using namespace meshwise;
using namespace meshwise::detail;

constexpr std::size_t mib = std::size_t{1} << 20;

/// A job of one rank, this process.
struct OneRank {
  Segments::Descriptors all = Segments::create(1).release();
  Space space{0, 1, all.control, all.arenas, 5};
  Registrations registrations{space};
};

/// Pages of this process, which may begin anywhere in a huge page.
class Pages {
 public:
  explicit Pages(std::size_t bytes, int access = PROT_READ | PROT_WRITE, int flags = MAP_PRIVATE | MAP_ANONYMOUS)
      : pages_(mmap(nullptr, bytes, access, flags, -1, 0), bytes) {
    REQUIRE(pages_.begin() != MAP_FAILED);
  }
  unsigned char* data() const { return static_cast<unsigned char*>(pages_.begin()); }

 private:
  MappedPages pages_;
};

unsigned char mark(std::size_t k, unsigned seed) {
  return static_cast<unsigned char>((k + 1000 * seed) * std::size_t{0x9e3779b97f4a7c15} >> 56);
}

void fill(unsigned char* data, std::size_t bytes, unsigned seed) {
  for (std::size_t k = 0; k < bytes; ++k) data[k] = mark(k, seed);
}

bool holds(const unsigned char* data, std::size_t bytes, unsigned seed) {
  for (std::size_t k = 0; k < bytes; ++k) {
    if (data[k] != mark(k, seed)) return false;
  }
  return true;
}

std::string refusal(Registrations& registrations, void* data, std::size_t bytes, Code expected) {
  try {
    registrations.add(data, bytes);
  } catch (const Error& error) {
    CHECK(error.code() == expected);
    return error.what();
  }
  return "registered";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a registered buffer is the same memory at both addresses, and keeps its contents there and back") {
  OneRank job;
  const std::size_t before = job.space.arena().reserved();
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{5000}, 64 * 1024 + std::size_t{8}, mib - 1, 3 * mib, 9 * mib + 12345}) {
    std::vector<unsigned char> buffer(bytes);
    fill(buffer.data(), bytes, 1);
    job.registrations.add(buffer.data(), bytes);
    CHECK(job.registrations.size() == 1);
    CHECK(holds(buffer.data(), bytes, 1));
    auto* const alias = static_cast<unsigned char*>(const_cast<void*>(job.registrations.alias(buffer.data(), bytes)));
    REQUIRE(alias != nullptr);
    CHECK(job.space.addressable(alias, bytes));
    CHECK(holds(alias, bytes, 1));
    fill(buffer.data(), bytes, 2);
    CHECK(holds(alias, bytes, 2));
    fill(alias, bytes, 3);
    CHECK(holds(buffer.data(), bytes, 3));

    CHECK(job.registrations.remove(buffer.data()));
    CHECK(job.registrations.size() == 0);
    CHECK(job.registrations.alias(buffer.data(), 1) == nullptr);
    CHECK(holds(buffer.data(), bytes, 3));
    fill(buffer.data(), bytes, 4);
    CHECK(holds(buffer.data(), bytes, 4));
    CHECK_FALSE(job.registrations.remove(buffer.data()));
  }
  CHECK(job.space.arena().reserved() <= before + 2 * mib);
}

TEST_CASE("what lies beside a buffer in its pages keeps its contents too") {
  OneRank job;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const Pages pages(5 * page);
  fill(pages.data(), 5 * page, 5);
  job.registrations.add(pages.data() + page + 10, 2 * page);  // pages 1 to 3
  CHECK(holds(pages.data(), 5 * page, 5));
  fill(pages.data(), 5 * page, 6);
  CHECK(job.registrations.remove(pages.data() + page + 10));
  CHECK(holds(pages.data(), 5 * page, 6));
}

TEST_CASE("the aliases of parts of many buffers") {
  OneRank job;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  constexpr std::size_t count = 40;
  const Pages pages(3 * count * page);
  CHECK(job.registrations.alias(pages.data(), 1) == nullptr);
  std::mt19937 random(1);
  std::vector<std::size_t> order(count);
  for (std::size_t k = 0; k < count; ++k) order[k] = k;
  std::shuffle(order.begin(), order.end(), random);
  const auto begin = [&](std::size_t k) { return pages.data() + 3 * k * page + 8 * k; };
  const std::size_t bytes = page + 100;
  for (const std::size_t k : order) job.registrations.add(begin(k), bytes);
  CHECK(job.registrations.size() == count);
  for (int tries = 0; tries < 2000; ++tries) {
    const std::size_t k = random() % count, at = random() % (bytes + 1), some = random() % (bytes + 1 - at);
    begin(k)[at < bytes ? at : 0] = static_cast<unsigned char>(tries);
    const auto* const alias = static_cast<const unsigned char*>(job.registrations.alias(begin(k) + at, some));
    REQUIRE(alias != nullptr);
    if (some != 0) REQUIRE(*alias == static_cast<unsigned char>(tries));
    REQUIRE(job.registrations.alias(begin(k) + at, bytes - at + 1) == nullptr);
    REQUIRE(job.registrations.alias(begin(k) - 1, 1) == nullptr);
    REQUIRE(job.registrations.alias(begin(k) + at, ~std::size_t{0}) == nullptr);
  }
  for (std::size_t k = 0; k < count; k += 2) CHECK(job.registrations.remove(begin(order[k])));
  for (std::size_t k = 0; k < count; ++k) {
    CHECK((job.registrations.alias(begin(order[k]), bytes) != nullptr) == (k % 2 == 1));
  }
}

TEST_CASE("buffers with nothing to do are registered and deregistered as others are") {
  OneRank job;
  int one = 0;
  void* const inside = job.space.arena().allocate(100, 64);
  for (void* const data : {static_cast<void*>(nullptr), static_cast<void*>(&one)}) {
    job.registrations.add(data, 0);
    CHECK(job.registrations.remove(data));
    CHECK_FALSE(job.registrations.remove(data));
  }
  job.registrations.add(inside, 100);
  CHECK(job.registrations.size() == 0);
  CHECK(job.registrations.remove(inside));
  CHECK_FALSE(job.registrations.remove(&one));
}

TEST_CASE("what cannot be exchanged is refused, with what it is") {
  OneRank job;
  Registrations& registrations = job.registrations;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  CHECK(contains(refusal(registrations, nullptr, 10, Code::invalid_argument), "found null with 10 bytes"));

  volatile char local[100] = {};
  CHECK(
      contains(refusal(registrations, const_cast<char*>(local), 100, Code::invalid_argument), "stack of this thread"));
  std::string other;
  std::thread([&] {
    volatile char mine[100] = {};
    other = refusal(registrations, const_cast<char*>(mine), 100, Code::invalid_argument);
    CHECK(contains(refusal(registrations, const_cast<char*>(local), 100, Code::invalid_argument), "the main thread"));
  }).join();
  CHECK(contains(other, "on the stack of this thread"));

  const Pages constant(page, PROT_READ), shared(page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
  CHECK(contains(refusal(registrations, constant.data(), page, Code::invalid_argument), "is r--p"));
  CHECK(contains(refusal(registrations, shared.data(), page, Code::invalid_argument), "is rw-s"));

  const Pages gap(3 * page);
  munmap(gap.data() + page, page);
  CHECK(contains(refusal(registrations, gap.data(), 3 * page, Code::invalid_argument), "of which every page exists"));
  gap.data()[0] = 1;
  const auto huge = reinterpret_cast<std::uintptr_t>(gap.data());
  CHECK(contains(refusal(registrations, gap.data(), ~std::size_t{0} - huge + 2, Code::invalid_argument),
                 "past the last"));
  CHECK(refusal(registrations, gap.data(), std::size_t{1} << 45, Code::invalid_argument) != "registered");
  CHECK(registrations.size() == 0);
}

TEST_CASE("what is registered cannot be registered again, in whole or in part") {
  OneRank job;
  Registrations& registrations = job.registrations;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const Pages pages(8 * page);
  registrations.add(pages.data() + 2 * page + 100, 2 * page);  // 2, 3 and 4
  for (const std::size_t k : {0u, 2u, 3u, 4u}) {
    const std::string text = refusal(registrations, pages.data() + k * page + 50, 3 * page, Code::invalid_argument);
    CHECK_MESSAGE(contains(text, "part of which is"), text);
    CHECK_MESSAGE(contains(text, "deregister buffers before"), text);
  }
  registrations.add(pages.data() + 5 * page, 3 * page);
  registrations.add(pages.data(), 2 * page);
  CHECK(registrations.size() == 3);
}

TEST_CASE("buffers that share pages, registered and deregistered in any order") {
  OneRank job;
  Registrations& registrations = job.registrations;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t before = job.space.arena().reserved();
  std::mt19937 random(3);
  for (int round = 0; round < 30; ++round) {
    // Everything is taken, by buffers from a few bytes to many pages, some of which stay unregistered.
    const std::size_t total = (round % 10 == 9 ? 1500 : 12) * page;
    const Pages pages(total);
    fill(pages.data(), total, 20);
    struct Buffer {
      std::size_t begin, bytes;
      bool registered = false;
    };
    std::vector<Buffer> buffers;
    for (std::size_t at = 0; at < total;) {
      std::size_t bytes = 1 + random() % (random() % 3 == 0 ? total / 2 : 2 * page);
      if (bytes > total - at) bytes = total - at;
      buffers.push_back({at, bytes});
      at += bytes;
    }
    std::size_t registered = 0;
    for (int step = 0; step < 60; ++step) {
      Buffer& one = buffers[random() % buffers.size()];
      unsigned char* const data = pages.data() + one.begin;
      if (one.registered) {
        REQUIRE(registrations.remove(data));
        --registered;
      } else {
        registrations.add(data, one.bytes);
        ++registered;
      }
      one.registered = !one.registered;
      REQUIRE(registrations.size() == registered);
      REQUIRE(holds(pages.data(), total, 20));
      for (const Buffer& each : buffers) {
        auto* const alias =
            static_cast<unsigned char*>(const_cast<void*>(registrations.alias(pages.data() + each.begin, each.bytes)));
        REQUIRE((alias != nullptr) == each.registered);
        if (alias == nullptr) continue;
        REQUIRE(job.space.addressable(alias, each.bytes));
        const std::size_t k = random() % each.bytes;
        REQUIRE(alias[k] == mark(each.begin + k, 20));
        alias[k] = 77;
        REQUIRE(pages.data()[each.begin + k] == 77);
        pages.data()[each.begin + k] = mark(each.begin + k, 20);
        REQUIRE(alias[k] == mark(each.begin + k, 20));
      }
    }
    for (const Buffer& each : buffers) {
      if (each.registered) REQUIRE(registrations.remove(pages.data() + each.begin));
    }
    CHECK(registrations.size() == 0);
    CHECK(holds(pages.data(), total, 20));
    const auto at = reinterpret_cast<std::uintptr_t>(pages.data());
    for (const auto& range : address_ranges(system_text("/proc/self/maps"), at, at + total))
      CHECK(range.access == "rw-p");
  }
  CHECK(job.space.arena().reserved() <= before + 12 * mib);
}

TEST_CASE("small vectors lie in the same pages, and are registered all the same") {
  OneRank job;
  Registrations& registrations = job.registrations;
  std::vector<std::vector<unsigned char>> vectors;
  for (std::size_t k = 0; k < 20; ++k) {
    vectors.emplace_back(40 + 3000 * k);
    fill(vectors.back().data(), vectors.back().size(), static_cast<unsigned>(k));
  }
  for (auto& one : vectors) registrations.add(one.data(), one.size());
  CHECK(registrations.size() == 20);
  for (unsigned k = 0; k < 20; ++k) {
    const auto* const alias =
        static_cast<const unsigned char*>(registrations.alias(vectors[k].data(), vectors[k].size()));
    REQUIRE(alias != nullptr);
    CHECK(holds(alias, vectors[k].size(), k));
    CHECK(holds(vectors[k].data(), vectors[k].size(), k));
  }
  for (std::size_t k = 0; k < 20; ++k) CHECK(registrations.remove(vectors[k * 7 % 20].data()));
  CHECK(registrations.size() == 0);
  for (unsigned k = 0; k < 20; ++k) CHECK(holds(vectors[k].data(), vectors[k].size(), k));
}

TEST_CASE("beside a buffer that was unmapped while it was registered nothing is registered") {
  OneRank job;
  Registrations& registrations = job.registrations;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const Pages pages(6 * page);
  fill(pages.data(), 6 * page, 21);
  registrations.add(pages.data(), 3 * page + 100);
  munmap(pages.data() + page, page);
  const std::string text = refusal(registrations, pages.data() + 3 * page + 200, 2 * page, Code::invalid_argument);
  CHECK_MESSAGE(contains(text, "part of which has been unmapped"), text);
  registrations.add(pages.data() + 3 * page + 200, 300);  // in a page that is there
  CHECK(registrations.size() == 2);
  CHECK(registrations.remove(pages.data()));
  CHECK(registrations.remove(pages.data() + 3 * page + 200));
  CHECK(holds(pages.data(), page, 21));
  registrations.add(pages.data() + 3 * page + 200, 2 * page);
  CHECK(registrations.size() == 1);
}

TEST_CASE("no memory: the buffers stay as they were") {
  test::Children child(1, [](int, const test::Line&) -> std::string {
    OneRank job;
    rlimit limit{256 * mib, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);  // the part for large blocks begins behind it
    const Pages pages(4 * mib);
    fill(pages.data(), 4 * mib, 7);
    job.registrations.add(pages.data() + 4 * mib - 100, 100);
    const std::string text = refusal(job.registrations, pages.data(), 4 * mib - 100, Code::out_of_memory);
    if (!holds(pages.data(), 4 * mib, 7)) return "lost";
    fill(pages.data(), 4 * mib, 8);
    if (job.registrations.size() != 1 || job.registrations.alias(pages.data(), 1) != nullptr) return "kept";
    const auto* const alias =
        static_cast<unsigned char*>(const_cast<void*>(job.registrations.alias(pages.data() + 4 * mib - 100, 100)));
    if (alias == nullptr || std::memcmp(alias, pages.data() + 4 * mib - 100, 100) != 0) return "other memory";
    return text;
  });
  const std::string text = child.hear(0);
  CHECK_MESSAGE(contains(text, "4194204 bytes at 0x"), text);
  CHECK_MESSAGE(contains(text, "no memory for its pages: File too large"), text);
}

TEST_CASE("where the system cannot be asked what lies at addresses, buffers stay as they are") {
  test::Children child(1, [](int, const test::Line&) -> std::string {
    OneRank job;
    const Pages pages(4 * mib), more(4096);
    fill(pages.data(), 4 * mib, 7);
    job.registrations.add(pages.data(), 4 * mib);
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 3;  // no descriptor can be had
    setrlimit(RLIMIT_NOFILE, &limit);
    std::string text = refusal(job.registrations, more.data(), 100, Code::out_of_memory) + "\n";
    try {
      job.registrations.remove(pages.data());
    } catch (const Error& error) {
      text += error.what();
    }
    const auto* const alias = static_cast<const unsigned char*>(job.registrations.alias(pages.data(), 4 * mib));
    if (alias == nullptr || !holds(pages.data(), 4 * mib, 7) || !holds(alias, 4 * mib, 7)) return "lost";
    limit.rlim_cur = 100;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (!job.registrations.remove(pages.data()) || !holds(pages.data(), 4 * mib, 7)) return "not deregistered";
    return text;
  });
  const std::string text = child.hear(0);
  CHECK_MESSAGE(contains(text, "registering a buffer: what lies at its addresses could not be read"), text);
  CHECK_MESSAGE(contains(text, "deregistering a buffer: what lies at its addresses could not be read"), text);
}

TEST_CASE("a forked child that unwinds takes nothing from its parent") {
  OneRank job;
  const Pages pages(4 * mib);
  fill(pages.data(), 4 * mib, 14);
  void* const block = job.space.arena().allocate(4 * mib, 64);
  REQUIRE(block != nullptr);
  fill(static_cast<unsigned char*>(block), 4 * mib, 15);
  job.registrations.add(pages.data(), 4 * mib);
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = job.space.arena().allocate(100, 64) == nullptr;
    job.space.arena().release(block, 4 * mib);
    const bool removed = job.registrations.remove(pages.data()) && holds(pages.data(), 4 * mib, 14);
    std::memset(pages.data(), 0, 4 * mib);  // its own by now
    _exit(refused && removed ? 0 : 1);
  }
  int status = -1;
  while (waitpid(child, &status, 0) < 0) {}
  CHECK(status == 0);
  CHECK(holds(static_cast<unsigned char*>(block), 4 * mib, 15));
  CHECK(holds(pages.data(), 4 * mib, 14));
  CHECK(holds(static_cast<const unsigned char*>(job.registrations.alias(pages.data(), 4 * mib)), 4 * mib, 14));
}

TEST_CASE("the end of the registrations gives every buffer pages of its own") {
  const Pages pages(6 * mib);
  fill(pages.data(), 6 * mib, 9);
  {
    OneRank job;
    job.registrations.add(pages.data(), 2 * mib);
    job.registrations.add(pages.data() + 3 * mib, 3 * mib - 10);
    job.registrations.add(pages.data() + 6 * mib - 10, 10);
    fill(pages.data(), 6 * mib, 10);
  }
  CHECK(holds(pages.data(), 6 * mib, 10));
  const auto at = reinterpret_cast<std::uintptr_t>(pages.data());
  for (const auto& range : address_ranges(system_text("/proc/self/maps"), at, at + 6 * mib))
    CHECK(range.access == "rw-p");
  fill(pages.data(), 6 * mib, 11);
}

TEST_CASE("a buffer that is freed first: others may have its addresses, and the books are set right") {
  OneRank job;
  Registrations& registrations = job.registrations;
  const std::size_t before = job.space.arena().reserved();
  {
    const Pages pages(4 * mib);
    registrations.add(pages.data(), 4 * mib);
    munmap(pages.data(), 4 * mib);
    // Something else has come there.
    void* const at = pages.data();
    REQUIRE(mmap(at, 4 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    fill(pages.data(), 4 * mib, 12);
    CHECK(registrations.remove(at));
    CHECK(holds(pages.data(), 4 * mib, 12));
    CHECK(job.space.arena().reserved() <= before + mib);

    registrations.add(at, 4 * mib);
    munmap(at, 2 * mib);  // one half only
    REQUIRE(mmap(at, 2 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    std::memset(pages.data(), 1, 4 * mib);
    CHECK(registrations.remove(at));
    CHECK(pages.data()[0] == 1);
    CHECK(pages.data()[4 * mib - 1] == 1);

    registrations.add(at, 4 * mib);
    REQUIRE(mmap(at, 4 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    registrations.add(at, mib);  // the one before is forgotten
    CHECK(registrations.size() == 1);
    CHECK(registrations.alias(at, 4 * mib) == nullptr);
    CHECK(registrations.alias(at, mib) != nullptr);
  }
  CHECK(job.space.arena().reserved() <= before + 2 * mib);
}

TEST_CASE("memory of the C library may be freed while it is registered") {
  OneRank job;
  Registrations& registrations = job.registrations;
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t bytes : {std::size_t{3000}, 100'000 + std::size_t{5}, 5 * mib}) {
      auto* const data = static_cast<unsigned char*>(std::malloc(bytes));
      fill(data, bytes, 13);
      registrations.add(data, bytes);
      const volatile std::uintptr_t at = reinterpret_cast<std::uintptr_t>(data);
      std::free(data);
      CHECK(registrations.remove(reinterpret_cast<const void*>(at)));
      // What was registered works as ordinary memory.
      std::vector<std::unique_ptr<unsigned char[]>> blocks;
      for (std::size_t k = 1; k < 40; ++k) {
        blocks.push_back(std::make_unique<unsigned char[]>(1000 * k));
        REQUIRE(std::count(blocks.back().get(), blocks.back().get() + 1000 * k, 0) == static_cast<long>(1000 * k));
        fill(blocks.back().get(), 1000 * k, static_cast<unsigned>(k));
      }
      for (std::size_t k = 1; k < 40; ++k) CHECK(holds(blocks[k - 1].get(), 1000 * k, static_cast<unsigned>(k)));
    }
  }
  CHECK(registrations.size() == 0);
}

TEST_CASE("other processes read and write a registered buffer at its alias") {
  Segments segments = Segments::create(2);
  test::Ranks children(segments, [](Space& space, const test::Line& line) -> std::string {
    Registrations registrations(space);
    std::vector<int> buffer(100'000, space.rank() + 1);
    registrations.add(buffer.data(), buffer.size() * sizeof(int));
    line.say(std::to_string(
        reinterpret_cast<std::uintptr_t>(registrations.alias(buffer.data(), buffer.size() * sizeof(int)))));
    auto* const theirs = reinterpret_cast<int*>(std::strtoull(line.hear().c_str(), nullptr, 10));
    for (std::size_t k = 0; k < buffer.size(); ++k) {
      if (theirs[k] != 2 - space.rank()) return "not seen";
    }
    line.say("seen");
    line.hear();
    for (std::size_t k = 0; k < buffer.size(); ++k) theirs[k] = 10 * space.rank();
    line.say("written");
    line.hear();
    registrations.remove(buffer.data());
    for (const int value : buffer) {
      if (value != 10 - 10 * space.rank()) return "not written";
    }
    line.say("equal");
    return line.hear();
  });
  const std::string addresses[] = {children.hear(0), children.hear(1)};
  for (int k = 0; k < 2; ++k) children.say(k, addresses[1 - k]);
  for (const char* const expected : {"seen", "written", "equal", "next"}) {
    for (int k = 0; k < 2; ++k) CHECK(children.hear(k) == expected);
    for (int k = 0; k < 2; ++k) children.say(k, "next");
  }
}
