// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/group.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "meshwise/fabric/memory/job.hpp"
#include "meshwise/fabric/thread/job.hpp"

using namespace meshwise;
using namespace meshwise::detail;

namespace {

/// A job that knows what has not been released.
class CountingJob final : public Job {
 public:
  CountingJob() : Job(2, false, true, Settings{}) {}
  ~CountingJob() override {
    release_all();
    CHECK(live.empty());
  }
  const std::atomic<std::uint32_t>& failed() const override { return failed_; }
  Report cause() const override { return {}; }
  void fail(int, const std::exception_ptr&) noexcept override {}
  void* allocate(std::size_t bytes) override {
    void* const memory = ::operator new (bytes, std::align_val_t{128});
    live.insert(memory);
    return memory;
  }
  void release(void* memory) noexcept override {
    live.erase(memory);
    ::operator delete (memory, std::align_val_t{128});
  }
  std::set<void*> live;

 private:
  std::atomic<std::uint32_t> failed_{0};
};

}  // namespace

TEST_CASE("the parts of a group lie apart in one block, and are the same in every view") {
  const auto job = std::make_shared<CountingJob>();
  for (const int size : {1, 2, 5, 64, 65, 200}) {
    const auto made = MemoryGroup::make(job, Topology::flat(size), false);
    const auto view = MemoryGroup::attach(job, made->state(), Topology::flat(size), false);
    const GroupState::Shape shape(size, made->windows().capacity());
    const auto begin = reinterpret_cast<std::uintptr_t>(&made->state());
    std::uintptr_t last = begin + sizeof(GroupState);
    for (int rank = 0; rank < size; ++rank) {
      CHECK(&made->slot(rank) == &view->slot(rank));
      CHECK(&made->inbox(rank) == &view->inbox(rank));
      CHECK(reinterpret_cast<std::uintptr_t>(&made->slot(rank)) >= last);
      last = reinterpret_cast<std::uintptr_t>(&made->slot(rank) + 1);
    }
    for (int rank = 0; rank < size; ++rank) {
      CHECK(reinterpret_cast<std::uintptr_t>(&made->inbox(rank)) >= last);
      last = reinterpret_cast<std::uintptr_t>(&made->inbox(rank) + 1);
    }
    if (size <= Windows::most_ranks) {
      CHECK(&made->windows().at(size - 1, 3) == &view->windows().at(size - 1, 3));
      CHECK(reinterpret_cast<std::uintptr_t>(&made->windows().at(0, 0)) >= last);
      CHECK(reinterpret_cast<std::uintptr_t>(&made->windows().finished(size - 1) + 1) <= begin + shape.bytes);
    }
    CHECK(made->world_rank(size - 1) == size - 1);
  }
}

TEST_CASE("the memory of a group goes when all members have left and its maker's view is gone") {
  const auto job = std::make_shared<CountingJob>();
  auto made = MemoryGroup::make(job, Topology::flat(3), true, {4, 2, 7});
  CHECK(made->world_rank(1) == 2);
  GroupState& state = made->state();
  auto view = MemoryGroup::attach(job, state, Topology::flat(3), true, {4, 2, 7});
  CHECK(job->live.size() == 1);
  made.reset();
  state.members.fetch_sub(2);
  view.reset();
  job->sweep();
  CHECK(job->live.size() == 1);
  state.members.fetch_sub(1);
  job->sweep();
  CHECK(job->live.empty());
}
