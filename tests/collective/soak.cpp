// SPDX-License-Identifier: Apache-2.0
// Many mixed operations on nested and overlapping communicators, results checked, memory watched.
#include <doctest/doctest.h>

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../support/sanitized.hpp"
#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_gather_v.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/all_to_all.hpp"
#include "meshwise/collective/all_to_all_v.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/broadcast_bytes.hpp"
#include "meshwise/collective/gather.hpp"
#include "meshwise/collective/gather_v.hpp"
#include "meshwise/collective/group.hpp"
#include "meshwise/collective/redistribute.hpp"
#include "meshwise/collective/reduce.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/collective/reduce_scatter_v.hpp"
#include "meshwise/collective/scan.hpp"
#include "meshwise/collective/scatter.hpp"
#include "meshwise/collective/scatter_v.hpp"
#include "meshwise/fabric/memory/endpoint.hpp"
#include "meshwise/fabric/shared_memory/job.hpp"
#include "support.hpp"

#ifdef MESHWISE_TEST_SANITIZED
// From sanitizer/allocator_interface.h, which GCC does not install.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#endif

using namespace test;

namespace {

#ifdef MESHWISE_TEST_SANITIZED
constexpr bool sanitized = true;
std::size_t heap_in_use() { return __sanitizer_get_current_allocated_bytes(); }
#else
constexpr bool sanitized = false;
std::size_t heap_in_use() {
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}
#endif

using Item = std::uint32_t;
using Counts = std::vector<std::size_t>;

/// A communicator, and who its ranks are in the world.
struct Circle {
  Communicator communicator;
  std::vector<int> members;
};

/// What a member contributes: linear, so that a sum over members has a short formula.
Item contribution(std::uint64_t step, int member, std::size_t i) {
  return static_cast<Item>(step) * 7919U + static_cast<Item>(member) * 104729U + static_cast<Item>(i) * 31U;
}

/// An operation with its buffers and what they must become.
struct Job {
  std::vector<Item> in;
  std::vector<Item> out;
  std::vector<Item> wanted;
  Counts counts;
  Counts counts2;

  void check(const char* what, std::uint64_t step) const {
    require(out == wanted, std::string(what) + " is wrong in step " + std::to_string(step));
  }
};

/// A started operation.
struct Flight {
  std::shared_ptr<Job> job;
  Pending<std::span<Item>> pending;
  Pending<void> message;
  const char* what = "";
  std::uint64_t step = 0;

  bool test() { return message.pending() ? message.test() : pending.test(); }
  void land() {
    if (message.pending()) {
      message.wait();
    } else {
      pending.wait();
    }
    job->check(what, step);
  }
};

/// One rank's part in the soak. All ranks draw the same numbers, so that they come to the same decisions.
class Soak {
 public:
  Soak(Communicator& world, std::uint64_t seed) : world_(world), draw_(seed) {
    std::vector<int> everybody;
    for (int rank = 0; rank < world.size(); ++rank) everybody.push_back(rank);
    me_ = world.rank();
    circles_.push_back(divide(world, everybody, [](int) { return 0; }));              // the same ranks once more
    circles_.push_back(divide(world, everybody, [](int rank) { return rank / 2; }));  // rows
    circles_.push_back(divide(world, everybody, [](int rank) { return rank % 2; }));  // columns
    circles_.push_back(divide(world, everybody, [](int rank) { return rank / 3; }));  // halves
    circles_.push_back(divide(world, everybody, [&](int rank) { return rank == world.size() - 1 ? 1 : 0; }));
    circles_.push_back(divide(
        world, everybody, [](int) { return 0; }, -1));  // backwards
    everybody_ = std::move(everybody);
  }

