// SPDX-License-Identifier: Apache-2.0
#include "stage.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "cores.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/broadcast.hpp"

namespace harness {
namespace {

[[noreturn]] void cannot_share(const std::string& what) {
  throw std::runtime_error("sharing memory between the ranks: " + what + ": " + std::strerror(errno));
}

}  // namespace

// Rank 0 makes a file that has no name; the others open it through the process that has it.
Stage::Stage(meshwise::Communicator& world, std::size_t most_times)
    : rank_(world.rank()), ranks_(world.size()), most_times_(most_times) {
  const auto ranks = static_cast<std::size_t>(ranks_);
  bytes_ = sizeof(Area) + ranks * sizeof(Slot) + ranks * most_times_ * sizeof(std::int64_t);
  int file = -1;
  if (rank_ == 0) {
    file = memfd_create("meshwise-bench", MFD_CLOEXEC);
    if (file < 0) cannot_share("memfd_create");
    if (ftruncate(file, static_cast<off_t>(bytes_)) != 0) cannot_share("ftruncate");
  }
  std::int64_t place[2] = {getpid(), file};
  meshwise::broadcast(world, place, 0);
  if (rank_ != 0) {
    const std::string path = "/proc/" + std::to_string(place[0]) + "/fd/" + std::to_string(place[1]);
    file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) cannot_share(path);
  }
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory_ == MAP_FAILED) cannot_share("mmap of " + std::to_string(bytes_) + " bytes");
  meshwise::barrier(world);  // all have opened it
  close(file);
  auto* at = static_cast<std::byte*>(memory_);
  area_ = reinterpret_cast<Area*>(at);
  slots_ = reinterpret_cast<Slot*>(at + sizeof(Area));
  times_ = reinterpret_cast<std::int64_t*>(at + sizeof(Area) + ranks * sizeof(Slot));
  // This rank's own times, so that the first one noted is not that of a page.
  std::memset(times(rank_), 0, most_times_ * sizeof(std::int64_t));

  sched_getaffinity(0, sizeof(cpu_set_t), &slot(rank_).usable);
  meshwise::barrier(world);
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int k = 0; k < ranks_; ++k) CPU_OR(&all, &all, &slot(k).usable);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &all)) cores_.push_back(core);
  }
  crowded_ = ranks > cores_.size();
}

Stage::~Stage() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

void Stage::bind() {
  if (CPU_COUNT(&slot(rank_).usable) > 1) stay_on_core_of_rank(rank_, cores_);
}

void Stage::stopped() { throw Stopped("another rank has failed"); }

double Stage::greatest(double value) {
  slot(rank_).value = value;
  meet();
  double result = value;
  for (int k = 0; k < ranks_; ++k) result = std::max(result, slot(k).value);
  meet();
  return result;
}

std::int64_t Stage::sum(std::int64_t value) {
  slot(rank_).count = value;
  meet();
  std::int64_t result = 0;
  for (int k = 0; k < ranks_; ++k) result += slot(k).count;
  meet();
  return result;
}

std::vector<double> Stage::slowest(std::size_t count) {
  std::vector<double> result(count);
  for (int k = 0; k < ranks_; ++k) {
    for (std::size_t i = 0; i < count; ++i) result[i] = std::max(result[i], static_cast<double>(times(k)[i]));
  }
  return result;
}

}  // namespace harness
