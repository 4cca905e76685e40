// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "meshwise/collective/call.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/collective/detail/arguments.hpp"

namespace meshwise {

/// Puts the blocks of all ranks together in rank order; every rank gets the whole vector.
///
/// out: N elements on every rank, N the same everywhere. in: block r of N, which begins at floor(r N / p), so that
/// equal blocks are those of N = p n; it may be empty. In place: `in` is exactly that part of `out`, on all ranks (an
/// empty `in` too must point there). Elements are of any trivially copyable type.
/// Cost per rank: receives N minus its own block. Synchronises the ranks.
/// Ordering and lifetime: on return the spans are the caller's again. A group of one copies.
/// Errors: as all_reduce; sizes that do not fit are named with the ones that do.
template <detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out>
void all_gather(Communicator& communicator, const In& in, Out&& out, const CollectiveOptions& options = {}) {
  using T = detail::item_t<Out>;
  const std::span<const T> input = detail::reading(in);
  const std::span<T> output = detail::writing(out);
  const Endpoint& endpoint = communicator.endpoint("all_gather");
  const int rank = endpoint.rank();
  const std::size_t count = output.size();
  const Range part = detail::rank_part(count, endpoint.size(), rank);
  detail::require_count("all_gather", "an input as long as this rank's block of the output", part.size, input.size(),
                        rank);
  detail::require_data("all_gather", "input", input.data(), input.size(), rank);
  detail::require_data("all_gather", "output", output.data(), count, rank);
  Call call = detail::span_call("all_gather", Operation::all_gather, input.data(), output.data(), count, options);
  // With fewer elements than ranks an empty block may lie at its in-place position by accident, on some ranks only.
  // Then nobody is in place: a block that really is coincides exactly with where it goes, which is harmless.
  const bool coincide = count > 0 && output.data() + part.begin == input.data();
  call.shape.in_place = coincide && count >= static_cast<std::size_t>(endpoint.size());
  if (!coincide) {
    detail::require_apart("all_gather", input, output, "pass one span whose block of this rank is the input", rank);
  }
  communicator.run(call);
}

/// The same in place: this rank's block of `data` is the input.
template <detail::Writable Data>
void all_gather(Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
  const auto all = detail::writing(data);
  const Endpoint& endpoint = communicator.endpoint("all_gather");
  const Range part = detail::rank_part(all.size(), endpoint.size(), endpoint.rank());
  const auto own = all.subspan(part.begin, part.size);
  all_gather(communicator, own, all, options);
}

}  // namespace meshwise