  void run(std::uint64_t operations) {
    for (const std::uint64_t end = operations_ + operations; operations_ < end;) {
      const std::uint64_t what = draw_(64);
      if (what == 0) {
        nest();
      } else if (what == 1) {
        renew();
      } else {
        operate(circles_[draw_(circles_.size())], what < 24);
      }
      while (flights_.size() > 5 || (!flights_.empty() && draw_(4) == 0)) land();
      if (!flights_.empty() && draw_(3) == 0) flights_[draw_(flights_.size())].test();
    }
    while (!flights_.empty()) land();
    barrier(world_);
  }

 private:
  template <class Color>
  Circle divide(Communicator& parent, const std::vector<int>& members, const Color& color, int direction = 1) {
    Circle circle;
    const int mine = color(me_);
    circle.communicator = parent.split(mine, direction * parent.rank());
    for (const int member : members) {
      if (color(member) == mine) circle.members.push_back(member);
    }
    if (direction < 0) circle.members.assign(circle.members.rbegin(), circle.members.rend());
    ++operations_;
    return circle;
  }

  void land() {
    flights_.front().land();
    flights_.pop_front();
  }

  /// Splits of splits that come and go.
  void nest() {
    const std::uint64_t cut = 1 + draw_(4);
    Circle outer = divide(world_, everybody_, [&](int rank) { return rank < static_cast<int>(cut) ? 0 : 1; });
    operate(outer, false);
    Circle inner = divide(outer.communicator, outer.members, [](int rank) { return rank % 2; });
    operate(inner, false);
    operate(outer, false);
    operate(inner, false);
    if (draw_(2) == 0) outer = Circle{};  // the inner one outlives it
    operate(inner, false);
  }

  /// Another communicator of the same ranks takes the place of one on which nothing is in flight.
  void renew() {
    while (!flights_.empty()) land();
    Circle& circle = circles_[draw_(circles_.size())];
    Communicator next = circle.communicator.split(0, circle.communicator.rank());
    circle.communicator = std::move(next);
    ++operations_;
  }

  std::size_t draw_size() {
    static constexpr std::size_t choices[] = {0, 1, 2, 3, 5, 8, 17, 33, 64, 100, 250, 1000};
    return draw_(200) == 0 ? 9000 : choices[draw_(std::size(choices))];
  }

