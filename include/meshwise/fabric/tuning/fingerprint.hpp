// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshwise/fabric/shared_memory/system_text.hpp"
#include "meshwise/version.hpp"

namespace meshwise {

/// What measured times depend on: the library, the processor, the cores that a job may use, how they are placed and
/// what they have for caches. By words that a person can read.
struct Fingerprint {
  enum Key { version, cpu, cores, topology, caches };
  static constexpr int count = caches + 1;
  static constexpr const char* names[count] = {"version", "cpu", "cores", "topology", "caches"};

  std::string values[count];  ///< an empty one is not known, or does not matter

  /// Of this host, for a job that may use so many cores.
  /// Cost: reads a file for each processor of the host, and a few more.
  static Fingerprint here(int cores);

  /// Which one differs first; empty values are equal to all. -1: none does.
  int difference(const Fingerprint& other) const {
    for (int k = 0; k < count; ++k) {
      if (!values[k].empty() && !other.values[k].empty() && values[k] != other.values[k]) return k;
    }
    return -1;
  }

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

namespace detail {

/// A text on one line without control bytes, '#' and blanks at its ends, single blanks inside, and not too long.
inline std::string plain_text(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, 200)) {
    const bool blank = c == ' ' || c == '\t' || c == '\n';
    if (blank && (result.empty() || result.back() == ' ')) continue;
    result += blank ? ' ' : c > ' ' && c <= '~' && c != '#' ? c : '?';
  }
  if (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

/// The numbers of a list as the system writes it: "0-3,8".
inline std::vector<int> numbers_of(std::string_view list) {
  constexpr int most = 1 << 16;
  std::vector<int> numbers;
  int first = -1, value = -1;
  const auto flush = [&] {
    for (int k = first < 0 ? value : first; k >= 0 && k <= value && numbers.size() < most; ++k) numbers.push_back(k);
    first = value = -1;
  };
  for (const char c : list) {
    if (c >= '0' && c <= '9') {
      value = std::min((value < 0 ? 0 : value) * 10 + (c - '0'), most);
    } else if (c == '-') {
      first = value;
      value = -1;
    } else {
      flush();
    }
  }
  flush();
  return numbers;
}

/// "2048K", "2M" or "100" in bytes; 0 for everything else.
inline std::uint64_t bytes_of(std::string_view text) {
  int shift = 0;
  if (!text.empty() && (text.back() == 'K' || text.back() == 'M')) {
    shift = text.back() == 'K' ? 10 : 20;
    text.remove_suffix(1);
  }
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || value > std::uint64_t{1} << 36) return 0;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value << shift;
}

/// What the files of a host say; root: "" but in tests.
class HostFiles {
 public:
  explicit HostFiles(std::string root) : root_(std::move(root)) {}

  /// The name of the processor; where the system has none, the numbers that identify it.
  std::string cpu() const {
    const std::string text = system_text(root_ + "/proc/cpuinfo");
    for (const char* key : {"model name", "Model", "cpu model", "CPU part", "uarch"}) {
      const std::string value = field(text, key);
      if (!value.empty()) return value;
    }
    return "unknown";
  }

  /// "packages=1 nodes=1 threads=1": sockets, memory nodes, hardware threads per core.
  std::string topology() const {
    const std::string cpus = root_ + "/sys/devices/system/cpu/";
    std::vector<std::string> packages;
    for (const int number : numbers_of(system_text(cpus + "online"))) {
      packages.push_back(system_text(cpus + "cpu" + std::to_string(number) + "/topology/physical_package_id"));
    }
    std::sort(packages.begin(), packages.end());
    const auto different = std::unique(packages.begin(), packages.end()) - packages.begin();
    const std::size_t nodes = numbers_of(system_text(root_ + "/sys/devices/system/node/has_cpu")).size();
    const std::size_t threads = numbers_of(system_text(first(cpus) + "/topology/thread_siblings_list")).size();
    return "packages=" + std::to_string(std::max<long>(different, 1)) +
           " nodes=" + std::to_string(std::max<std::size_t>(nodes, 1)) +
           " threads=" + std::to_string(std::max<std::size_t>(threads, 1));
  }

  /// The bytes of the cache of the second level, which few cores share; 0 if it is not known.
  std::uint64_t second_level_cache() const {
    const std::string folder = first(root_ + "/sys/devices/system/cpu/") + "/cache/index";
    for (int k = 0; k < 10; ++k) {
      const std::string one = folder + std::to_string(k) + "/";
      const std::string level = plain_text(system_text(one + "level"));
      if (level.empty()) break;
      if (level == "2" && plain_text(system_text(one + "type")) != "Instruction") {
        return bytes_of(plain_text(system_text(one + "size")));
      }
    }
    return 0;
  }

  /// "L1=48K L2=2048K L3=266240K", of the first processor; those for instructions left out.
  std::string caches() const {
    const std::string folder = first(root_ + "/sys/devices/system/cpu/") + "/cache/index";
    std::string text;
    for (int k = 0; k < 10; ++k) {
      const std::string one = folder + std::to_string(k) + "/";
      const std::string level = system_text(one + "level");
      if (level.empty()) break;
      if (plain_text(system_text(one + "type")) == "Instruction") continue;
      text += (text.empty() ? "L" : " L") + plain_text(level) + "=" + plain_text(system_text(one + "size"));
    }
    return text.empty() ? "unknown" : plain_text(text);
  }

 private:
  static std::string field(const std::string& text, std::string_view key) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view entry = std::string_view(text).substr(at, end - at);
      at = end + 1;
      const std::size_t colon = entry.find(':');
      if (colon != std::string_view::npos && plain_text(entry.substr(0, colon)) == key) {
        return plain_text(entry.substr(colon + 1));
      }
    }
    return {};
  }

  static std::string first(const std::string& cpus) {
    const std::vector<int> online = numbers_of(system_text(cpus + "online"));
    return cpus + "cpu" + std::to_string(online.empty() ? 0 : online.front());
  }

  std::string root_;
};

/// The fingerprint of a host by its files.
inline Fingerprint fingerprint_of(const HostFiles& host, int cores) {
  Fingerprint result;
  result.values[Fingerprint::version] =
      std::to_string(version_major) + "." + std::to_string(version_minor) + "." + std::to_string(version_patch);
  result.values[Fingerprint::cpu] = host.cpu();
  result.values[Fingerprint::cores] = std::to_string(cores);
  result.values[Fingerprint::topology] = host.topology();
  result.values[Fingerprint::caches] = host.caches();
  return result;
}

}  // namespace detail

inline Fingerprint Fingerprint::here(int cores) { return detail::fingerprint_of(detail::HostFiles(""), cores); }

}  // namespace meshwise
