// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/detail/workspace.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../../support/run.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/fabric/wrapping.hpp"

using namespace meshwise;
using meshwise::detail::Staging;

namespace {

/// Memory that counts what is taken of it.
struct Counted {
  std::size_t blocks = 0, held = 0, taken = 0;
  bool empty = false;

  MemorySource source() {
    return {[](void* context, std::size_t bytes, std::size_t alignment) -> void* {
              Counted& own = *static_cast<Counted*>(context);
              if (own.empty) return nullptr;
              ++own.blocks;
              ++own.taken;
              own.held += bytes;
              return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
            },
            [](void* context, void* memory, std::size_t bytes) {
              Counted& own = *static_cast<Counted*>(context);
              --own.blocks;
              own.held -= bytes;
              std::free(memory);
            },
            this};
  }
};

/// Sees where the buffers of calls lie.
class Watching final : public WrappingEndpoint {
 public:
  Watching(Owned<Endpoint> inner, Call& last) : WrappingEndpoint(std::move(inner)), last_(last) {}
  bool run(const Call& call) override {
    last_ = call;
    return WrappingEndpoint::run(call);
  }

 private:
  Owned<Endpoint> wrap(Owned<Endpoint> child) override {
    return Owned<Endpoint>(new Watching(std::move(child), last_));
  }
  Call& last_;
};

}  // namespace

TEST_CASE("staging: memory grows, comes from the source, and is given back to it") {
  Counted counted;
  const MemorySource source = counted.source();
  {
    Staging staging;
    CHECK(staging.take(0, &source) == nullptr);
    CHECK(counted.taken == 0);
    std::byte* const first = staging.take(100, &source);
    CHECK(reinterpret_cast<std::uintptr_t>(first) % 64 == 0);
    CHECK(staging.take(128, &source) == first);  // whole lines
    CHECK(staging.take(1, &source) == first);
    CHECK(counted.taken == 1);
    staging.take(129, &source);
    CHECK(counted.taken == 2);
    CHECK(counted.blocks == 1);
    CHECK(counted.held == 192);
    Staging other = std::move(staging);
    CHECK(counted.blocks == 1);
    other.take(4096, nullptr);  // given back where it came from, whatever comes next
    CHECK(counted.blocks == 0);
    CHECK(counted.held == 0);
    other.take(8192, &source);
  }
  CHECK(counted.blocks == 0);
  CHECK(counted.held == 0);
}

TEST_CASE("staging: a source without memory, and one without anything behind its addresses") {
  Counted counted;
  Staging staging;
  MemorySource source = counted.source();
  staging.take(64, &source);
  counted.empty = true;
  CHECK_THROWS_AS(staging.take(65, &source), std::bad_alloc);
  CHECK(counted.blocks == 0);  // what was there before is lost
  counted.empty = false;
  CHECK(staging.take(65, &source) != nullptr);
  source.backed = false;
  std::byte* const memory = staging.take(1000, &source);
  memory[999] = std::byte{1};
  CHECK(counted.blocks == 0);
}

TEST_CASE("staging: what is converted for the wire lies where the other processes address it") {
  launch_processes(2, [](Communicator& communicator) {
    const MemorySource* const memory = communicator.endpoint("test").memory();
    if (memory == nullptr) throw std::runtime_error("processes have no memory of their fabric");
    Call last;
    Communicator watched(Owned<Endpoint>(new Watching(communicator.release(), last)));
    std::vector<float> data(50'000, 1.5F);
    CollectiveOptions options;
    options.wire = ElementKind::bf16;
    all_reduce(watched, data, options);
    if (data[0] != 3 || data.back() != 3) throw std::runtime_error("wrong sum");
    // Blocks of one arena are near each other; the vector is not among them.
    void* const mark = memory->allocate(memory->context, 64, 64);
    const auto near_mark = [&](const void* place) {
      const auto a = reinterpret_cast<std::uintptr_t>(place), b = reinterpret_cast<std::uintptr_t>(mark);
      return (a > b ? a - b : b - a) < std::uintptr_t{1} << 34;
    };
    const bool staged = near_mark(last.input) && near_mark(last.output);
    const bool vector = near_mark(data.data());
    memory->release(memory->context, mark, 64);
    if (!staged) throw std::runtime_error("the staged buffers are in private memory");
    if (vector) throw std::runtime_error("the mark tells nothing");
  });
}
