// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "factors.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/topology/topology.hpp"

/// The conformance list: what every fabric must do, whatever it is made of.
///
/// A fabric's test derives a World from it and calls `run_list`. Cases are generated: operations, algorithms, elements,
/// combinations, in and out of place, sizes, ragged counts, ranks 1 to 9, roots, lanes, blocking, started and prepared
/// calls, wire elements, rank order, wirings. Results are compared with plain loops, whole buffers with what they were
/// before, between canaries; refused cases must be refused by all ranks and leave the communicator usable.
/// MESHWISE_SEED chooses another sample, MESHWISE_FULL=1 the product, MESHWISE_CASE="..." one case, as it is printed;
/// with MESHWISE_VERBOSE set, rank 0 says on stderr which case comes next, for crashes.
namespace conformance {

/// What each rank of a world runs. Returns what it has to report, as lines.
class Program {
 public:
  virtual ~Program() = default;
  virtual std::string run(meshwise::Communicator& communicator) = 0;
};

/// A way to run a program on ranks: a fabric.
class World {
 public:
  virtual ~World() = default;

  virtual const char* name() const = 0;

  /// Runs the program on all ranks of a topology at the same time, in this process or as copies of it, and returns
  /// their reports in rank order. A rank that fails reports so itself; what it had reported before must not be lost.
  virtual std::vector<std::string> run(const meshwise::Topology& topology, Program& program) = 0;
};

/// What became of a list.
struct Outcome {
  std::size_t cases = 0;
  std::size_t refused = 0;            ///< of these, cases that had to be refused
  std::vector<std::string> failures;  ///< one line each, which names the case
};

/// Runs the sample, or what the environment wants instead. Says on stdout what was run.
///
/// every: only each so many-th case, for a fabric around another one that runs the list itself; the product is then the
/// whole sample.
Outcome run_list(World& world, std::size_t every = 1);

/// Runs some cases, which may differ in everything.
Outcome run_cases(World& world, const std::vector<Case>& cases);

/// What one rank does in one case: "ok", "refused", or what is wrong. Throws Errors that end the communicator.
std::string run_case(meshwise::Communicator& communicator, const Case& c);

}  // namespace conformance
