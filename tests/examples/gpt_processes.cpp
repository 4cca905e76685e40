// SPDX-License-Identifier: Apache-2.0
// The same training on ranks that are threads and on ranks that are processes: the same bits.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <new>
#include <stdexcept>

#include "../support/run.hpp"
#include "gpt_support.hpp"

namespace {

using namespace test;

constexpr std::size_t sequences = 5, most_steps = 8;
constexpr int most_ranks = 8;

/// What ranks leave behind for the test, whether they are threads or processes.
struct Left {
  struct Rank {
    gpt::StepResult results[most_steps];
    std::uint64_t parameters = 0;  ///< all bits of all parameters, mixed
    int process = 0;
  } ranks[most_ranks];
};

/// Memory that forked processes share with the one that forks.
class SharedPage {
 public:
  SharedPage() : place_(mmap(nullptr, sizeof(Left), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (place_ == MAP_FAILED) throw std::bad_alloc();
    new (place_) Left{};
  }
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;
  ~SharedPage() { munmap(place_, sizeof(Left)); }

  Left& left() { return *static_cast<Left*>(place_); }

 private:
  void* place_;
};

struct Case {
  MeshShape shape;
  int zero = 0;
  std::size_t micro_batches = 1;
  gpt::Precision precision = gpt::Precision::f32;
  gpt::Recomputed recompute = gpt::Recomputed::none;
  std::size_t bucket_bytes = 0;
};

std::string name_of(const Case& c) {
  return shape_name(c.shape) + ", zero " + std::to_string(c.zero) + ", micro-batches " +
         std::to_string(c.micro_batches) + ", precision " + std::to_string(static_cast<int>(c.precision)) +
         ", recompute " + std::to_string(static_cast<int>(c.recompute));
}

void train(Communicator& world, const Case& c, std::uint64_t steps, Left& left) {
  gpt::Training t;
  t.adamw.learning_rate = 3e-3;
  t.steps = steps;
  t.warmup = 2;
  t.dropout = 0.1;
  t.zero = c.zero;
  t.precision = c.precision;
  t.recompute = c.recompute;
  t.bucket_bytes = c.bucket_bytes;
  const gpt::Grid mesh(world, {c.shape.data, c.shape.context, c.shape.tensor});
  const auto trainer = gpt::make_trainer(mesh, odd_sizes, t);
  Left::Rank& own = left.ranks[world.rank()];
  own.process = static_cast<int>(getpid());
  for (std::uint64_t step = 1; step <= steps; ++step) {
    own.results[step - 1] = trainer->step(micro_batches_of(mesh, odd_sizes, step, sequences, c.micro_batches));
  }
  trainer->each_parameter([&](const std::string&, const std::vector<double>& values) {
    for (const double x : values) own.parameters = stream_seed(own.parameters, std::bit_cast<std::uint64_t>(x));
  });
}

void compare(const Case& c, std::uint64_t steps) {
  CAPTURE(name_of(c));
  SharedPage threads, processes;
  LaunchOptions options;
  options.deadline = 120;
  launch(c.shape.ranks(), options, [&](Communicator& world) { train(world, c, steps, threads.left()); });
  launch_processes(c.shape.ranks(), options, [&](Communicator& world) { train(world, c, steps, processes.left()); });
  const int ranks = c.shape.ranks();
  for (int r = 0; r < ranks; ++r) {
    const Left::Rank& one = threads.left().ranks[r];
    const Left::Rank& other = processes.left().ranks[r];
    CAPTURE(r);
    CHECK(one.process == getpid());
    CHECK(other.process != getpid());
    for (std::uint64_t s = 0; s < steps; ++s) {
      CHECK(one.results[s].loss > 0);
      CHECK(std::bit_cast<std::uint64_t>(one.results[s].loss) == std::bit_cast<std::uint64_t>(other.results[s].loss));
      CHECK(std::bit_cast<std::uint64_t>(one.results[s].gradient_norm) ==
            std::bit_cast<std::uint64_t>(other.results[s].gradient_norm));
    }
    CHECK(one.parameters != 0);
    CHECK(one.parameters == other.parameters);
    CHECK(other.parameters == processes.left().ranks[0].parameters);
  }
}

}  // namespace

TEST_CASE("gpt: ranks that are processes compute the bits of ranks that are threads") {
  using gpt::Precision;
  using gpt::Recomputed;
  if (!full()) {
    const Case cases[] = {
        {{1, 1, 1}},
        {{2, 1, 1}, 1},
        {{1, 2, 1}, 3, 2},
        {{1, 1, 2}, 0, 1, Precision::bf16, Recomputed::selective},
        {{2, 1, 2}, 3, 2, Precision::f32, Recomputed::full},
        {{2, 2, 1}, 2, 2, Precision::bf16, Recomputed::full},
        {{1, 2, 2}, 1, 1, Precision::f64},
        {{4, 1, 1}, 3, 3, Precision::f64, Recomputed::selective, 20'000},
    };
    for (const Case& c : cases) compare(c, 3);
    return;
  }
  int turn = 0;
  for (const int ranks : {1, 2, 4, 8}) {
    for (const MeshShape& shape : shapes_of(ranks)) {
      for (int zero = 0; zero < 4; ++zero) {
        for (const Precision precision : {Precision::f32, Precision::bf16, Precision::f64}) {
          const Recomputed again[] = {Recomputed::none, Recomputed::full, Recomputed::selective};
          Case c{shape, zero, 1 + static_cast<std::size_t>(turn % 3), precision, again[turn / 3 % 3]};
          if (turn++ % 2 == 1) c.bucket_bytes = 20'000;
          if (shape.context > 1 && c.recompute == Recomputed::selective) c.recompute = Recomputed::none;
          compare(c, most_steps);
        }
      }
    }
  }
}

TEST_CASE("gpt: a rank that throws ends the processes of all ranks with its cause") {
  for (int thrower = 0; thrower < 2; ++thrower) {
    std::string cause;
    try {
      launch_processes(2, [&](Communicator& world) {
        const gpt::Grid mesh(world, {1, 1, 2});
        const auto trainer = gpt::make_trainer(mesh, odd_sizes, gpt::Training{});
        for (std::uint64_t step = 1; step <= 4; ++step) {
          if (step == 3 && world.rank() == thrower) throw std::runtime_error("disk on fire");
          trainer->step(batch_of(mesh, odd_sizes, step, sequences));
        }
      });
    } catch (const Error& error) {
      cause = error.what();
    }
    CHECK(cause.find("disk on fire") != std::string::npos);
  }
}
