// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshwise/bootstrap/detail/text.hpp"
#include "meshwise/bootstrap/environment.hpp"
#include "meshwise/core/error.hpp"

namespace meshwise::detail {

/// Where a program is: as the shell finds it, by PATH unless its name has a '/'. error: 0, ENOENT, or why what was
/// found cannot be executed.
struct FoundProgram {
  std::string path;
  int error = ENOENT;

  static FoundProgram find(const std::string& name) {
    FoundProgram best;
    best.path = name;
    if (name.find('/') != std::string::npos) {
      best.error = trouble(name);
      return best;
    }
    const char* const variable = std::getenv("PATH");
    std::string_view rest = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
    while (!name.empty()) {
      const std::size_t colon = rest.find(':');
      const std::string folder(rest.substr(0, colon));
      std::string path = (folder.empty() ? "." : folder) + "/" + name;
      const int error = trouble(path);
      if (error == 0) return {std::move(path), 0};
      if (error == EACCES && best.error == ENOENT) best = {std::move(path), error};
      if (colon == std::string_view::npos) break;
      rest = rest.substr(colon + 1);
    }
    return best;
  }

 private:
  static int trouble(const std::string& path) {
    struct stat about {};
    if (stat(path.c_str(), &about) != 0) return errno;
    if (S_ISDIR(about.st_mode)) return EISDIR;
    return access(path.c_str(), X_OK) == 0 ? 0 : EACCES;
  }
};

/// A program with its arguments and what its environment has besides this process's, ready to be executed: after a
/// fork nothing has to be allocated but by `become`.
class Command {
 public:
  /// words: the program and its arguments. settings: "NAME=VALUE".
  Command(std::string path, const std::vector<std::string>& words, const std::vector<std::string>& settings)
      : path_(std::move(path)), words_(words) {
    for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
      if (!replaced(*one, settings)) base_.push_back(*one);
    }
    for (std::size_t k = 0; k < settings.size(); ++k) {
      const std::vector<std::string> later(settings.begin() + static_cast<std::ptrdiff_t>(k) + 1, settings.end());
      if (!replaced(settings[k], later)) base_.push_back(settings[k]);
    }
  }

  /// Becomes the program, as one rank of a job. Returns errno if it cannot.
  int become(const Place& place) {
    std::vector<std::string> environment = base_;
    const std::string values[PlaceVariables::count] = {
        std::to_string(place.rank), std::to_string(place.size), std::to_string(place.local_rank),
        std::to_string(place.local_size), PlaceReader::job(place.control, place.arenas)};
    for (int k = 0; k < PlaceVariables::count; ++k) {
      environment.push_back(std::string(PlaceVariables::names[k]) + "=" + values[k]);
    }
    std::vector<char*> arguments = pointers(words_);
    std::vector<char*> settings = pointers(environment);
    execvpe(path_.c_str(), arguments.data(), settings.data());
    return errno;
  }

  /// Errors: `invalid_argument` if a setting is none, or is one of those that say who a rank is.
  static void check(const char* operation, const std::vector<std::string>& settings) {
    for (const std::string& setting : settings) {
      const std::string name = setting.substr(0, setting.find('='));
      if (name.empty() || name.size() == setting.size()) {
        fail(operation, "an environment setting NAME=VALUE", quoted(setting), "write the name, '=' and the value");
      }
      if (is_place(name)) {
        fail(operation, "a setting that is not the launcher's own", quoted(setting), "leave " + name + " to it");
      }
    }
  }

 private:
  static bool is_place(std::string_view name) {
    for (const char* const one : PlaceVariables::names) {
      if (name == one) return true;
    }
    return false;
  }

  static bool replaced(std::string_view entry, const std::vector<std::string>& settings) {
    const std::string_view name = entry.substr(0, entry.find('='));
    for (const std::string& setting : settings) {
      if (std::string_view(setting).substr(0, setting.find('=')) == name) return true;
    }
    return is_place(name);
  }

  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
  }

  std::string path_;
  std::vector<std::string> words_;
  std::vector<std::string> base_;
};

}  // namespace meshwise::detail
