// SPDX-License-Identifier: Apache-2.0
// Ranks in processes that die or fall silent in the middle of something, and the others, who go on.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/bootstrap/launch_processes.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/pending.hpp"
#include "meshwise/collective/send_receive.hpp"
#include "meshwise/fabric/memory/endpoint.hpp"

using namespace meshwise;

namespace {

/// What the ranks of a job have to say, in memory that forks share.
class Notes {
 public:
  struct Note {
    std::atomic<int> stage{0};
    std::atomic<int> pid{0};
    char text[16384];
  };

  Notes() {
    void* const memory = mmap(nullptr, sizeof(Note) * ranks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    notes_ = static_cast<Note*>(memory);
    for (int rank = 0; rank < ranks; ++rank) new (notes_ + rank) Note;
  }
  Notes(const Notes&) = delete;
  Notes& operator=(const Notes&) = delete;
  ~Notes() { munmap(notes_, sizeof(Note) * ranks); }

  Note& of(int rank) const { return notes_[rank]; }
  void add(int rank, const std::string& text) const {
    char* const to = of(rank).text;
    const std::size_t used = std::strlen(to), room = sizeof(Note::text) - used - 1;
    std::memcpy(to + used, text.data(), text.size() < room ? text.size() : room);
  }
  bool says(int rank, const std::string& text) const {
    return std::string(of(rank).text).find(text) != std::string::npos;
  }
  void await(int rank, int stage) const {
    while (of(rank).stage.load() < stage) usleep(1000);
  }

 private:
  static constexpr int ranks = 8;
  Note* notes_;
};

/// A signal that a rank sends itself when it comes to a step of an operation.
struct Fate {
  int signal = 0;
  std::uint64_t sequence = 0;
  std::uint64_t step = 0;

  static void call(void* context, std::uint64_t sequence, std::uint64_t step) {
    auto& fate = *static_cast<Fate*>(context);
    if (fate.signal == 0 || sequence != fate.sequence || step != fate.step) return;
    const int signal = std::exchange(fate.signal, 0);
    raise(signal);
  }
};

LaunchOptions options(double deadline, LogLevel log = LogLevel::off) {
  LaunchOptions made;
  made.deadline = deadline;
  made.settings = Settings{};
  made.settings->log = log;
  return made;
}

ProcessOptions patient() {
  ProcessOptions made;
  made.deadline = 30;
  made.grace = 30;
  return made;
}

/// What is thrown by a launch; empty if nothing.
template <class Program>
std::string launched(int ranks, const LaunchOptions& launching, Program program) {
  try {
    launch_processes(ranks, launching, program, patient());
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

detail::Job& job_of(Communicator& world) { return static_cast<detail::MemoryEndpoint&>(world.endpoint()).job(); }

/// A sum over a vector in memory that all ranks address; whether it is right.
bool add_up(Communicator& world, std::size_t count, const CollectiveOptions& how = {}) {
  detail::Job& job = job_of(world);
  const auto release = [&job](int* memory) { job.release(memory); };
  const std::unique_ptr<int, decltype(release)> memory(static_cast<int*>(job.allocate(count * sizeof(int))), release);
  const std::span<int> data(memory.get(), count);
  for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<int>(i) + world.rank();
  all_reduce(world, data, how);
  const int ranks = world.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (data[i] != static_cast<int>(i) * ranks + ranks * (ranks - 1) / 2) return false;
  }
  return true;
}

CollectiveOptions ring() {
  CollectiveOptions made;
  made.algorithm = Algorithm::ring;
  return made;
}

}  // namespace

TEST_CASE("who has called shrink is given time, whatever the time of grace is") {
  const Notes notes;
  ProcessOptions hasty = patient();
  hasty.grace = 0.3;
  hasty.kill_after = 0.1;
  std::string thrown;
  try {
    launch_processes(
        4, options(20),
        [&](Communicator& world) {
          const int me = world.rank();
          for (int life = 0; life < 2; ++life) {
            try {
              for (int k = 0;; ++k) {
                if (k == 10 && world.rank() == 1) raise(SIGKILL);
                add_up(world, 3);
              }
            } catch (const Error&) {
              world = world.shrink();
            }
            usleep(600'000);  // longer than the time of grace
          }
          if (add_up(world, 1000) && world.size() == 2) notes.of(me).stage.store(1);
        },
        hasty);
  } catch (const Error& error) {
    thrown = error.what();
  }
  CHECK_MESSAGE(thrown.find("was killed by signal 9") != std::string::npos, thrown);
  CHECK(notes.of(0).stage.load() == 1);
  CHECK(notes.of(3).stage.load() == 1);
}

TEST_CASE("whoever dies, the others learn how, and go on without it") {
  constexpr int ranks = 3;
  for (int victim = 0; victim < ranks; ++victim) {
    for (const std::uint64_t step : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, detail::last_step}) {
      const Notes notes;
      const std::string thrown = launched(ranks, options(20), [&](Communicator& world) {
        const int me = world.rank();
        add_up(world, 3);
        Fate fate{SIGKILL, 2, step};
        if (me == victim) job_of(world).hook() = {Fate::call, &fate};
        try {
          for (int k = 0; k < 3; ++k) add_up(world, 5000, ring());
        } catch (const Error& error) {
          notes.add(me, error.what());
          if (error.code() == Code::peer_left) notes.add(me, "; left");
        }
        world = world.shrink();
        bool right = world.size() == ranks - 1 && world.generation() == 1;
        for (int k = 0; k < 20; ++k) right = right && add_up(world, k % 2 == 0 ? 3 : 5000, ring());
        if (right) notes.of(me).stage = 1;
      });
      INFO("rank " << victim << " dies at step " << step);
      CHECK(thrown.find("rank " + std::to_string(victim)) != std::string::npos);
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank == victim) continue;
        INFO("rank " << rank << ": " << notes.of(rank).text);
        CHECK(notes.of(rank).stage == 1);
        // The first of them that notices says how; the other one may have gone on to shrink because of it.
        CHECK(notes.says(rank, "rank " + std::to_string(victim) + " to take part in all_reduce"));
        CHECK(notes.says(rank, "its process was killed by signal 9"));
      }
    }
  }
}

