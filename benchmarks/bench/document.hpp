// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "host.hpp"
#include "job.hpp"
#include "options.hpp"

namespace harness {

/// What another program took for the same.
struct PeerPoint {
  std::string name;    ///< which, such as "best peer"
  std::string detail;  ///< which of them, or in which setting
  std::string operation;
  int ranks = 0;
  double bytes = 0;
  double microseconds = 0;
  bool in_place = false;
};

struct PeerResults {
  std::vector<PeerPoint> points;
  std::string host;  ///< where it was measured
};

/// Everything that was measured, as one JSON document.
std::string document(const Options& options, const Host& host, const Board& board);

/// Reads what `./run bench --peers --json` or `document` has written. Errors: BadOption.
PeerResults read_peers(const std::string& path);

/// The same of a text.
PeerResults peers_of(const std::string& text);

/// Errors: std::runtime_error.
void write_file(const std::string& path, const std::string& text);

}  // namespace harness
