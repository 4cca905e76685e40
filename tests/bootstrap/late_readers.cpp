// SPDX-License-Identifier: Apache-2.0
// Processes that are through with a call go on at once: they overwrite and free their buffers, destroy the
// communicator, leave the job. Nothing of that may reach a rank that is still in the middle of the call.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "meshwise/bootstrap/launch_processes.hpp"
#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/all_to_all.hpp"
#include "meshwise/collective/all_to_all_v.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/gather.hpp"
#include "meshwise/collective/scan.hpp"
#include "meshwise/collective/scatter.hpp"
#include "meshwise/collective/send_receive.hpp"
#include "meshwise/fabric/memory/endpoint.hpp"
#include "meshwise/fabric/shared_memory/job.hpp"

using namespace meshwise;

namespace {

constexpr int ranks = 3;

detail::Job& job_of(Communicator& world) { return dynamic_cast<detail::MemoryEndpoint&>(world.endpoint()).job(); }

LaunchOptions options(bool messages = false) {
  LaunchOptions result;
  result.deadline = 60;
  result.messages = messages;
  result.settings = Settings{};
  return result;
}

enum class Kind { all_reduce, all_gather, all_to_all, all_to_all_v, broadcast, gather, scatter, scan, message };
constexpr Kind kinds[] = {Kind::all_reduce, Kind::all_gather, Kind::all_to_all, Kind::all_to_all_v, Kind::broadcast,
                          Kind::gather,     Kind::scatter,    Kind::scan,       Kind::message};

/// A buffer that all ranks address, or one of this process only; overwritten before it is freed.
class Memory {
 public:
  Memory(Communicator& world, bool shared, std::size_t count) : bytes_(count * sizeof(std::int32_t)) {
    if (shared) source_ = job_of(world).memory();
    void* const memory = source_ ? source_->allocate(source_->context, bytes_, 64) : std::malloc(bytes_);
    if (memory == nullptr) throw std::bad_alloc();
    all = {static_cast<std::int32_t*>(memory), count};
    std::fill(all.begin(), all.end(), -1);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    std::fill(all.begin(), all.end(), -2);
    source_ ? source_->release(source_->context, all.data(), bytes_) : std::free(all.data());
  }

  std::span<std::int32_t> all;

