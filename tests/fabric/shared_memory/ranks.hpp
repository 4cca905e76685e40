// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../../support/processes.hpp"
#include "meshwise/fabric/shared_memory/segments.hpp"
#include "meshwise/fabric/shared_memory/space.hpp"

namespace test {

using meshwise::detail::Segments;
using meshwise::detail::Space;

/// Processes that join one job and run body(space, line) each.
template <class Body>
class Ranks : public Children {
 public:
  Ranks(Segments& segments, const Body& body, double deadline = 20)
      : Children(segments.ranks(), [&](int rank, const Line& line) {
          const int ranks = segments.ranks();
          const Segments::Descriptors all = segments.release();
          Space space(rank, ranks, all.control, all.arenas, deadline);
          return body(space, line);
        }) {}
};

/// The names in a folder, such as /dev/shm or /proc/self/fd.
inline std::vector<std::string> names_in(const char* folder) {
  std::vector<std::string> names;
  DIR* const open = opendir(folder);
  if (open == nullptr) return names;
  while (const dirent* one = readdir(open)) names.push_back(one->d_name);
  closedir(open);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace test
