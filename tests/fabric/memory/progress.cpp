// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/progress.hpp"

#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../support/sanitized.hpp"
#include "../calls.hpp"
#include "meshwise/bootstrap/launch_processes.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/collective/group.hpp"
#include "meshwise/core/deadline.hpp"
#include "meshwise/fabric/delaying/delayed.hpp"
#include "meshwise/fabric/memory/mutex_latch.hpp"
#include "meshwise/fabric/reproducible/reproducible.hpp"
#include "meshwise/fabric/thread/launch.hpp"

using namespace meshwise;

namespace {

LaunchOptions driven(bool messages = false) {
  LaunchOptions options;
  options.deadline = 30;
  options.messages = messages;
  options.progress_thread = true;
  return options;
}

/// Words that threads and forked processes share.
class Board {
 public:
  static constexpr std::size_t words = 16;

  Board()
      : memory_(mmap(nullptr, sizeof(Words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        words_(new (memory_) Words{}) {
    REQUIRE(memory_ != MAP_FAILED);
  }
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board() { munmap(memory_, sizeof(Words)); }

  std::atomic<int>& operator[](std::size_t k) const { return words_->word[k]; }

 private:
  struct Words {
    std::atomic<int> word[words]{};
  };
  void* memory_;
  Words* words_;
};

/// Computes, without a call, until `over` says so.
template <class Over>
void compute_until(const Over& over, const char* what) {
  Deadline deadline(20);
  volatile double sum = 0;
  while (!over()) {
    for (int i = 0; i < 1000; ++i) sum = sum + 1.0 / (i + 1);
    if (deadline.expired()) throw std::runtime_error(std::string("no progress while a rank computed: ") + what);
    sched_yield();
  }
}

/// Runs a program on ranks that are threads, then on ranks that are processes. What is wrong it throws.
template <class F>
void on_both(int ranks, const LaunchOptions& options, const F& program) {
  launch(ranks, options, program);
  launch_processes(ranks, options, program);
}

void require(bool good, const std::string& what) {
  if (!good) throw std::runtime_error(what);
}

struct Counted final : detail::Backlog {
  bool advance_aside() override {
    ++turns;
    return false;
  }
  std::atomic<int> turns{0};
};

}  // namespace

TEST_CASE("a progress thread goes on with what any thread has put on the agenda") {
  for (const bool crowded : {false, true}) {
    const auto agenda = std::make_shared<detail::Agenda>(true);
    const detail::ProgressThread progress(agenda, crowded, 0);
    for (int k = 0; k < 20; ++k) {
      detail::MutexLatch latch;
      Counted item;
      {
        const detail::Hold hold(&latch);
        agenda->add(&item, &latch);
        CHECK(item.turns == 0);  // whoever holds the latch has it alone
      }
      compute_until([&] { return item.turns > 3; }, "an item of the agenda");
      {
        const detail::Hold hold(&latch);
        agenda->remove(&item);
      }
      const int turns = item.turns;
      if (k % 5 == 0) usleep(2000);  // it falls asleep
      CHECK(item.turns == turns);
    }
  }
}

TEST_CASE("a thread that waits for a latch gets it from a progress thread that never rests") {
  struct Busy final : detail::Backlog {
    bool advance_aside() override {
      ++turns;
      return true;
    }
    std::atomic<int> turns{0};
  };
  const auto agenda = std::make_shared<detail::Agenda>(true);
  const detail::ProgressThread progress(agenda, false, 0);
  detail::MutexLatch latch;
  Busy item;
  {
    const detail::Hold hold(&latch);
    agenda->add(&item, &latch);
  }
  for (int k = 0; k < 1000; ++k) const detail::Hold hold(&latch);
  const detail::Hold hold(&latch);
  agenda->remove(&item);
}

TEST_CASE("a progress thread ends at any time, and is not waited for in a process that was forked off") {
  for (int k = 0; k < 100; ++k) {
    const auto agenda = std::make_shared<detail::Agenda>(true);
    const detail::ProgressThread progress(agenda, k % 2 == 0, 0);
    if (k % 3 == 0) sched_yield();
  }
  auto progress = std::make_unique<detail::ProgressThread>(std::make_shared<detail::Agenda>(true), false, 0);
  const pid_t child = fork();
  if (child == 0) {
    progress.reset();
    _exit(7);
  }
  REQUIRE(child > 0);
  int status = 0;
  Deadline deadline(20);
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (deadline.expired()) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    usleep(1000);
  }
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
}

TEST_CASE("operations complete while a rank computes") {
  for (const bool messages : {false, true}) {
    for (const int ranks : {2, 3}) {
      Board board;
      on_both(ranks, driven(messages), [&](Communicator& world) {
        const int computing = 1;
        Communicator other = world.split(0, -world.rank());
        int turn = 0;
        for (Communicator* const one : {&world, &other}) {
          for (const Operation operation : calls::operations) {
            // Small ones, and such as take several steps of all ranks.
            for (const std::size_t count : {std::size_t{8}, std::size_t{30000}}) {
              ++turn;
              calls::Case c(operation, ranks, 0, count, one->rank());
              if (world.rank() == computing) {
                const auto running = one->endpoint().start(c.call());
                compute_until([&] { return board[0] >= turn * (ranks - 1); }, c.describe().c_str());
                while (!running->test()) {}
                running->wait();
              } else {
                one->endpoint().run(c.call());
                ++board[0];
              }
              require(c.right(), c.describe());
            }
          }
        }
        world.endpoint().run(calls::Case(Operation::all_reduce, ranks, 0, 1, world.rank()).call());
        board[0] = 0;
      });
    }
  }
}

TEST_CASE("large messages of a group are read while the receiver computes") {
  for (const bool messages : {false, true}) {
    Board board;
    on_both(2, driven(messages), [&](Communicator& world) {
      constexpr int rounds = 5;
      std::vector<int> out(200000), in(out.size());
      for (int k = 1; k <= rounds; ++k) {
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int>(i) * k;
        if (world.rank() == 0) {
          auto sending = start_group(world, [&](Group& g) {
            g.send(out, 1, 1);
            g.send(out, 1, 2);
          });
          sending.wait();
          board[0] = k;
        } else {
          std::vector<int> second(in.size());
          auto receiving = start_group(world, [&](Group& g) {
            g.receive(second, 0, 2);
            g.receive(in, 0, 1);
          });
          compute_until([&] { return board[0] == k; }, "a group of messages");
          while (!receiving.test()) {}
          receiving.wait();
          require(in == out && second == out, "a message is wrong");
        }
      }
      world.endpoint().run(calls::Case(Operation::all_reduce, 2, 0, 1, world.rank()).call());
      board[0] = 0;
    });
  }
}

TEST_CASE("many operations in flight on many communicators complete in any order") {
  constexpr int groups = 8, flying = 16, rounds = building::sanitized ? 2 : 6;
  for (const bool messages : {false, true}) {
    for (const bool thread : {true, false}) {
      LaunchOptions options = driven(messages);
      options.progress_thread = thread;
      on_both(3, options, [&](Communicator& world) {
        std::vector<Communicator> some;
        for (int g = 0; g < groups; ++g) some.push_back(world.split(0, g % 2 == 0 ? 0 : -world.rank()));
        std::uint64_t state = 99 + static_cast<std::uint64_t>(world.rank());
        const auto draw = [&](std::size_t below) {
          state = state * 6364136223846793005U + 1442695040888963407U;
          return static_cast<std::size_t>(state >> 33) % below;
        };
        for (int round = 0; round < rounds; ++round) {
          std::vector<std::unique_ptr<calls::Case>> cases;
          std::vector<std::pair<Owned<Running>, std::size_t>> running;
          for (int k = 0; k < flying; ++k) {
            for (Communicator& one : some) {
              const auto turn = static_cast<std::size_t>(round + k);
              const Operation operation = calls::operations[turn % std::size(calls::operations)];
              const std::size_t count = k % 5 == 4 ? 9000 : turn % 7 * 4;
              const int root = rooted(operation) ? 1 : 0;
              cases.push_back(std::make_unique<calls::Case>(operation, 3, root, count, one.rank()));
              running.emplace_back(one.endpoint().start(cases.back()->call()), cases.size() - 1);
            }
          }
          while (!running.empty()) {
            const std::size_t k = draw(running.size());
            if (draw(3) == 0) {
              if (!running[k].first->test()) continue;
            } else {
              running[k].first->wait();
            }
            require(cases[running[k].second]->right(), cases[running[k].second]->describe());
            running[k] = std::move(running.back());
            running.pop_back();
          }
        }
      });
    }
  }
}

TEST_CASE("several threads of a rank use different communicators") {
  for (const bool messages : {false, true}) {
    on_both(2, driven(messages), [&](Communicator& world) {
      constexpr int threads = 3;
      std::vector<Communicator> some;
      for (int k = 0; k < threads; ++k) some.push_back(world.split(0));
      std::vector<std::string> wrong(threads);
      std::vector<std::thread> own;
      for (std::size_t k = 0; k < threads; ++k) {
        own.emplace_back([&, k] {
          try {
            for (int round = 0; round < 30; ++round) {
              calls::Case one(Operation::all_reduce, 2, 0, round % 2 == 0 ? 5 : 20000, some[k].rank());
              calls::Case two(Operation::all_gather, 2, 0, 100, some[k].rank());
              const auto first = some[k].endpoint().start(one.call());
              const auto second = some[k].endpoint().start(two.call());
              if (round % 3 == 0) {
                while (!second->test()) {}
              }
              second->wait();
              first->wait();
              if (!one.right() || !two.right()) wrong[k] = one.describe();
            }
          } catch (const std::exception& error) {
            wrong[k] = error.what();
          }
        });
      }
      for (std::thread& one : own) one.join();
      for (const std::string& text : wrong) require(text.empty(), text);
    });
  }
}

TEST_CASE("wrapped communicators have progress too") {
  for (const bool slow : {false, true}) {
    on_both(2, driven(), [&](Communicator& world) {
      const Delays delays{1e-4, 1e-10, 2e-4, 7, Landing::mixed};
      Communicator wrapped = slow ? delayed(world.split(0), delays) : reproducible(reproducible(world.split(0)));
      Communicator more = wrapped.split(0);
      std::vector<int> out(30000, wrapped.rank()), in(out.size());
      for (int k = 0; k < 20; ++k) {
        calls::Case one(Operation::all_reduce, 2, 0, 20000, wrapped.rank());
        calls::Case two(Operation::all_gather, 2, 0, 50, more.rank());
        const auto first = wrapped.endpoint().start(one.call());
        const auto second = more.endpoint().start(two.call());
        auto messages = start_group(wrapped, [&](Group& g) {
          g.send(out, 1 - wrapped.rank());
          g.receive(in, 1 - wrapped.rank());
        });
        usleep(static_cast<unsigned>(k) * 50);
        if (k % 2 == wrapped.rank()) {
          while (!messages.test()) {}
          first->wait();
        }
        second->wait();
        first->wait();
        messages.wait();
        require(one.right() && two.right() && in == std::vector<int>(in.size(), 1 - wrapped.rank()),
                "a wrapped communicator gives something else");
        std::fill(in.begin(), in.end(), -1);
      }
    });
  }
}

TEST_CASE("what the progress thread finds wrong is said by the operation") {
  for (const bool messages : {false, true}) {
    Board board;
    on_both(2, driven(messages), [&](Communicator& world) {
      Communicator other = world.split(0);
      calls::Case one(Operation::all_reduce, 2, 0, 20000, other.rank());
      calls::Case two(Operation::all_reduce, 2, 0, 20001, other.rank());
      int errors = 0;
      const auto attempt = [&](const auto& call) {
        try {
          call();
        } catch (const Error& error) {
          require(error.code() == Code::mismatch, error.what());
          ++errors;
        }
      };
      if (world.rank() == 0) {
        const auto running = other.endpoint().start(one.call());
        board[0] = 1;
        compute_until([&] { return board[0] == 2; }, "an error");
        attempt([&] {
          while (!running->test()) {}
        });
        attempt([&] { running->wait(); });
        require(errors == 2, "a mismatch was not found");
      } else {
        compute_until([&] { return board[0] == 1; }, "the first rank");
        attempt([&] { other.endpoint().start(two.call())->wait(); });
        require(errors == 1, "a mismatch was not found");
        board[0] = 2;
      }
      world.endpoint().run(calls::Case(Operation::all_reduce, 2, 0, 1, world.rank()).call());
      board[0] = 0;
    });
  }
}

TEST_CASE("a rank that throws, or leaves, or whose communicators go in any order, with operations in flight") {
  for (const bool messages : {false, true}) {
    for (int way = 0; way < 5; ++way) {
      std::string text;
      const auto program = [&](Communicator& world) {
        std::vector<Communicator> some;
        for (int k = 0; k < 3; ++k) some.push_back(world.split(0));
        std::vector<std::unique_ptr<calls::Case>> cases;
        std::vector<Owned<Running>> running;
        std::vector<int> large(100000);
        for (Communicator& one : some) {
          for (int k = 0; k < 4; ++k) {
            cases.push_back(std::make_unique<calls::Case>(Operation::all_reduce, 3, 0, 5000, one.rank()));
            if (world.rank() != 2) running.push_back(one.endpoint().start(cases.back()->call()));
          }
        }
        Pending<void> group = start_group(some[0], [&](Group& g) {
          if (world.rank() == 0) g.receive(large, 1);
        });
        switch (way) {
          case 0:
            if (world.rank() == 2) throw std::runtime_error("the program's own");
            break;
          case 1: some[1].abort("test"); break;
          case 2: running.clear(); break;
          case 3:
            if (world.rank() == 0) running.erase(running.begin() + 1, running.end());
            break;
          default: break;  // everything goes as it stands
        }
        try {
          group.wait();
        } catch (const Error&) {}
        for (auto& one : running) {
          try {
            one->wait();
          } catch (const Error&) {}
        }
      };
      for (const bool processes : {false, true}) {
        try {
          processes ? launch_processes(3, driven(messages), program) : launch(3, driven(messages), program);
          text = "";
        } catch (const std::exception& error) {
          text = error.what();
        }
        if (way == 0) CHECK(text.find("the program's own") != std::string::npos);
      }
    }
  }
}

TEST_CASE("a process is killed while the others compute with operations in flight") {
  for (const bool messages : {false, true}) {
    std::string text;
    try {
      launch_processes(3, driven(messages), [&](Communicator& world) {
        calls::Case one(Operation::all_reduce, 3, 0, 20000, world.rank());
        const auto running = world.endpoint().start(one.call());
        if (world.rank() == 1) raise(SIGKILL);
        usleep(20000);
        running->wait();
      });
    } catch (const Error& error) {
      text = error.what();
    }
    CHECK(text.find("rank 1") != std::string::npos);
  }
}
