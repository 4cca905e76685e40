// SPDX-License-Identifier: Apache-2.0
// meshwise-bench: see help.cpp.
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "document.hpp"
#include "job.hpp"
#include "meshwise/bootstrap/environment.hpp"
#include "meshwise/bootstrap/launch_processes.hpp"
#include "meshwise/bootstrap/run.hpp"
#include "meshwise/bootstrap/shared_memory.hpp"
#include "meshwise/fabric/thread/launch.hpp"
#include "page.hpp"
#include "table.hpp"

namespace {

using namespace harness;

int refuse(const std::string& what) {
  std::fprintf(stderr, "meshwise-bench: %s; see meshwise-bench --help\n", what.c_str());
  return 2;
}

/// Where the command line says nothing of fabrics.
std::vector<std::string> usual_fabrics() {
  const char* const name = std::getenv("MESHWISE_FABRIC");
  if (name == nullptr || *name == '\0') return {"shared_memory"};
  if (name != std::string("shared_memory") && name != std::string("thread")) {
    throw BadOption("MESHWISE_FABRIC: this program has shared_memory and thread; name one of them, or remove it");
  }
  return {name};
}

/// Files that can be written are found out before anything is measured.
void open_for_writing(const std::string& option, const std::string& path) {
  if (path.empty()) return;
  std::FILE* const file = std::fopen(path.c_str(), "a");
  if (file == nullptr) throw BadOption(option + ": " + path + " cannot be written; name a file in a folder of yours");
  std::fclose(file);
}

int finish(const Options& options, const Host& host, const Board& board, const PeerResults& peers) {
  if (!options.json.empty()) write_file(options.json, document(options, host, board));
  if (!options.html.empty()) write_file(options.html, page(options, host, board, peers));
  return board.wrong() == 0 ? 0 : 1;
}

/// Each fabric and number of ranks in turn, started from here.
int start(const Options& options, const Host& host, Board& board, const PeerResults& peers) {
  cpu_set_t cores;
  sched_getaffinity(0, sizeof cores, &cores);
  Table(options).begin(host);
  std::fflush(stdout);
  for (const std::string& fabric : options.fabrics) {
    for (const int ranks : options.ranks) {
      const bool processes = fabric == "shared_memory";
      const auto program = [&](meshwise::Communicator& world) { run_job(world, options, processes, board); };
      if (processes) {
        meshwise::launch_processes(ranks, program);
      } else {
        meshwise::launch(ranks, program);
      }
      sched_setaffinity(0, sizeof cores, &cores);  // rank 0 may have been this thread
    }
  }
  return finish(options, host, board, peers);
}

/// This process is a rank already.
int join(const Options& options, const Host& host, Board& board, const PeerResults& peers) {
  int code = 0;
  const auto program = [&](meshwise::Communicator& world) {
    if (world.rank() == 0) Table(options).begin(host);
    run_job(world, options, true, board);
    if (world.rank() == 0) code = finish(options, host, board, peers);
  };
  const int failed = meshwise::run<meshwise::fabrics<meshwise::shared_memory>>(program);
  return failed != 0 ? failed : code;
}

}  // namespace

int main(int count, char** arguments) {
  const Host host = host_here();
  try {
    const auto place = meshwise::place_from_environment();
    const bool speaks = !place || place->rank == 0;
    Options options;
    PeerResults peers;
    try {
      options.fabrics = usual_fabrics();
      if (place) options.ranks = {place->size};
      options = parse_options({arguments + 1, arguments + count}, options);
      if (options.help) {
        if (speaks) std::fputs(help_text, stdout);
        return 0;
      }
      if (place) {
        options.ranks = {place->size};
        options.fabrics = {"shared_memory"};
        if (options.root >= place->size) {
          throw BadOption("--root " + std::to_string(options.root) + " is no rank of " + std::to_string(place->size) +
                          "; choose one below, or more ranks with meshwise-run -n");
        }
      }
      if (!options.peers.empty()) peers = read_peers(options.peers);
      if (speaks) {
        open_for_writing("--json", options.json);
        open_for_writing("--html", options.html);
      }
    } catch (const BadOption& bad) {
      return speaks ? refuse(bad.what()) : 2;
    }
    Board board(most_points(options));
    return place ? join(options, host, board, peers) : start(options, host, board, peers);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "meshwise-bench: %s\n", error.what());
    return 1;
  }
}