  /// One operation, started or blocking.
  void operate(Circle& circle, bool start) {
    ++operations_;
    const std::uint64_t step = operations_;
    const std::uint64_t kind = draw_(19);
    const std::size_t n = draw_size();
    const std::uint64_t luck = draw_(1000);
    Communicator& c = circle.communicator;
    const std::vector<int>& who = circle.members;
    const std::size_t p = who.size();
    const auto r = static_cast<std::size_t>(c.rank());
    const int root = static_cast<int>(luck % p);
    const bool at_root = c.rank() == root;
    const auto job = std::make_shared<Job>();
    std::vector<Item>& in = job->in;
    std::vector<Item>& out = job->out;
    std::vector<Item>& wanted = job->wanted;

    const auto fill = [&](std::vector<Item>& to, std::size_t count) {
      to.resize(count);
      for (std::size_t i = 0; i < count; ++i) to[i] = contribution(step, who[r], i);
    };
    const auto append = [&](std::size_t member, std::size_t first, std::size_t count) {
      for (std::size_t i = first; i < first + count; ++i) wanted.push_back(contribution(step, who[member], i));
    };
    const auto append_sum = [&](std::size_t members, std::size_t first, std::size_t count) {
      for (std::size_t i = first; i < first + count; ++i) {
        Item sum = 0;
        for (std::size_t member = 0; member < members; ++member) sum += contribution(step, who[member], i);
        wanted.push_back(sum);
      }
    };
    const auto begin = [&](std::size_t k) { return begin_of(n, static_cast<int>(p), static_cast<int>(k)); };
    const auto part = [&](std::size_t k) { return begin(k + 1) - begin(k); };
    // Counts that the step decides.
    const auto count_of = [&](std::size_t k) { return (n + 3 * k + luck) % (n / 2 + 2); };
    const auto sum_before = [](const Counts& counts, std::size_t k) {
      std::size_t sum = 0;
      for (std::size_t i = 0; i < k; ++i) sum += counts[i];
      return sum;
    };
    for (std::size_t k = 0; k < p; ++k) job->counts.push_back(count_of(k));
    Counts& counts = job->counts;
    const std::size_t total = sum_before(counts, p);
    const auto fly = [&](const char* what, Pending<std::span<Item>> pending) {
      flights_.push_back(Flight{job, std::move(pending), {}, what, step});
    };
    const auto room = [&](std::size_t count) { out.assign(count, 0x5a5a5a5aU); };

    switch (kind) {
      case 0:
      case 1:
        fill(in, n);
        room(n);
        append_sum(p, 0, n);
        if (start) return fly("all_reduce", start_all_reduce(c, in, out));
        all_reduce(c, in, out);
        break;
      case 2:
        fill(in, n);
        room(part(r));
        append_sum(p, begin(r), part(r));
        if (start) return fly("reduce_scatter", start_reduce_scatter(c, in, out));
        reduce_scatter(c, in, out);
        break;
      case 3:
        fill(in, total);
        room(counts[r]);
        append_sum(p, sum_before(counts, r), counts[r]);
        if (start) return fly("reduce_scatter_v", start_reduce_scatter_v(c, in, out, counts));
        reduce_scatter_v(c, in, out, counts);
        break;
      case 4:
        fill(in, n);
        if (at_root) {
          room(n);
          append_sum(p, 0, n);
        }
        if (start) return fly("reduce", start_reduce(c, in, out, root));
        reduce(c, in, out, root);
        break;
      case 5:
        fill(in, n);
        room(n);
        append_sum(r + 1, 0, n);
        if (start) return fly("inclusive_scan", start_inclusive_scan(c, in, out));
        inclusive_scan(c, in, out);
        break;
      case 6:
        fill(out, n);  // in place
        append_sum(r, 0, n);
        if (start) return fly("exclusive_scan", start_exclusive_scan(c, out));
        exclusive_scan(c, out);
        break;
      case 7:
        fill(in, part(r));
        room(n);
        for (std::size_t k = 0; k < p; ++k) append(k, 0, part(k));
        if (start) return fly("all_gather", start_all_gather(c, in, out));
        all_gather(c, in, out);
        break;
      case 8:
        fill(in, counts[r]);
        room(total);
        for (std::size_t k = 0; k < p; ++k) append(k, 0, counts[k]);
        if (start) return fly("all_gather_v", start_all_gather_v(c, in, out, counts));
        all_gather_v(c, in, out, counts);
        break;
      case 9:
        room(n);
        if (at_root) fill(out, n);
        append(static_cast<std::size_t>(root), 0, n);
        if (start) return fly("broadcast", start_broadcast(c, out, root));
        broadcast(c, out, root);
        break;
      case 10:
        fill(in, n);
        if (at_root) {
          room(n * p);
          for (std::size_t k = 0; k < p; ++k) append(k, 0, n);
        }
        if (start) return fly("gather", start_gather(c, in, out, root));
        gather(c, in, out, root);
        break;
      case 11:
        fill(in, counts[r]);
        if (at_root) {
          room(total);
          for (std::size_t k = 0; k < p; ++k) append(k, 0, counts[k]);
        }
        if (start) return fly("gather_v", start_gather_v(c, in, out, counts, root));
        gather_v(c, in, out, counts, root);
        break;
      case 12:
        if (at_root) fill(in, n * p);
        room(n);
        append(static_cast<std::size_t>(root), n * r, n);
        if (start) return fly("scatter", start_scatter(c, in, out, root));
        scatter(c, in, out, root);
        break;
      case 13:
        if (at_root) fill(in, total);
        room(counts[r]);
        append(static_cast<std::size_t>(root), sum_before(counts, r), counts[r]);
        if (start) return fly("scatter_v", start_scatter_v(c, in, out, counts, root));
        scatter_v(c, in, out, counts, root);
        break;
      case 14:
        fill(in, n * p);
        room(n * p);
        for (std::size_t k = 0; k < p; ++k) append(k, n * r, n);
        if (start) return fly("all_to_all", start_all_to_all(c, in, out));
        all_to_all(c, in, out);
        break;
      case 15:
      case 16: {
        // From s to d go counts[(s + d) % p] elements.
        for (std::size_t peer = 0; peer < p; ++peer) job->counts2.push_back(counts[(r + peer) % p]);
        const Counts& mine = job->counts2;
        fill(in, total);
        room(total);
        for (std::size_t peer = 0; peer < p; ++peer) {
          std::size_t before = 0;
          for (std::size_t to = 0; to < r; ++to) before += counts[(peer + to) % p];
          append(peer, before, mine[peer]);
        }
        if (kind == 15) {
          if (start) return fly("all_to_all_v", start_all_to_all_v(c, in, out, mine, mine));
          all_to_all_v(c, in, out, mine, mine);
          break;
        }
        const int tag = static_cast<int>(step % 2);  // groups in flight that share one get their messages in order
        const auto messages = [&](Group& g) {
          for (std::size_t k = 0; k < p; ++k) {
            const std::size_t peer = (k + luck + r) % p;
            const std::size_t before = sum_before(mine, peer);
            g.receive(std::span(out).subspan(before, mine[peer]), static_cast<int>(peer), tag);
            g.send(std::span(in).subspan(before, mine[peer]), static_cast<int>(peer), tag);
          }
        };
        if (start) {
          flights_.push_back(Flight{job, {}, start_group(c, messages), "group", step});
          return;
        }
        group(c, messages);
        break;
      }
      case 17: {
        for (std::size_t k = 0; k < p; ++k) job->counts2.push_back(counts[(k + 1 + luck) % p]);
        const Counts& after = job->counts2;
        const std::size_t first = sum_before(counts, r);
        for (std::size_t i = 0; i < counts[r]; ++i) in.push_back(contribution(step, 0, first + i));
        room(after[r]);
        for (std::size_t i = 0; i < after[r]; ++i) wanted.push_back(contribution(step, 0, sum_before(after, r) + i));
        if (start) return fly("redistribute", start_redistribute(c, in, out, counts, after));
        redistribute(c, in, out, counts, after);
        break;
      }
      default:
        if (at_root) fill(out, n);
        append(static_cast<std::size_t>(root), 0, n);
        broadcast_bytes(c, out, root);
        barrier(c);
        break;
    }
    job->check("a blocking call", step);
  }

