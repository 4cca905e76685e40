// SPDX-License-Identifier: Apache-2.0
// The ranks of a contestant that is Gloo over the loopback interface: `peer_gloo RANKS ring|bcube`. It has no
// reduce_scatter here: the one that it comes with gave wrong sums now and then.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "gloo_store.hpp"
#include "worker.hpp"

namespace {

using namespace peers;

class Gloo {
 public:
  using Memory = OrdinaryMemory;
  static Memory memory() { return {}; }

  Gloo(int rank, int size, ForkedStore& store, bool bcube) : rank_(rank), size_(size), bcube_(bcube) {
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    context->setTimeout(std::chrono::seconds(300));
    auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
    gloo::rendezvous::PrefixStore prefixed("ranks", store);
    context->connectFullMesh(prefixed, device);
    context_ = context;
  }

  bool begin(const Work& work) {
    run_ = prepared(work);
    return static_cast<bool>(run_);
  }
  void run() { run_(); }
  void end() { run_ = nullptr; }
  void barrier() {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }
  void progress() {}  // has threads for that

 private:
  using Function = void (*)(void*, const void*, const void*, std::size_t);

  template <class Options>
  std::shared_ptr<Options> options() {
    return std::make_shared<Options>(context_);
  }

  std::function<void()> prepared(const Work& work) {
    const Function sum = &gloo::sum<float>;
    float* const in = work.in;
    float* const out = work.out;
    switch (work.operation) {
      case Operation::all_reduce:
      case Operation::all_reduce_in_place: {
        auto o = options<gloo::AllreduceOptions>();
        using Algorithm = gloo::AllreduceOptions::Algorithm;
        o->setAlgorithm(bcube_ ? Algorithm::BCUBE : Algorithm::RING);
        o->setReduceFunction(gloo::AllreduceOptions::Func(sum));
        if (work.operation == Operation::all_reduce) o->setInput(in, work.count);
        o->setOutput(out, work.count);
        return [o] { gloo::allreduce(*o); };
      }
      case Operation::reduce: {
        auto o = options<gloo::ReduceOptions>();
        o->setInput(in, work.count);
        o->setOutput(out, work.count);
        o->setRoot(0);
        o->setReduceFunction(gloo::ReduceOptions::Func(sum));
        return [o] { gloo::reduce(*o); };
      }
      case Operation::broadcast: {
        auto o = options<gloo::BroadcastOptions>();
        o->setOutput(in, work.count);
        o->setRoot(0);
        return [o] { gloo::broadcast(*o); };
      }
      case Operation::all_gather: {
        auto o = options<gloo::AllgatherOptions>();
        o->setInput(in, work.block);
        o->setOutput(out, work.count);
        return [o] { gloo::allgather(*o); };
      }
      case Operation::all_to_all: {
        auto o = options<gloo::AlltoallOptions>();
        o->setInput(in, work.count);
        o->setOutput(out, work.count);
        return [o] { gloo::alltoall(*o); };
      }
      case Operation::gather: {
        auto o = options<gloo::GatherOptions>();
        o->setInput(in, work.block);
        if (rank_ == 0) o->setOutput(out, work.count);
        o->setRoot(0);
        return [o] { gloo::gather(*o); };
      }
      case Operation::scatter: {
        auto o = options<gloo::ScatterOptions>();
        std::vector<float*> blocks;
        for (int k = 0; k < size_; ++k) blocks.push_back(in + static_cast<std::size_t>(k) * work.block);
        if (rank_ == 0) o->setInputs(blocks, work.block);
        o->setOutput(out, work.block);
        o->setRoot(0);
        return [o] { gloo::scatter(*o); };
      }
      case Operation::send_recv:
      case Operation::exchange: {
        const bool both = work.operation == Operation::exchange;
        const std::size_t bytes = work.count * sizeof(float);
        std::shared_ptr<gloo::transport::UnboundBuffer> from = context_->createUnboundBuffer(in, bytes);
        std::shared_ptr<gloo::transport::UnboundBuffer> to = context_->createUnboundBuffer(out, bytes);
        const bool sends = both || rank_ == 0;
        const bool receives = both || rank_ == 1;
        const int next = (rank_ + 1) % size_;
        const int before = (rank_ + size_ - 1) % size_;
        return [=] {
          constexpr std::uint64_t slot = 77;
          if (sends) from->send(next, slot);
          if (receives) to->recv(before, slot);
          if (receives) to->waitRecv();
          if (sends) from->waitSend();
        };
      }
      case Operation::barrier: {
        auto o = options<gloo::BarrierOptions>();
        return [o] { gloo::barrier(*o); };
      }
      case Operation::reduce_scatter: break;
    }
    return nullptr;
  }

  int rank_, size_;
  bool bcube_;
  std::shared_ptr<gloo::Context> context_;
  std::function<void()> run_;
};

}  // namespace

int main(int count, char** arguments) {
  const int ranks = count > 1 ? std::atoi(arguments[1]) : 0;
  const bool bcube = count > 2 && std::strcmp(arguments[2], "bcube") == 0;
  if (ranks < 1 || ranks > Board::most_ranks) return 2;
  ForkedStore store;
  for (int rank = 0; rank < ranks; ++rank) {
    if (fork() == 0) {
      const int result = serve_peer<Gloo>(rank, ranks, store, bcube);
      std::fflush(nullptr);
      _exit(result);
    }
  }
  int worst = 0;
  for (int status = 0; wait(&status) > 0;) {
    if (status == 0) continue;
    worst = 1;
    kill(0, SIGTERM);  // the others would wait for ever
  }
  return worst;
}
