// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "meshwise/fabric/shared_memory/system_text.hpp"

namespace meshwise::detail {

/// A set of processors, as processes show it to each other: those from 0 to 1023.
struct ProcessorSet {
  static constexpr int words = 16;

  std::uint64_t word[words] = {};

  void add(const ProcessorSet& other) {
    for (int k = 0; k < words; ++k) word[k] |= other.word[k];
  }
  int count() const {
    int total = 0;
    for (const std::uint64_t one : word) total += __builtin_popcountll(one);
    return total;
  }

  /// Those that the calling thread may run on.
  static ProcessorSet permitted() {
    ProcessorSet set;
    cpu_set_t mask;
    CPU_ZERO(&mask);
    const bool known = sched_getaffinity(0, sizeof(mask), &mask) == 0;  // fails on machines with more processors
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    for (std::size_t k = 0; k < 64u * words; ++k) {
      const bool may = known ? CPU_ISSET(k, &mask) : static_cast<long>(k) < online;
      if (may) set.word[k / 64] |= std::uint64_t{1} << k % 64;
    }
    return set;
  }
};

/// Processors that a control group grants, rounded up, from the texts of its files; 0 for no limit.
inline std::uint32_t quota_of(const std::string& quota, const std::string& period) {
  const long long time = std::strtoll(quota.c_str(), nullptr, 10);  // "max" and "-1" are no limits
  const long long per = std::strtoll(period.c_str(), nullptr, 10);
  if (time <= 0 || per <= 0) return 0;
  const long long cores = time / per + (time % per != 0);
  return cores > 1'000'000 ? 0 : static_cast<std::uint32_t>(cores);
}

/// The least that the control group of this process and those around it grant, in processors; 0 for no limit. groups:
/// the text of /proc/self/cgroup; root: where the system shows the groups.
inline std::uint32_t processor_quota(const std::string& groups, const std::string& root) {
  std::uint32_t least = 0;
  const auto take = [&least](std::uint32_t one) {
    if (one != 0 && (least == 0 || one < least)) least = one;
  };
  for (std::size_t at = 0; at < groups.size();) {
    const std::size_t end = groups.find('\n', at) < groups.size() ? groups.find('\n', at) : groups.size();
    const std::string entry = groups.substr(at, end - at);  // "4:cpu,cpuacct:/path", "0::/path" in version 2
    at = end + 1;
    const std::size_t first = entry.find(':');
    const std::size_t second = first == std::string::npos ? first : entry.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = entry.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    controllers.insert(controllers.begin(), ',');
    controllers.push_back(',');
    if (!unified && controllers.find(",cpu,") == std::string::npos) continue;
    std::string path = entry.substr(second + 1);
    // A group outside what this process is shown: what it is shown begins at the root.
    if (path.find("..") != std::string::npos) path.clear();
    for (;; path.resize(path.rfind('/'))) {
      if (!path.empty() && path.back() == '/') path.pop_back();
      if (unified) {
        const std::string text = system_text(root + path + "/cpu.max");  // "QUOTA PERIOD"
        const std::size_t blank = text.find(' ');
        if (blank != std::string::npos) take(quota_of(text, text.substr(blank)));
      } else {
        const std::string folder = root + "/cpu" + path;
        take(quota_of(system_text(folder + "/cpu.cfs_quota_us"), system_text(folder + "/cpu.cfs_period_us")));
      }
      if (path.rfind('/') == std::string::npos) break;
    }
  }
  return least;
}

inline std::uint32_t processor_quota() { return processor_quota(system_text("/proc/self/cgroup"), "/sys/fs/cgroup"); }

}  // namespace meshwise::detail
