// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "elements.hpp"
#include "meshwise/schedule/algorithm.hpp"
#include "operations.hpp"

namespace harness {

/// What the user has asked for.
struct Options {
  std::vector<Verb> verbs{Verb::all_reduce};
  std::size_t least = 8;
  std::size_t most = std::size_t{128} << 20;
  double factor = 2;
  std::size_t step = 0;  ///< bytes; 0: by factors
  int iterations = 0;    ///< 0: as many as fit into `seconds`
  int warm_up = 5;
  int checks = 1;
  double seconds = 0.1;  ///< for the single calls of one form of a point
  int batch = 0;         ///< calls timed together; 0: chosen
  std::vector<Redop> redops{Redop::sum};
  std::vector<meshwise::ElementKind> elements{meshwise::ElementKind::f32};
  int root = 0;  ///< -1: each in turn
  std::vector<int> ranks{2};
  std::vector<std::string> fabrics{"shared_memory"};
  bool all_algorithms = false;
  std::vector<meshwise::Algorithm> algorithms{meshwise::Algorithm::automatic};
  bool out_of_place = true;
  bool in_place = true;
  bool registered = true;
  bool foreign = false;
  bool warm = true;
  bool cold = false;
  bool rewrite = false;
  bool ragged = false;
  bool reproducible = false;
  bool bind = true;
  int lanes = 0;
  std::string json, html, peers;
  bool help = false;
};

/// A command line that cannot be followed: what() says why, and what to write instead.
class BadOption : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// words: without the program's name. options: what holds where they say nothing. Errors: BadOption.
Options parse_options(const std::vector<std::string>& words, Options options = {});

extern const char* const help_text;

}  // namespace harness
