// SPDX-License-Identifier: Apache-2.0
// An object that tells how many of its kind there are.
#pragma once

#include "meshwise/core/detail/shared.hpp"

namespace test {

struct Watched : meshwise::detail::Counting {
  int& alive;
  explicit Watched(int& count) : alive(count) { ++alive; }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  virtual ~Watched() { --alive; }
};
struct DerivedWatched final : Watched {
  using Watched::Watched;
};

}  // namespace test