TEST_CASE("a rank that is stopped is left behind, and when it goes on it disturbs nobody") {
  constexpr int ranks = 3;
  for (const std::uint64_t step : {std::uint64_t{1}, std::uint64_t{3}}) {
    for (int victim = 0; victim < ranks; ++victim) {
      const Notes notes;
      const std::string thrown = launched(ranks, options(20), [&](Communicator& world) {
        const int me = world.rank();
        notes.of(me).pid = static_cast<int>(getpid());
        add_up(world, 3);
        Fate fate{SIGSTOP, 2, step};
        if (me == victim) job_of(world).hook() = {Fate::call, &fate};
        if (me != victim) world.set_deadline(0.1);
        try {
          for (int k = 0; k < 3; ++k) add_up(world, 5000, ring());
        } catch (const Error& error) {
          notes.add(me, error.what());
        }
        if (me == victim) {
          for (int k = 0; k < 3; ++k) {
            try {
              add_up(world, k == 1 ? 3 : 5000);
              notes.add(me, "; no error");
            } catch (const Error&) {}
          }
          try {
            const Communicator next = world.shrink();
            notes.add(me, "; no error");
          } catch (const Error& error) {
            notes.add(me, error.what());
          }
          notes.of(me).stage = 1;
          return;
        }
        world = world.shrink(0.5);
        world.set_deadline(20);
        bool right = world.size() == ranks - 1;
        if (world.rank() == 0) kill(notes.of(victim).pid.load(), SIGCONT);
        for (int over = 0; over == 0;) {
          for (int k = 0; k < 20; ++k) right = right && add_up(world, k % 2 == 0 ? 3 : 5000, ring());
          over = notes.of(victim).stage.load();
          all_reduce<Min>(world, std::span(&over, 1));
        }
        if (right) notes.of(me).stage = 1;
      });
      INFO("rank " << victim << " is stopped at step " << step << ": " << thrown);
      for (int rank = 0; rank < ranks; ++rank) {
        INFO("rank " << rank << ": " << notes.of(rank).text);
        CHECK(notes.of(rank).stage == 1);
        CHECK(notes.says(rank, "within 0.1"));
        CHECK(notes.says(rank, "for rank " + std::to_string(victim)));  // in a ring perhaps by way of another one
        CHECK(notes.says(rank, "is not part of the new generation") == (rank == victim));
        CHECK(!notes.says(rank, "no error"));
      }
    }
  }
}

