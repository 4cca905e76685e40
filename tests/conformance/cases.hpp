// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "factors.hpp"
#include "meshwise/schedule/any_generator.hpp"
#include "meshwise/schedule/schedule.hpp"
#include "meshwise/topology/topology.hpp"

/// Which cases there are, and what the library must do with each.
namespace conformance {

/// The sizes of a case: of every rank's parts, in elements.
struct Sizes {
  std::size_t count = 0;             ///< of the whole vector; of one rank or pair for gather, scatter, all_to_all
  std::vector<std::size_t> counts;   ///< per rank, for ragged operations; of a redistribution before it
  std::vector<std::size_t> counts2;  ///< of a redistribution, after it
  std::vector<std::size_t> pairs;    ///< for all_to_all_v and group: from s to d at [s * p + d]
  bool empty_somewhere = false;      ///< whether some rank's block is empty
};
Sizes sizes_of(const Case& c);

/// How the ranks are wired.
meshwise::Topology topology_of(const Case& c);

/// The form with one span, where it is compiled: in half of the cases in place.
bool in_one_span(const Case& c);

/// The schedule that the case passes to the library if its algorithm is `custom`.
meshwise::AnyGenerator custom_generator(const Case& c);

/// The shape that the library's operation comes down to.
meshwise::Shape shape_of(const Case& c, const meshwise::Routes* routes);

enum class Expected : std::uint8_t {
  works,
  refused,  ///< invalid_argument on all ranks, before anything is sent
};
Expected expected_of(const Case& c);

/// A sample: for every operation each pair of values of all other factors in a case that works, if there is one; then
/// for every operation each value of every factor in a case that is refused, if there is one.
///
/// Greedy: as long as a pair is missing, the best of some random cases with that pair is taken.
std::vector<Case> covering_sample(std::uint64_t seed);

/// All cases of one size and wiring in which the schedule varies, and all in which the arithmetic does.
///
/// The two meet in the size of an element, the kernels, and the constraints on the order of combination only, so their
/// product is not taken: each combination of (operation, algorithm, place, count, ragged, root, lanes) comes with one
/// of (element, combination, reproducible, wire, values), drawn among those for which it works, and each of the latter
/// with one of the former for each operation. `how` is drawn: blocking and started calls are the same steps, with and
/// without waits. Of the schedules that are refused with all arithmetic that was drawn, one in sixteen is tried.
/// Wirings other than `flat` matter to the algorithms `automatic`, `torus` and `hierarchical` only.
std::vector<Case> product(int ranks, Wiring wiring, std::uint64_t seed);

}  // namespace conformance
