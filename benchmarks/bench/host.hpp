// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/utsname.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "cores.hpp"
#include "meshwise/version.hpp"

namespace harness {

/// What figures depend on besides the program: they compare only where this is the same.
struct Host {
  struct Cache {
    std::string name;    ///< L1d, L2, L3
    std::string size;    ///< as the system writes it, such as 48K
    std::string shared;  ///< the numbers of the cores that share core 0's
  };

  std::string name, processor, system, compiler, library, date, governor, huge_pages;
  int cores = 0;              ///< that this process may use
  int online = 0;             ///< of the machine
  double load = 0;            ///< average of the last minute when this was asked
  std::vector<Cache> caches;  ///< of core 0
};

/// The first line of a file, empty if there is none.
inline std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

inline std::string compiler_name() {
#if defined(__clang__)
  return "clang " + std::string(__clang_version__);
#else
  return "gcc " + std::string(__VERSION__);
#endif
}

inline std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos && line.rfind("model name", 0) == 0) return line.substr(colon + 2);
  }
  return "unknown";
}

inline std::vector<Host::Cache> caches_of_core_0() {
  std::vector<Host::Cache> caches;
  for (int k = 0; k < 16; ++k) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(k) + "/";
    const std::string level = line_of(folder + "level"), type = line_of(folder + "type");
    if (level.empty()) break;
    if (type == "Instruction") continue;
    const std::string name = "L" + level + (type == "Data" ? "d" : "");
    caches.push_back({name, line_of(folder + "size"), line_of(folder + "shared_cpu_list")});
  }
  return caches;
}

/// The same on all ranks but for the cores that they are bound to: ask before binding.
inline Host host_here() {
  Host host;
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  host.name = name;
  host.processor = processor_name();
  utsname system{};
  if (uname(&system) == 0) host.system = std::string(system.sysname) + " " + system.release + " " + system.machine;
  host.compiler = compiler_name();
  host.library = "meshwise " + std::to_string(meshwise::version_major) + "." + std::to_string(meshwise::version_minor) +
                 "." + std::to_string(meshwise::version_patch);
  host.governor = line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  host.huge_pages = line_of("/sys/kernel/mm/transparent_hugepage/enabled");
  host.cores = static_cast<int>(usable_core_numbers().size());
  host.online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  std::ifstream("/proc/loadavg") >> host.load;
  host.caches = caches_of_core_0();
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32] = {};
  if (gmtime_r(&now, &parts) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  host.date = text;
  return host;
}

}  // namespace harness
