// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/tensor/convert.hpp"
#include "meshwise/tensor/detail/facts.hpp"

namespace meshwise {

namespace detail {

/// A rank's piece of a tensor, for comparisons.
struct PieceFacts {
  TensorFacts tensor;
  const std::byte* data;
  std::size_t size;     ///< elements
  std::size_t element;  ///< bytes of one
  std::string (*text)(const std::byte* value);
};

template <class T>
PieceFacts piece_facts_of(const T& x) {
  using E = typename T::element;
  const std::size_t size = x.local().size();
  return {facts_of(x), size == 0 ? nullptr : reinterpret_cast<const std::byte*>(x.local().data()), size, sizeof(E),
          &text_of_value<E>};
}

/// The axes along which all ranks hold the same.
inline unsigned replicated_axes(const TensorFacts& facts) {
  return wide_axes_where(facts.view, [&](int a) { return facts.layout.is(a, PlacementKind::replicate); });
}

/// Where a rank of a group stands: "dp 0, tp 1".
inline std::string seat_text(const GridView& view, unsigned set, int rank) {
  const GroupAxes group(view, set);
  std::string text;
  for (int i = group.count; i-- > 0;) {
    const MeshAxis& axis = view.axis(group.axis[static_cast<std::size_t>(i)]);
    text.insert(0, axis.name + " " + std::to_string(rank % axis.size) + (text.empty() ? "" : ", "));
    rank /= axis.size;
  }
  return text;
}

/// The global indices of a local element: "batch 3, seq 5".
inline std::string index_text(const TensorFacts& facts, std::size_t local) {
  const LayoutNames names = names_for(facts.view, facts.layout, facts.dims);
  const Seat seat(facts.view);
  std::string text;
  for (int d = facts.layout.dims; d-- > 0;) {
    const Positions held = positions_of(facts.layout, d, facts.extents[d], seat);
    text.insert(0, names.dims[static_cast<std::size_t>(d)] + " " + std::to_string(held.at(local % held.size())) +
                       (text.empty() ? "" : ", "));
    local /= held.size();
  }
  return text.empty() ? "its only element" : text;
}

/// The first element in which the own piece differs from that of `reference`, at least one byte of it; its number, or
/// the size. All ranks take part.
inline std::size_t first_difference(Communicator& ranks, const char* verb, const PieceFacts& x, int reference) {
  constexpr std::size_t most = std::size_t{1} << 16;
  const std::size_t bytes = x.size * x.element;
  std::vector<std::byte> theirs(bytes < most ? bytes : most);
  std::size_t found = bytes;
  for (std::size_t first = 0; first < bytes; first += most) {
    const std::size_t n = bytes - first < most ? bytes - first : most;
    if (ranks.rank() == reference) std::memcpy(theirs.data(), x.data + first, n);
    broadcast_for_check(ranks, verb, theirs.data(), n, reference);
    for (std::size_t i = 0; i < n && found == bytes; ++i) {
      if (theirs[i] != x.data[first + i]) found = first + i;
    }
  }
  return found / x.element;
}

/// Compares the pieces of all ranks along some axes bit by bit. verb: a literal. Errors: `mismatch`, on all ranks.
inline void compare_replicas(const char* verb, const PieceFacts& x, unsigned set) {
  if (set == 0) return;
  Communicator& ranks = *x.tensor.view.along(set).line;
  Digest digest;
  digest.add(x.data, x.size * x.element);
  const Dissent dissent = dissent_among(gathered_for_check(ranks, verb, digest));
  if (dissent.other < 0) return;
  std::uint64_t number = first_difference(ranks, verb, x, dissent.reference);
  broadcast_for_check(ranks, verb, &number, sizeof number, dissent.other);
  const auto at = static_cast<std::size_t>(number);
  const auto value_on = [&](int rank) {
    return text_of_rank(ranks, verb, x.text(x.data + at * x.element), rank) + " on rank " + std::to_string(rank) +
           " (" + seat_text(x.tensor.view, set, rank) + ")";
  };
  Report report;
  report.code = Code::mismatch;
  report.operation = verb;
  report.rank = ranks.rank();
  report.axis = ranks.name();
  report.ranks = {dissent.reference, dissent.other};
  report.expected = "the same bits in all replicas";
  report.found = "at " + index_text(x.tensor, at) + " first " + value_on(dissent.reference) + " and ";
  report.found += value_on(dissent.other);
  report.remedy = "find what was computed from other values, or in another order, or claim a Partial if a sum is owed";
  throw Error(std::move(report));
}

/// Checks a claim across ranks: what the tensor is like, on the ranks of `stated`, then the replicas along `compared`,
/// some of these axes. problem: what this rank refuses by itself, and throws when this returns.
inline void check_claim(const char* verb, const PieceFacts& x, unsigned stated, unsigned compared,
                        std::string problem = {}) {
  if (stated == 0) return;
  Statement statement;
  state_tensor(statement, x.tensor);
  const bool refused = !problem.empty();
  statement.set_problem(std::move(problem));
  statement.compare(*x.tensor.view.along(stated).line, verb);
  if (!refused) compare_replicas(verb, x, compared);
}

/// What a verb does that refuses a claim on this rank, so that the others do not wait for it to compare theirs.
inline void tell_others(const char* verb, const TensorFacts& facts, unsigned stated, const Error& error) {
  if (facts.view.state->checks != Checks::communicating) return;
  check_claim(verb, {facts, nullptr, 0, 1, nullptr}, stated, 0, error.what());
}

/// What a verb does that claims replicas, in communicating checks.
template <class T>
void check_replicas_if_asked(const char* verb, const T& x) {
  if (x.mesh().checks() != Checks::communicating) return;
  const PieceFacts facts = piece_facts_of(x);
  const unsigned set = replicated_axes(facts.tensor);
  check_claim(verb, facts, set, set);
}

}  // namespace detail

/// Checks that replicas are what they say: equal bit by bit on all ranks along the axes that replicate x.
///
/// x: any layout; what a Partial or a Shard holds along its own axis is not compared. Whatever the level of checks,
/// this checks: call it where ranks are suspected to drift apart. -0 and 0 differ, as do NaNs with other bits.
/// Cost: one pass over the own piece and two small messages to each rank, not counted as traffic; nothing where no
/// axis replicates. After a difference one broadcast of the piece. Ordering: collective over these axes.
/// Errors: `mismatch` on all their ranks alike, which names the first element that differs between what most ranks hold
/// and the first rank that holds something else, both ranks and both values; or the layouts or extents, if these
/// differ.
template <AnyTensor T>
void check_replicas(const T& x) {
  const detail::PieceFacts facts = detail::piece_facts_of(x);
  const unsigned set = detail::replicated_axes(facts.tensor);
  detail::check_claim("check_replicas", facts, set, set);
}

}  // namespace meshwise
