// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "meshwise/collective/call.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/fabric/wrapping.hpp"
#include "meshwise/schedule/question.hpp"

namespace meshwise {

namespace detail {

/// An endpoint on which every call is reproducible.
class ReproducibleEndpoint final : public WrappingEndpoint {
 public:
  using WrappingEndpoint::WrappingEndpoint;

  bool run(const Call& call) override { return WrappingEndpoint::run(in_rank_order(call)); }
  std::uint64_t digest(const Call& call) const override { return WrappingEndpoint::digest(in_rank_order(call)); }
  Owned<Running> start(const Call& call) override { return WrappingEndpoint::start(in_rank_order(call)); }
  std::string explain(const Question& question) override {
    Question asked = question;
    asked.reproducible = true;
    return WrappingEndpoint::explain(asked);
  }

 private:
  static Call in_rank_order(Call call) {
    call.reproducible = true;
    return call;
  }
  Owned<Endpoint> wrap(Owned<Endpoint> child) override {
    return Owned<Endpoint>(new ReproducibleEndpoint(std::move(child)));
  }
};

}  // namespace detail

/// The same ranks, on which all that is combined is combined in rank order (see CollectiveOptions::reproducible), also
/// in the groups that are split off.
///
/// Wrap the world before a mesh is made of it: sums of conversions, gradients and losses then have bits that depend
/// neither on their sizes, nor on what is summed at once, such as buckets, nor on the algorithm.
/// communicator: becomes empty. Cost: a copy of the call's description; algorithms that are not proven to combine in
/// rank order are left out. Ordering, traffic: as before.
/// Errors: `invalid_argument` for an empty communicator; calls that want an algorithm which is not reproducible.
inline Communicator reproducible(Communicator&& communicator) {
  return Communicator(Owned<Endpoint>(new detail::ReproducibleEndpoint(communicator.release("reproducible"))));
}

}  // namespace meshwise
