// SPDX-License-Identifier: Apache-2.0
#include "meshwise_ranks.hpp"

#include <memory>
#include <span>

#include "meshwise/bootstrap/launch_processes.hpp"
#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/all_to_all.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/gather.hpp"
#include "meshwise/collective/reduce.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/collective/scatter.hpp"
#include "meshwise/collective/send_receive.hpp"
#include "meshwise/core/memory.hpp"
#include "worker.hpp"

namespace peers {
namespace {

/// The library's heap, which all ranks address; or ordinary memory, of which the library knows nothing.
class HeapOrOrdinary {
 public:
  explicit HeapOrOrdinary(const meshwise::MemorySource* source) {
    if (source != nullptr) heap_ = std::make_unique<meshwise::Heap>(*source);
  }
  HeapOrOrdinary(HeapOrOrdinary&&) = delete;

  float* reach(std::size_t bytes) {
    if (heap_ == nullptr) return ordinary_.reach(bytes);
    if (storage_.bytes() < bytes) {
      release();
      storage_ = heap_->allocate(bytes);
    }
    return reinterpret_cast<float*>(storage_.data());
  }
  void release() {
    ordinary_.release();
    storage_ = meshwise::Storage();
    if (heap_ != nullptr) heap_->trim();
  }

 private:
  std::unique_ptr<meshwise::Heap> heap_;
  meshwise::Storage storage_;
  OrdinaryMemory ordinary_;
};

class Meshwise {
 public:
  using Memory = HeapOrOrdinary;

  Meshwise(meshwise::Communicator& world, bool registered)
      : world_(world), source_(registered ? world.endpoint().memory() : nullptr) {}

  Memory memory() { return Memory(source_); }

  bool begin(const Work& work) {
    operation_ = work.operation;
    in_ = {work.in, work.count};
    out_ = {work.out, work.count};
    in_block_ = in_.first(work.operation == Operation::barrier ? 0 : std::min(work.block, work.count));
    out_block_ = out_.first(in_block_.size());
    return true;
  }
  void end() {}
  void barrier() { meshwise::barrier(world_); }
  void progress() {}  // all of a call is done when it returns

  void run() {
    switch (operation_) {
      case Operation::all_reduce: meshwise::all_reduce(world_, in_, out_); break;
      case Operation::all_reduce_in_place: meshwise::all_reduce(world_, out_); break;
      case Operation::reduce_scatter: meshwise::reduce_scatter(world_, in_, out_block_); break;
      case Operation::reduce: meshwise::reduce(world_, in_, out_, 0); break;
      case Operation::broadcast: meshwise::broadcast(world_, in_, 0); break;
      case Operation::all_gather: meshwise::all_gather(world_, in_block_, out_); break;
      case Operation::all_to_all: meshwise::all_to_all(world_, in_, out_); break;
      case Operation::gather: meshwise::gather(world_, in_block_, out_, 0); break;
      case Operation::scatter: meshwise::scatter(world_, in_, out_block_, 0); break;
      case Operation::send_recv:
        if (world_.rank() == 0) meshwise::send(world_, in_, 1);
        if (world_.rank() == 1) meshwise::receive(world_, out_, 0);
        break;
      case Operation::exchange: {
        const int size = world_.size();
        meshwise::exchange(world_, in_, (world_.rank() + 1) % size, out_, (world_.rank() + size - 1) % size);
        break;
      }
      case Operation::barrier: meshwise::barrier(world_); break;
    }
  }

 private:
  meshwise::Communicator& world_;
  const meshwise::MemorySource* source_;
  Operation operation_ = Operation::barrier;
  std::span<float> in_, out_, in_block_, out_block_;
};

}  // namespace

int run_meshwise(Board& board, int seat, bool registered) {
  try {
    meshwise::launch_processes(board.ranks, [&](meshwise::Communicator& world) {
      Meshwise library(world, registered);
      Worker<Meshwise>(board, seat, world.rank(), library).serve();
    });
    return 0;
  } catch (const std::exception& error) {
    say(board.seats[seat], error.what());
    return 1;
  }
}

}  // namespace peers
