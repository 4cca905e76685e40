// SPDX-License-Identifier: Apache-2.0
// meshwise-tune: measures the algorithms on this host and writes the table that MESHWISE_TUNING names.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "meshwise/fabric/memory/cores.hpp"
#include "meshwise/fabric/tuning/fingerprint.hpp"
#include "meshwise/fabric/tuning/job_settings.hpp"
#include "meshwise/fabric/tuning/selection_file.hpp"
#include "meshwise/version.hpp"
#include "tune/job.hpp"
#include "tune/options.hpp"
#include "tune/rules.hpp"

namespace {

/// Says what a table holds here; 1 if that is nothing.
int check(const std::string& path) {
  const std::string name = meshwise::detail::plain_text(path);
  const std::string text = meshwise::detail::selection_text(path, name);
  const meshwise::SelectionFile head = meshwise::SelectionFile::head(text, name);
  const meshwise::Fingerprint here = meshwise::Fingerprint::here(meshwise::detail::usable_cores());
  if (head.version != meshwise::SelectionFile::format) {
    std::printf("%s: its format is %d, this program reads %d: programs ignore it\n", name.c_str(), head.version,
                meshwise::SelectionFile::format);
    return 1;
  }
  if (const int other = head.fingerprint.difference(here); other >= 0) {
    std::printf("%s: measured with %s %s, here is %s: programs ignore it\n", name.c_str(),
                meshwise::Fingerprint::names[other], head.fingerprint.values[other].c_str(),
                here.values[other].c_str());
    return 1;
  }
  const meshwise::SelectionFile file = meshwise::SelectionFile::parse(text, name);
  std::printf("%s: %zu rules, measured here", name.c_str(), file.entries.size());
  for (const char* fabric : meshwise::SelectionFile::fabrics) {
    std::printf(", %d for %s", file.table(fabric, name).size, fabric);
  }
  std::printf("\n");
  return 0;
}

/// Writes a file as a whole, or not at all.
void write(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  std::FILE* const file = std::fopen(fresh.c_str(), "w");
  bool good = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  good = file != nullptr && std::fclose(file) == 0 && good;
  if (good && std::rename(fresh.c_str(), path.c_str()) == 0) return;
  const std::string why = std::strerror(errno);
  if (file != nullptr) std::remove(fresh.c_str());
  meshwise::fail("--output", "to write " + meshwise::detail::plain_text(path), why, "choose another file");
}

int work(const tune::Options& options) {
  if (!options.check.empty()) return check(options.check);
  if (!options.output.empty()) {
    // To find out before minutes of measuring.
    std::FILE* const file = std::fopen((options.output + ".new").c_str(), "w");
    if (file == nullptr) write(options.output, "");
    std::fclose(file);
    std::remove((options.output + ".new").c_str());
  }
  std::vector<tune::Point> points = tune::points_of(options);
  const int cores = tune::measure(points, options.seconds);
  meshwise::SelectionFile file;
  file.fingerprint = meshwise::Fingerprint::here(cores > 0 ? cores : meshwise::detail::usable_cores());
  file.entries = tune::rules_of(points);
  const std::string text = file.text();
  // What is written must be what will be read.
  const meshwise::SelectionFile again = meshwise::SelectionFile::parse(text, "the measured table");
  for (const char* fabric : meshwise::SelectionFile::fabrics) {
    static_cast<void>(again.table(fabric, "the measured table"));
  }
  if (!options.output.empty()) {
    write(options.output, text);
  } else {
    std::fputs(text.c_str(), stdout);
  }
  std::size_t better = 0;
  for (const tune::Point& point : points) better += point.result.algorithm != meshwise::Algorithm::automatic;
  std::fprintf(stderr, "meshwise-tune: %zu points, another algorithm than the library's at %zu of them\n",
               points.size(), better);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const tune::Options options = tune::read(count, arguments);
    int code = 0;
    if (options.print == nullptr) {
      code = work(options);
    } else if (options.print[0] != '\0') {
      std::fputs(options.print, stdout);
    } else {
      std::printf("meshwise-tune %d.%d.%d\n", meshwise::version_major, meshwise::version_minor,
                  meshwise::version_patch);
    }
    return std::fflush(stdout) == 0 ? code : 1;
  } catch (const tune::Refusal& refusal) {
    std::fprintf(stderr, "meshwise-tune: %s; see meshwise-tune --help\n", refusal.text.c_str());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "meshwise-tune: %s\n", error.what());
    return 1;
  }
}