  Communicator& world_;
  Draw draw_;
  int me_ = 0;
  std::uint64_t operations_ = 0;
  std::vector<int> everybody_;
  std::vector<Circle> circles_;
  std::deque<Flight> flights_;
};

/// What groups had that all have left goes now and then, and here.
detail::Job& release_groups(Communicator& world) {
  barrier(world);
  detail::Job& job = dynamic_cast<detail::MemoryEndpoint&>(world.endpoint()).job();
  job.sweep();
  barrier(world);
  return job;
}

void soak(bool messages, std::uint64_t operations) {
  Setup setup;
  setup.messages = messages;
  setup.deadline = 120;
  std::size_t warm = 0;
  std::size_t end = 0;
  launch(6, setup, [&](Communicator& world) {
    Soak part(world, 4711);
    const auto measure = [&](std::size_t& to) {
      release_groups(world);
      if (world.rank() == 0) to = heap_in_use();
      barrier(world);
    };
    part.run(operations / 4);
    measure(warm);
    part.run(operations - operations / 4);
    measure(end);
  });
  // What is remembered is bounded, and not the same at any two times, the less so the earlier; a leak of a few bytes per
  // operation of each rank is more.
  CHECK(end < warm + ((operations < 50000 ? std::size_t{768} : std::size_t{128}) << 10));
  MESSAGE("heap in use after a quarter of " << operations << " operations: " << warm << " bytes, after all: " << end);
}

/// What a process holds: in its heap, in the memory of the job that is its own, and in the machine.
struct Holding {
  std::size_t heap = 0;
  std::size_t arena = 0;
  std::size_t resident = 0;