 private:
  std::size_t bytes_;
  const MemorySource* source_ = nullptr;
};

std::int32_t value(int rank, std::size_t i) { return static_cast<std::int32_t>(i % 10'007) * 8 + rank + 1; }

/// Sleeps at one of the points that a rank passes in a call.
struct Sleeper {
  int point;
  int passed = 0;

  static void pass(void* object, std::uint64_t, std::uint64_t) {
    auto& self = *static_cast<Sleeper*>(object);
    if (self.passed++ == self.point) usleep(6'000);
  }
};

/// One call with blocks of `count` elements; throws unless the result is right. sleeper: null for who is not late.
void call(Communicator& group, Kind kind, bool shared, std::size_t count, bool started, Sleeper* sleeper) {
  const int rank = group.rank();
  const auto own = static_cast<std::size_t>(rank), number = static_cast<std::size_t>(ranks);
  Memory in(group, shared, count * number), out(group, shared, count * number);
  for (std::size_t i = 0; i < in.all.size(); ++i) in.all[i] = value(rank, i);
  const auto one = in.all.first(count), result = out.all.first(count);
  const std::vector<std::size_t> counts(number, count);
  std::vector<std::int32_t> wanted;
  const auto want = [&](int from, std::size_t begin) {
    for (std::size_t i = 0; i < count; ++i) wanted.push_back(value(from, begin + i));
  };
  if (sleeper != nullptr) job_of(group).hook() = {&Sleeper::pass, sleeper};
  switch (kind) {
    case Kind::all_reduce:
      started ? (void)start_all_reduce(group, in.all, out.all).wait() : all_reduce(group, in.all, out.all);
      for (std::size_t i = 0; i < in.all.size(); ++i) wanted.push_back(value(0, i) + value(1, i) + value(2, i));
      break;
    case Kind::all_gather:
      started ? (void)start_all_gather(group, one, out.all).wait() : all_gather(group, one, out.all);
      for (int from = 0; from < ranks; ++from) want(from, 0);
      break;
    case Kind::all_to_all:
      started ? (void)start_all_to_all(group, in.all, out.all).wait() : all_to_all(group, in.all, out.all);
      for (int from = 0; from < ranks; ++from) want(from, own * count);
      break;
    case Kind::all_to_all_v:
      all_to_all_v(group, in.all, out.all, counts, counts);
      for (int from = 0; from < ranks; ++from) want(from, own * count);
      break;
    case Kind::broadcast: {
      const auto data = rank == 1 ? one : result;
      started ? (void)start_broadcast(group, data, 1).wait() : broadcast(group, data, 1);
      if (rank != 1) want(1, 0);
      break;
    }
    case Kind::gather:
      gather(group, one, rank == 2 ? out.all : out.all.first(0), 2);
      for (int from = 0; from < ranks && rank == 2; ++from) want(from, 0);
      break;
    case Kind::scatter:
      scatter(group, rank == 0 ? in.all : in.all.first(0), result, 0);
      want(0, own * count);
      break;
    case Kind::scan:
      started ? (void)start_inclusive_scan(group, one, result).wait() : inclusive_scan(group, one, result);
      for (std::size_t i = 0; i < count; ++i) {
        std::int32_t sum = 0;
        for (int from = 0; from <= rank; ++from) sum += value(from, i);
        wanted.push_back(sum);
      }
      break;
    case Kind::message:
      if (rank > 0) receive(group, result, rank - 1);
      if (rank + 1 < ranks) send(group, one, rank + 1);
      if (rank > 0) want(rank - 1, 0);
      break;
  }
  if (sleeper != nullptr) job_of(group).hook() = {};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (out.all[i] == wanted[i]) continue;
    throw std::runtime_error("kind " + std::to_string(static_cast<int>(kind)) + (shared ? ", shared" : "") +
                             (started ? ", started" : "") + ", blocks of " + std::to_string(count) +
                             ", late at point " + std::to_string(sleeper != nullptr ? sleeper->point : -1) +
                             ": element " + std::to_string(i) + " is " + std::to_string(out.all[i]) + ", not " +
                             std::to_string(wanted[i]));
  }
}

}  // namespace

TEST_CASE(
    "a rank that is late at any point of a call gets its result, "
    "whatever the others do once they are through") {
  for (const bool messages : {false, true}) {
    launch_processes(ranks, options(messages), [&](Communicator& world) {
      int turn = 0;
      for (const Kind kind : kinds) {
        for (const std::size_t count : {200u, 30'000u, 300'000u}) {
          if (messages && count == 30'000u) continue;
          for (const bool shared : {false, true}) {
            // Late in turn, at every fourth of some points: many calls do not have as many.
            const int late = turn % ranks;
            for (int point = turn % 4; point < 12; point += 4) {
              Communicator group = world.split(0);
              Sleeper sleeper{point};
              call(group, kind, shared, count, turn++ % 3 == 0, world.rank() == late ? &sleeper : nullptr);
            }
          }
        }
      }
    });
  }
}

TEST_CASE("nor does it matter that they leave the job") {
  int turn = 0;
  for (const Kind kind : kinds) {
    for (const std::size_t count : {200u, 30'000u, 300'000u}) {
      launch_processes(ranks, options(), [&](Communicator& world) {
        Sleeper sleeper{1 + turn % 3};
        call(world, kind, turn % 2 == 0, count, turn % 5 == 0, world.rank() == turn / 2 % ranks ? &sleeper : nullptr);
      });
      ++turn;
    }
  }
}

TEST_CASE(
    "a rank that has fallen many calls behind still knows through what "
    "its call goes") {
  // The root's buffer is not addressed by the others, which only the root's entry says: it is overwritten by then.
  launch_processes(ranks, options(), [](Communicator& world) {
    barrier(world);
    constexpr std::size_t count = 4000;
    Memory data(world, world.rank() != 0, count);
    for (std::size_t i = 0; i < count && world.rank() == 0; ++i) data.all[i] = value(0, i);
    struct Late {
      static void pass(void*, std::uint64_t sequence, std::uint64_t step) {
        if (sequence == 2 && step == 1) usleep(300'000);
      }
    };
    if (world.rank() == 2) job_of(world).hook() = {&Late::pass, nullptr};
    broadcast(world, data.all, 0);
    int word = 0;
    // As many as the windows of two ranks hold.
    for (std::size_t k = 0; k < 2 * detail::Windows::depth; ++k) {
      broadcast(world, std::span(&word, 1), k < detail::Windows::depth ? 0 : 1);
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (data.all[i] != value(0, i)) throw std::runtime_error("wrong element " + std::to_string(i));
    }
    barrier(world);
  });
}

TEST_CASE("windows of groups that some leave before others have begun do not pile up") {
  launch_processes(ranks, options(), [](Communicator& world) {
    auto& job = dynamic_cast<detail::SharedMemoryJob&>(job_of(world));
    std::vector<std::int32_t> data(20'000, world.rank());
    std::vector<std::int32_t> sums(data.size());
    std::size_t before = 0;
    for (int turn = 0; turn < 24; ++turn) {
      {
        Communicator group = world.split(0);
        Sleeper sleeper{1};
        if (world.rank() == 1) job.hook() = {&Sleeper::pass, &sleeper};
        inclusive_scan(group, data, sums);  // rank 0 only gives
        job.hook() = {};
      }
      barrier(world);
      job.sweep();
      barrier(world);
      if (turn == 3) before = job.space().arena().reserved();
    }
    const std::size_t after = job.space().arena().reserved();
    if (after > before + (std::size_t{12} << 20)) {
      throw std::runtime_error("from " + std::to_string(before) + " to " + std::to_string(after) + " bytes");
    }
  });
}
