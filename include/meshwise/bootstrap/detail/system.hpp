// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "meshwise/core/error.hpp"
#include "meshwise/fabric/shared_memory/descriptor.hpp"
#include "meshwise/fabric/shared_memory/memory_file.hpp"

namespace meshwise::detail {

/// Says what the system refused and why. found: "cannot fork".
[[noreturn]] inline void fail_by_system(const char* operation, const std::string& found, int error,
                                        const std::string& remedy) {
  Report report;
  report.code = error == ENOMEM || error == EMFILE || error == ENFILE || error == EAGAIN ? Code::out_of_memory
                                                                                         : Code::unsupported;
  report.operation = operation;
  report.found = found + ": " + system_error(error);
  report.remedy = remedy;
  throw Error(std::move(report));
}

/// A pipe that programs which are started do not inherit.
struct Pipe {
  Descriptor reads;
  Descriptor writes;

  static Pipe make(const char* operation) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      const int error = errno;
      rlimit limit{};
      getrlimit(RLIMIT_NOFILE, &limit);
      fail_by_system(operation, "cannot make a pipe, " + std::to_string(limit.rlim_cur) + " descriptors are permitted",
                     error, "start fewer ranks, or raise the limit of open files (ulimit -n)");
    }
    Pipe made;
    made.reads = Descriptor(ends[0]);
    made.writes = Descriptor(ends[1]);
    return made;
  }
};

}  // namespace meshwise::detail