  static Holding now(Communicator& world) {
    auto& job = dynamic_cast<detail::SharedMemoryJob&>(release_groups(world));
    Holding holding;
    holding.heap = heap_in_use();
    holding.arena = job.space().arena().reserved();
    unsigned long pages[2]{};
    if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
      require(std::fscanf(file, "%lu %lu", &pages[0], &pages[1]) == 2, "statm is unreadable");
      std::fclose(file);
    }
    holding.resident = pages[1] * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return holding;
  }
};

/// The same mixture where ranks are processes.
void soak_processes(int ranks, const Setup& setup, std::uint64_t operations) {
  struct Board {
    Holding warm[16], end[16];
  };
  void* const memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto* const board = new (memory) Board;
  launch_forks(ranks, setup, [&](Communicator& world) {
    Soak part(world, 4711);
    const auto me = static_cast<std::size_t>(world.rank());
    part.run(operations / 4);
    board->warm[me] = Holding::now(world);
    part.run(operations - operations / 4);
    board->end[me] = Holding::now(world);
  });
  std::size_t heap = 0, arena = 0, resident = 0;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
    const auto growth = [](std::size_t before, std::size_t after) { return after > before ? after - before : 0; };
    const Holding& warm = board->warm[rank];
    const Holding& end = board->end[rank];
    heap = std::max(heap, growth(warm.heap, end.heap));
    arena = std::max(arena, growth(warm.arena, end.arena));
    resident = std::max(resident, growth(warm.resident, end.resident));
  }
  MESSAGE("after a quarter of " << operations << " operations of " << ranks << " processes: " << board->warm[0].heap
                                << " bytes in the heap, " << board->warm[0].arena << " in the arena, "
                                << board->warm[0].resident << " resident; the most that one of them has grown since: "
                                << heap << ", " << arena << ", " << resident);
  // A leak of a few bytes per operation is more, where these are many. Where they are few, groups have not yet been
  // everywhere in the arena that they come to.
  CHECK(heap < std::size_t{384} << 10);
  CHECK(arena < (operations < 50000 ? std::size_t{16} : std::size_t{2}) << 20);
  CHECK((sanitized || resident < (operations < 50000 ? std::size_t{32} : std::size_t{4}) << 20));
  munmap(memory, sizeof(Board));
}

std::uint64_t number_of_operations() { return full() ? 100000 : sanitized ? 3000 : 40000; }

}  // namespace

TEST_CASE("many mixed operations on overlapping communicators, by memory") { soak(false, number_of_operations()); }

TEST_CASE("many mixed operations of processes") {
  for (const bool messages : both) {
    Setup setup;
    setup.messages = messages;
    setup.deadline = 120;
    soak_processes(4, setup, full() ? 100000 : sanitized ? 600 : 6000);
  }
}

TEST_CASE("many mixed operations while progress threads go on with them") {
  for (const bool messages : both) {
    Setup setup;
    setup.messages = messages;
    setup.deadline = 120;
    setup.progress_thread = true;
    const std::uint64_t operations = full() ? 50000 : sanitized ? 400 : 2500;
    launch(6, setup, [&](Communicator& world) { Soak(world, 4712).run(operations); });
    soak_processes(4, setup, operations);
  }
}

TEST_CASE("mixed operations of many more ranks than cores") {
  for (const bool messages : both) {
    Setup setup;
    setup.messages = messages;
    setup.deadline = 120;
    const std::uint64_t operations = full() ? 5000 : sanitized ? 60 : 400;
    launch(16, setup, [&](Communicator& world) { Soak(world, 4713).run(operations); });
    soak_processes(16, setup, operations);
  }
}

TEST_CASE("many mixed operations on overlapping communicators, by messages") {
  soak(true, sanitized && !full() ? number_of_operations() / 2 : number_of_operations());
}