TEST_CASE("operations in flight on many groups end when a rank of them is killed, and so do their communicators") {
  constexpr int ranks = 3;
  for (const bool messages : {false, true}) {
    for (int victim = 0; victim < ranks; ++victim) {
      const Notes notes;
      LaunchOptions launching = options(600);
      launching.messages = messages;
      const std::string thrown = launched(ranks, launching, [&](Communicator& world) {
        const int me = world.rank();
        std::vector<Communicator> groups;
        for (int k = 0; k < 4; ++k) groups.push_back(world.split(0, k % 2 == 0 ? me : -me));
        groups.push_back(world.split(me == 2 ? 1 : 0));
        groups.push_back(world.split(me == 0 ? 1 : 0));
        try {
          std::vector<std::vector<int>> data;
          for (std::size_t k = 0; k < 3 * groups.size(); ++k) data.emplace_back(k % 3 == 0 ? 3 : 30000, 1);
          std::vector<char> large(1 << 20, 'x');
          std::vector<Pending<std::span<int>>> pending;
          for (std::size_t k = 0; k < data.size(); ++k) {
            if (me == victim && k == data.size() / 2) raise(SIGKILL);
            pending.push_back(start_all_reduce(groups[k % groups.size()], std::span(data[k])));
          }
          const auto sending = world.endpoint().post_send("send", victim, 1, large.data(), large.size(), -1);
          if ((me + 1) % ranks == victim) {
            world.endpoint().receive("receive", victim, 1, large.data(), large.size(), -1);
          }
        } catch (const Error& error) {
          notes.add(me, error.what());
        }
        notes.add(me, world.flight_record());
        groups.clear();
        world = world.shrink();
        if (world.size() == ranks - 1 && add_up(world, 5000)) notes.of(me).stage = 1;
      });
      INFO("rank " << victim << " dies: " << thrown);
      CHECK(thrown.find("rank " + std::to_string(victim)) != std::string::npos);
      CHECK(thrown.find("within") == std::string::npos);
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank == victim) continue;
        INFO("rank " << rank << ": " << notes.of(rank).text);
        CHECK(notes.of(rank).stage == 1);
        CHECK(notes.says(rank, "rank " + std::to_string(victim) + ": its process was killed by signal 9; "));
      }
    }
  }
}

TEST_CASE("a leader that dies or falls silent while the others wait for a new generation is replaced") {
  constexpr int ranks = 4;
  for (const bool dies : {true, false}) {
    const Notes notes;
    const std::string thrown = launched(ranks, options(20), [&](Communicator& world) {
      const int me = world.rank();
      add_up(world, 3);
      notes.of(me).pid = static_cast<int>(getpid());
      // A rank that shrinks ends the calls that others are still in.
      for (int rank = 0; rank < ranks; ++rank) {
        while (notes.of(rank).pid == 0) usleep(100);
      }
      if (me == 0) {
        signal(
            SIGALRM, dies ? SIG_DFL : [](int) { raise(SIGSTOP); });
        const itimerval soon{{0, 0}, {0, 100'000}};
        setitimer(ITIMER_REAL, &soon, nullptr);
      }
      if (me == 3 && dies) usleep(300'000);  // so that the leader has to wait
      if (me == 3 && !dies) {
        while (notes.of(0).stage == 0) usleep(1000);
        return;
      }
      try {
        world = world.shrink(dies ? 20 : 0.3);
        if (!dies && world.rank() == 0) kill(notes.of(0).pid.load(), SIGCONT);
        const int left = dies ? ranks - 1 : ranks - 2;
        if (world.size() == left && world.rank() == me - 1 && add_up(world, 5000) && add_up(world, 3)) {
          notes.of(me).stage = 1;
        }
      } catch (const Error& error) {
        notes.add(me, error.what());
        notes.of(me).stage = 2;
      }
    });
    CHECK((thrown.find("rank 0 (pid ") != std::string::npos) == dies);
    for (int rank = 0; rank < ranks; ++rank) {
      INFO("rank " << rank << ": " << notes.of(rank).text << ", " << thrown);
      CHECK(notes.of(rank).stage == (rank == 0 ? dies ? 0 : 2 : rank == 3 && !dies ? 0 : 1));
    }
    CHECK(notes.says(0, "rank 0 is not part of the new generation") == !dies);
  }
}
