// SPDX-License-Identifier: Apache-2.0
// One rank of a contestant that is UCC. MPI starts it and exchanges addresses, nothing else.
#include <mpi.h>
#include <sched.h>
#include <ucc/api/ucc.h>

#include <stdexcept>
#include <string>

#include "worker.hpp"

namespace {

using namespace peers;

void require(ucc_status_t status, const char* what) {
  if (status < 0) throw std::runtime_error(std::string(what) + ": " + ucc_status_string(status));
}

ucc_status_t begin_all_gather(void* send, void* receive, std::size_t bytes, void*, void** request) {
  auto* const own = new MPI_Request;
  MPI_Iallgather(send, static_cast<int>(bytes), MPI_BYTE, receive, static_cast<int>(bytes), MPI_BYTE, MPI_COMM_WORLD,
                 own);
  *request = own;
  return UCC_OK;
}
ucc_status_t test_all_gather(void* request) {
  int done = 0;
  MPI_Test(static_cast<MPI_Request*>(request), &done, MPI_STATUS_IGNORE);
  return done != 0 ? UCC_OK : UCC_INPROGRESS;
}
ucc_status_t end_all_gather(void* request) {
  delete static_cast<MPI_Request*>(request);
  return UCC_OK;
}

class Ucc {
 public:
  using Memory = OrdinaryMemory;
  static Memory memory() { return {}; }

  Ucc(int rank, int size, bool crowded) : size_(static_cast<std::size_t>(size)), rank_(rank), crowded_(crowded) {
    ucc_oob_coll_t exchange{};
    exchange.allgather = begin_all_gather;
    exchange.req_test = test_all_gather;
    exchange.req_free = end_all_gather;
    exchange.n_oob_eps = static_cast<std::uint32_t>(size);
    exchange.oob_ep = static_cast<std::uint32_t>(rank);
    ucc_lib_config_h configuration;
    require(ucc_lib_config_read(nullptr, nullptr, &configuration), "ucc_lib_config_read");
    ucc_lib_params_t parameters{};
    parameters.mask = UCC_LIB_PARAM_FIELD_THREAD_MODE;
    parameters.thread_mode = UCC_THREAD_SINGLE;
    require(ucc_init(&parameters, configuration, &library_), "ucc_init");
    ucc_lib_config_release(configuration);
    ucc_context_config_h context_configuration;
    require(ucc_context_config_read(library_, nullptr, &context_configuration), "ucc_context_config_read");
    ucc_context_params_t context{};
    context.mask = UCC_CONTEXT_PARAM_FIELD_OOB;
    context.oob = exchange;
    require(ucc_context_create(library_, &context, context_configuration, &context_), "ucc_context_create");
    ucc_context_config_release(context_configuration);
    ucc_team_params_t team{};
    team.mask = UCC_TEAM_PARAM_FIELD_OOB | UCC_TEAM_PARAM_FIELD_EP | UCC_TEAM_PARAM_FIELD_EP_RANGE;
    team.oob = exchange;
    team.ep = static_cast<std::uint64_t>(rank);
    team.ep_range = UCC_COLLECTIVE_EP_RANGE_CONTIG;
    require(ucc_team_create_post(&context_, 1, &team, &team_), "ucc_team_create_post");
    ucc_status_t status;
    while ((status = ucc_team_create_test(team_)) == UCC_INPROGRESS) progress();
    require(status, "ucc_team_create_test");
  }
  ~Ucc() {
    barrier();
    while (ucc_team_destroy(team_) == UCC_INPROGRESS) progress();
    ucc_context_destroy(context_);
    ucc_finalize(library_);
  }

  /// Requests are made once and run often, which is UCC's fastest way.
  bool begin(const Work& work) {
    ucc_coll_args_t call{};
    if (!describe(work, call)) return false;
    call.mask |= UCC_COLL_ARGS_FIELD_FLAGS;
    call.flags |= UCC_COLL_ARGS_FLAG_PERSISTENT;
    const ucc_status_t status = ucc_collective_init(&call, &request_, team_);
    if (status == UCC_ERR_NOT_SUPPORTED || status == UCC_ERR_NOT_IMPLEMENTED) return false;
    require(status, "ucc_collective_init");
    return true;
  }
  void run() {
    require(ucc_collective_post(request_), "ucc_collective_post");
    wait(request_);
  }
  void end() { require(ucc_collective_finalize(request_), "ucc_collective_finalize"); }

  void barrier() {
    ucc_coll_args_t call{};
    call.coll_type = UCC_COLL_TYPE_BARRIER;
    ucc_coll_req_h request;
    require(ucc_collective_init(&call, &request, team_), "ucc_collective_init");
    require(ucc_collective_post(request), "ucc_collective_post");
    wait(request);
    require(ucc_collective_finalize(request), "ucc_collective_finalize");
  }
  void progress() { ucc_context_progress(context_); }

 private:
  void wait(ucc_coll_req_h request) {
    ucc_status_t status;
    while ((status = ucc_collective_test(request)) == UCC_INPROGRESS) {
      progress();
      if (crowded_) sched_yield();
    }
    require(status, "ucc_collective_test");
  }

  static ucc_coll_buffer_info_t floats(float* data, std::size_t count) {
    ucc_coll_buffer_info_t info{};
    info.buffer = data;
    info.count = count;
    info.datatype = UCC_DT_FLOAT32;
    info.mem_type = UCC_MEMORY_TYPE_HOST;
    return info;
  }

  bool describe(const Work& work, ucc_coll_args_t& call) const {
    const auto between = [&](ucc_coll_type_t type, std::size_t in, std::size_t out) {
      call.coll_type = type;
      call.op = UCC_OP_SUM;
      call.src.info = floats(work.in, in);
      call.dst.info = floats(work.out, out);
      return true;
    };
    const std::size_t all = work.count;
    const std::size_t block = work.block;
    switch (work.operation) {
      case Operation::all_reduce: return between(UCC_COLL_TYPE_ALLREDUCE, all, all);
      case Operation::all_reduce_in_place:
        between(UCC_COLL_TYPE_ALLREDUCE, all, all);
        call.mask |= UCC_COLL_ARGS_FIELD_FLAGS;
        call.flags |= UCC_COLL_ARGS_FLAG_IN_PLACE;
        call.src.info = call.dst.info;
        return true;
      case Operation::reduce_scatter: return between(UCC_COLL_TYPE_REDUCE_SCATTER, all, block);
      case Operation::reduce: return between(UCC_COLL_TYPE_REDUCE, all, all);
      case Operation::broadcast: return between(UCC_COLL_TYPE_BCAST, all, all);
      case Operation::all_gather: return between(UCC_COLL_TYPE_ALLGATHER, block, all);
      case Operation::all_to_all: return between(UCC_COLL_TYPE_ALLTOALL, all, all);
      case Operation::gather: return between(UCC_COLL_TYPE_GATHER, block, all);
      case Operation::scatter: return between(UCC_COLL_TYPE_SCATTER, all, block);
      case Operation::barrier: call.coll_type = UCC_COLL_TYPE_BARRIER; return true;
      default: return false;
    }
  }

  std::size_t size_;
  int rank_;
  bool crowded_;
  ucc_lib_h library_{};
  ucc_context_h context_{};
  ucc_team_h team_{};
  ucc_coll_req_h request_{};
};

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const bool crowded = size > sysconf(_SC_NPROCESSORS_ONLN);
  const int result = serve_peer<Ucc>(rank, size, crowded);
  if (result != 0) MPI_Abort(MPI_COMM_WORLD, result);
  MPI_Finalize();
  return result;
}
