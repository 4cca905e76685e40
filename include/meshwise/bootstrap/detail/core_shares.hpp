// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <cstddef>
#include <cstdio>
#include <string>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/detail/sort.hpp"

namespace meshwise::detail {

/// A processor as the system numbers it, and the core and package that it is a part of.
struct Processor {
  int package = 0;
  int core = 0;
  int number = 0;
};

/// Which processors a rank gets when they are dealt out. Whole cores while there are enough, neighbours in runs, so
/// that the threads of a rank have theirs together; with more ranks than cores single processors; with more ranks than
/// these, ranks share.
inline List<int> core_share_of(List<Processor> processors, int ranks, int rank) {
  sort_stably(processors.begin(), processors.end(), [](const Processor& a, const Processor& b) {
    if (a.package != b.package) return a.package < b.package;
    return a.core != b.core ? a.core < b.core : a.number < b.number;
  });
  // units[k]: where the k-th core begins
  List<std::size_t> units;
  for (std::size_t k = 0; k < processors.size(); ++k) {
    const bool begins =
        k == 0 || processors[k].package != processors[k - 1].package || processors[k].core != processors[k - 1].core;
    if (begins) units.push_back(k);
  }
  if (units.size() < static_cast<std::size_t>(ranks)) {
    units.clear();
    for (std::size_t k = 0; k < processors.size(); ++k) units.push_back(k);
  }
  List<int> share;
  if (units.empty()) return share;
  const auto n = static_cast<std::size_t>(ranks);
  const auto r = static_cast<std::size_t>(rank);
  const std::size_t first = r * units.size() / n;
  std::size_t last = (r + 1) * units.size() / n;
  if (last == first) last = first + 1;
  units.push_back(processors.size());
  for (std::size_t k = units[first]; k < units[last]; ++k) share.push_back(processors[k].number);
  return share;
}

/// The processors of this machine that this process may run on; empty where the system does not say.
inline List<Processor> allowed_processors() {
  constexpr int sets = 8;  // 8192 processors
  cpu_set_t mask[sets];
  List<Processor> result;
  CPU_ZERO_S(sizeof(mask), mask);
  if (sched_getaffinity(0, sizeof(mask), mask) != 0) return result;
  const auto read = [](int number, const char* what, int otherwise) {
    const std::string path = "/sys/devices/system/cpu/cpu" + std::to_string(number) + "/topology/" + what;
    std::FILE* const file = std::fopen(path.c_str(), "re");
    if (file == nullptr) return otherwise;
    int value = otherwise;
    if (std::fscanf(file, "%d", &value) != 1) value = otherwise;
    std::fclose(file);
    return value;
  };
  for (int number = 0; number < sets * CPU_SETSIZE; ++number) {
    if (!CPU_ISSET_S(static_cast<std::size_t>(number), sizeof(mask), mask)) continue;
    result.push_back({read(number, "physical_package_id", 0), read(number, "core_id", number), number});
  }
  return result;
}

/// Restricts this process to some processors. False where the system refuses.
inline bool run_on(const List<int>& processors) {
  cpu_set_t mask[8];
  CPU_ZERO_S(sizeof(mask), mask);
  for (const int number : processors) CPU_SET_S(static_cast<std::size_t>(number), sizeof(mask), mask);
  return sched_setaffinity(0, sizeof(mask), mask) == 0;
}

}  // namespace meshwise::detail
