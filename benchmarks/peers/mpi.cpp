// SPDX-License-Identifier: Apache-2.0
// One rank of a contestant that is an MPI, whichever this is compiled with.
#include <mpi.h>

#include "worker.hpp"

namespace {

using namespace peers;

class Mpi {
 public:
  using Memory = OrdinaryMemory;
  static Memory memory() { return {}; }

  Mpi(int rank, int size) : rank_(rank), size_(size) {}

  bool begin(const Work& work) {
    work_ = work;
    count_ = static_cast<int>(work.count);
    block_ = static_cast<int>(work.block);
    return true;
  }
  void end() {}
  void barrier() { MPI_Barrier(world_); }
  void progress() {
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 32000, world_, &flag, MPI_STATUS_IGNORE);
  }

  void run() {
    float* const in = work_.in;
    float* const out = work_.out;
    switch (work_.operation) {
      case Operation::all_reduce: MPI_Allreduce(in, out, count_, MPI_FLOAT, MPI_SUM, world_); break;
      case Operation::all_reduce_in_place: MPI_Allreduce(MPI_IN_PLACE, out, count_, MPI_FLOAT, MPI_SUM, world_); break;
      case Operation::reduce_scatter: MPI_Reduce_scatter_block(in, out, block_, MPI_FLOAT, MPI_SUM, world_); break;
      case Operation::reduce: MPI_Reduce(in, out, count_, MPI_FLOAT, MPI_SUM, 0, world_); break;
      case Operation::broadcast: MPI_Bcast(in, count_, MPI_FLOAT, 0, world_); break;
      case Operation::all_gather: MPI_Allgather(in, block_, MPI_FLOAT, out, block_, MPI_FLOAT, world_); break;
      case Operation::all_to_all: MPI_Alltoall(in, block_, MPI_FLOAT, out, block_, MPI_FLOAT, world_); break;
      case Operation::gather: MPI_Gather(in, block_, MPI_FLOAT, out, block_, MPI_FLOAT, 0, world_); break;
      case Operation::scatter: MPI_Scatter(in, block_, MPI_FLOAT, out, block_, MPI_FLOAT, 0, world_); break;
      case Operation::send_recv:
        if (rank_ == 0) MPI_Send(in, count_, MPI_FLOAT, 1, 1, world_);
        if (rank_ == 1) MPI_Recv(out, count_, MPI_FLOAT, 0, 1, world_, MPI_STATUS_IGNORE);
        break;
      case Operation::exchange:
        MPI_Sendrecv(in, count_, MPI_FLOAT, (rank_ + 1) % size_, 1, out, count_, MPI_FLOAT, (rank_ + size_ - 1) % size_,
                     1, world_, MPI_STATUS_IGNORE);
        break;
      case Operation::barrier: MPI_Barrier(world_); break;
    }
  }

 private:
  MPI_Comm world_ = MPI_COMM_WORLD;
  int rank_, size_;
  int count_ = 0, block_ = 0;
  Work work_;
};

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int result = serve_peer<Mpi>(rank, size);
  if (result != 0) MPI_Abort(MPI_COMM_WORLD, result);
  MPI_Finalize();
  return result;
}
