// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "meshwise/core/error.hpp"
#include "meshwise/core/log.hpp"
#include "meshwise/fabric/launch_options.hpp"
#include "meshwise/fabric/shared_memory/descriptor.hpp"
#include "meshwise/fabric/tuning/fingerprint.hpp"
#include "meshwise/fabric/tuning/selection_file.hpp"
#include "meshwise/schedule/selection_table.hpp"
#include "meshwise/schedule/settings.hpp"

namespace meshwise {

namespace detail {

/// The text of a table, no more of it than such a file may have.
inline std::string selection_text(const std::string& path, const std::string& name) {
  constexpr const char* remedy = "name a file that meshwise-tune has written, or remove the variable";
  const auto refuse = [&](const std::string& found) { fail(name, "a measured table that can be read", found, remedy); };
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat about {};
  if (!file || fstat(file.get(), &about) != 0) refuse(std::strerror(errno));
  if (!S_ISREG(about.st_mode)) refuse("something other than a file");
  std::string text;
  char part[8192];
  for (;;) {
    const ssize_t got = read(file.get(), part, sizeof(part));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(std::strerror(errno));
    if (got == 0) return text;
    text.append(part, static_cast<std::size_t>(got));
    if (text.size() > SelectionFile::most_bytes) {
      refuse("more than " + std::to_string(SelectionFile::most_bytes) + " bytes");
    }
  }
}

}  // namespace detail

/// The rules of a measured table for one fabric, to be put into Settings::table; an empty table, and one line on the
/// log that says why, if it was not measured here.
///
/// fabric: "thread" or "shared_memory". cores: that the job may use. log: how much is said.
/// Errors: `invalid_argument` if the file cannot be read or is not a table, with its line.
/// Cost: reads the file and those in which the system describes the host. To be called by whoever makes the world:
/// ranks that read different files would choose differently and wait for each other for ever.
inline SelectionTable read_selection_table(const std::string& path, std::string_view fabric, int cores,
                                           LogLevel log = LogLevel::warning) {
  const std::string name = "MESHWISE_TUNING: " + detail::plain_text(path);
  const std::string text = detail::selection_text(path, name);
  const SelectionFile head = SelectionFile::head(text, name);
  const Fingerprint here = Fingerprint::here(cores);
  const int other = head.fingerprint.difference(here);
  if (head.version != SelectionFile::format || other >= 0) {
    const std::string why = other < 0 ? "its format is " + std::to_string(head.version) + ", this library reads " +
                                            std::to_string(SelectionFile::format)
                                      : std::string("it was measured with ") + Fingerprint::names[other] + " " +
                                            head.fingerprint.values[other] + ", here is " + here.values[other];
    detail::Log(log).write(LogLevel::warning, name + " is ignored: " + why + "; run meshwise-tune here");
    return {};
  }
  const SelectionTable table = SelectionFile::parse(text, name).table(fabric, name);
  detail::Log(log).write(LogLevel::info,
                         name + ": " + std::to_string(table.size) + " rules for " + std::string(fabric));
  return table;
}

namespace detail {

/// The cache by which windows are cut, for a job that does not say: the C library knows it, or the files of the host.
inline std::uint64_t second_level_cache() {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  const long reported = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (reported > 0) return static_cast<std::uint64_t>(reported);
#endif
  return HostFiles("").second_level_cache();
}

/// What the options force upon a job; what they leave open, the environment, with the table of MESHWISE_TUNING.
inline Settings job_settings(const LaunchOptions& options, std::string_view fabric, int cores) {
  Settings settings = options.settings ? *options.settings : Settings::from_environment();
  const char* const path = options.settings ? nullptr : std::getenv("MESHWISE_TUNING");
  if (path != nullptr && *path != '\0') settings.table = read_selection_table(path, fabric, cores, settings.log);
  if (settings.cache == 0) settings.cache = second_level_cache();
  return settings;
}

}  // namespace detail
}  // namespace meshwise
