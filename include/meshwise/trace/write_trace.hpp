// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/collective/gather_v.hpp"
#include "meshwise/core/deadline.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/trace/detail/json.hpp"
#include "meshwise/trace/timeline.hpp"

namespace meshwise {

namespace detail {

inline Communicator& communicator_of(Communicator& communicator) { return communicator; }
template <class Grid>
Communicator& communicator_of(const Grid& mesh) {
  return mesh.world();
}

/// Writes a file, in one piece. 0, or the errno.
inline int write_file(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return errno;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int problem = written ? 0 : errno;
  if (std::fclose(file) != 0 && written) return errno;
  return problem;
}

}  // namespace detail

/// Writes what all ranks have recorded into one file in Chrome's trace format, for https://ui.perfetto.dev or
/// chrome://tracing: a process per rank, with its spans, blocking operations and waits as nested slices, and what was
/// in flight as asynchronous ones; each operation says its axis, ranks and bytes.
///
/// where: a Communicator, whose ranks are written under their numbers there, or a mesh, for its world; recorded or not,
/// what happens here is not recorded. timeline: this rank's. path: written by rank 0. The first event is time 0; clocks
/// are the ranks' own, so they agree on one machine.
/// Cost: collective; about 200 bytes per event travel to rank 0. Errors: `invalid_argument` on all ranks if the file
/// cannot be written; those of collectives.
template <class Where>
void write_trace(Where&& where, Timeline& timeline, const std::string& path) {
  auto& communicator = detail::communicator_of(where);
  const int rank = communicator.endpoint("write_trace").rank();
  const Timeline::Pause pause(timeline);
  const std::int64_t now = timeline.now();
  std::array<std::int64_t, 1> origin{now};
  for (const Timeline::Event& event : timeline.events()) origin[0] = event.begin < origin[0] ? event.begin : origin[0];
  all_reduce<Min>(communicator, origin);

  std::string own = detail::trace_events(timeline, rank, origin[0], now);
  own += rank + 1 < communicator.size() ? ",\n" : "\n";
  const std::array<std::size_t, 1> bytes{own.size()};
  std::vector<std::size_t> sizes(static_cast<std::size_t>(communicator.size()));
  all_gather(communicator, bytes, sizes);
  std::string all;
  if (rank == 0) {
    std::size_t whole = 0;
    for (const std::size_t size : sizes) whole += size;
    all.resize(whole);
  }
  gather_v(communicator, own, all, sizes, 0);

  std::array<std::int32_t, 1> problem{};
  if (rank == 0)
    problem[0] = detail::write_file(path, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + all + "]}\n");
  broadcast(communicator, problem, 0);
  if (problem[0] == 0) return;
  fail("write_trace", "a file that rank 0 can write", path + ": " + std::strerror(problem[0]), "choose another path",
       rank);
}

}  // namespace meshwise
