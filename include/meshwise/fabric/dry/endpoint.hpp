// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "meshwise/collective/call.hpp"
#include "meshwise/core/reserved_memory.hpp"
#include "meshwise/fabric/wrapping.hpp"

namespace meshwise::detail {

/// What the dry communicators of one rank share: where its tensors would lie.
struct DryRank {
  ReservedMemory reserved;
  MemorySource source = reserved.source();
};

/// An endpoint whose tensors have no memory, and on which calls that are about them move nothing; see `dry`.
class DryEndpoint final : public WrappingEndpoint {
 public:
  DryEndpoint(Owned<Endpoint> inner, std::shared_ptr<DryRank> rank)
      : WrappingEndpoint(std::move(inner)), rank_(std::move(rank)) {}

  const MemorySource* memory() const override { return &rank_->source; }

  bool run(const Call& call) override { return is_dry(call) || WrappingEndpoint::run(call); }

  Owned<Running> start(const Call& call) override {
    if (!is_dry(call)) return WrappingEndpoint::start(call);
    return Owned<Running>(new Done);
  }

 private:
  /// Something that has been done.
  class Done final : public Running {
   public:
    bool test() override { return true; }
    void wait() override {}
    bool finished() const override { return true; }
  };

  bool is_dry(const Call& call) const {
    return rank_->reserved.holds(call.input) || rank_->reserved.holds(call.output);
  }

  Owned<Endpoint> wrap(Owned<Endpoint> child) override {
    return Owned<Endpoint>(new DryEndpoint(std::move(child), rank_));
  }

  std::shared_ptr<DryRank> rank_;
};

}  // namespace meshwise::detail
