// SPDX-License-Identifier: Apache-2.0
// meshwise beside the libraries that one would use instead, on the same work in the same run. See --help.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../bench/host.hpp"
#include "contestants.hpp"
#include "measure.hpp"
#include "meshwise_ranks.hpp"
#include "options.hpp"
#include "report.hpp"
#include "settings.hpp"

namespace {

using namespace peers;

/// Of all libraries those whose program has been built; what is missing is said.
std::vector<Setting> settings_for(const Options& options, const std::string& folder, bool crowded,
                                  std::vector<std::pair<std::string, std::string>>& libraries) {
  std::vector<Setting> found;
  const auto asked = [&](const std::string& name) {
    return options.only.empty() || std::any_of(options.only.begin(), options.only.end(),
                                               [&](const std::string& one) { return name.rfind(one, 0) == 0; });
  };
  const auto note = [&](const std::string& library, const std::string& what) {
    for (const auto& [name, text] : libraries) {
      if (name == library) return;
    }
    libraries.emplace_back(library, what);
  };
  for (Setting& setting : known_settings(folder, crowded)) {
    if (!is_there(program_of(setting, folder))) {
      note(setting.library, std::string("absent; ") + remedy_of(setting.library));
      continue;
    }
    note(setting.library, "present");
    if (crowded && !setting.crowded && !options.all) {
      note(setting.name + " with more ranks than cores", "left out, it does not give its core away; --all has it");
      continue;
    }
    if (asked(setting.name)) found.push_back(std::move(setting));
  }
  for (const auto& [name, command] : options.more) {
    note(name, command);
    if (asked(name)) found.push_back({name, name, {"sh", "-c", "exec " + command}, {}, true});
  }
  return found;
}

std::string folder_of_this_program() { return std::filesystem::read_symlink("/proc/self/exe").parent_path().string(); }

[[noreturn]] void refuse_without_peers() {
  throw std::runtime_error(
      "no peer has been built. On Debian and Ubuntu: apt-get install openmpi-bin libopenmpi-dev mpich libmpich-dev "
      "libgloo-dev, then configure and build again; ./run bench --peers does both");
}

class Comparison {
 public:
  explicit Comparison(const Options& options)
      : options_(options), folder_(folder_of_this_program()), host_(harness::host_here()) {}

  int run() {
    const bool any = !settings_for(options_, folder_, false, libraries_).empty();
    settings_for(options_, folder_, true, libraries_);
    if (options_.list) return list();
    if (!any) {
      if (!options_.only.empty()) throw std::runtime_error("no peer that is there has such a name; see --list");
      refuse_without_peers();
    }
    header();
    Table table(options_.bars);
    table_ = &table;
    for (const int ranks : options_.ranks) {
      compare(ranks);
      if (!options_.json.empty()) write();
    }
    return footer();
  }

 private:
  int list() {
    for (const auto& [library, state] : libraries_) std::printf("%-12s %s\n", library.c_str(), state.c_str());
    for (const bool crowded : {false, true}) {
      std::printf("\nsettings with %s ranks %s cores:\n", crowded ? "more" : "as many", crowded ? "than" : "as");
      for (const Setting& setting : settings_for(options_, folder_, crowded, libraries_)) {
        std::printf("  %-18s", setting.name.c_str());
        for (const std::string& word : setting.command) std::printf(" %s", word.c_str());
        std::printf("\n");
      }
    }
    return 0;
  }

  void header() const {
    std::printf("# %s, %d of %d cores, %s, %s, %s\n", host_.processor.c_str(), host_.cores, host_.online,
                host_.system.c_str(), host_.compiler.c_str(), host_.date.c_str());
    for (const auto& [library, state] : libraries_) std::printf("# %s: %s\n", library.c_str(), state.c_str());
    if (host_.load > 0.5) std::printf("# the host is not idle: load %.2f\n", host_.load);
  }

  void compare(int ranks) {
    Contestants contestants(ranks);
    if (!contestants.valid()) throw std::runtime_error("no memory for " + std::to_string(ranks) + " ranks to share");
    std::vector<std::pair<int, bool>> ours;
    std::vector<int> others;
    for (const bool foreign : {false, true}) {
      if (foreign ? !options_.foreign : !options_.registered) continue;
      const auto run_ranks = [foreign](Board& board, int seat) { return run_meshwise(board, seat, !foreign); };
      ours.emplace_back(contestants.add("meshwise", foreign ? "meshwise-foreign" : "meshwise", run_ranks), foreign);
    }
    for (const Setting& setting : settings_for(options_, folder_, contestants.crowded(), libraries_)) {
      if (contestants.full()) break;
      const auto run_command = [&setting, ranks](Board&, int) { return execute(setting, ranks); };
      others.push_back(contestants.add(setting.library, setting.name, run_command));
    }
    for (int seat = 0; seat < contestants.count(); ++seat) contestants.await(seat, 60);
    report(contestants.news());
    Measurement measurement(contestants, options_, ours, others);
    for (const Operation operation : options_.operations) {
      if (operation == Operation::send_recv && ranks != 2) continue;
      for (const std::size_t bytes : sizes_of(options_, operation, ranks)) {
        for (const bool rewritten : {false, true}) {
          if (rewritten ? !options_.rewritten : !options_.kept) continue;
          if (operation == Operation::barrier && rewritten && options_.kept) continue;
          if (options_.verbose) {
            std::fprintf(stderr, "%s, %d ranks, %zu bytes\n", name_of(operation), ranks, bytes);
          }
          take(measurement.points(operation, bytes, rewritten));
        }
      }
    }
  }

  void report(const std::vector<std::string>& notes) {
    for (const std::string& note : notes) {
      std::printf("# %s\n", note.c_str());
      if (note.rfind("meshwise", 0) == 0) failed_ = true;
    }
  }

  void take(std::vector<Point> found) {
    for (std::size_t k = 0; k < found.size(); ++k) {
      Point& point = found[k];
      if (k == 0) report(point.notes);
      table_->add(point);
      if (options_.verbose && k == 0) {
        for (const auto& [name, us] : point.scouted)
          std::fprintf(stderr, "  %-20s %s\n", name.c_str(), text_of_us(us).c_str());
      }
      points_.push_back(std::move(point));
    }
  }

  void write() const {
    std::ofstream file(options_.json);
    file << json_of(host_, options_, points_, libraries_);
    file.flush();
    if (!file) throw std::runtime_error("cannot write " + options_.json);
  }

  int footer() const {
    if (!options_.bars) return failed_ ? 1 : 0;
    int counts[4] = {};
    for (const Point& point : points_) ++counts[static_cast<int>(verdict_of(point))];
    std::printf("# %d pass, %d at 85 %% of the memory's limit, %d fail, %d not judged\n", counts[1], counts[2],
                counts[3], counts[0]);
    return failed_ || counts[3] > 0 ? 1 : 0;
  }

  const Options& options_;
  std::string folder_;
  harness::Host host_;
  std::vector<std::pair<std::string, std::string>> libraries_;
  std::vector<Point> points_;
  Table* table_ = nullptr;
  bool failed_ = false;
};

}  // namespace

int main(int count, char** arguments) {
  try {
    const Options options = options_of(count, arguments);
    if (options.help) {
      std::fputs(usage_text, stdout);
      return 0;
    }
    const Interruption interruption;
    return Comparison(options).run();
  } catch (const Interrupted&) {
    std::fprintf(stderr, "meshwise-peers: interrupted\n");
    return 130;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "meshwise-peers: %s\n", error.what());
    return 2;
  }
}
