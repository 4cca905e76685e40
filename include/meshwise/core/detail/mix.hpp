// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace meshwise::detail {

/// Mixes numbers that all ranks must agree on into one, their order included. Source: the finaliser of SplitMix64.
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash += value + 0x9e3779b97f4a7c15u;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}

}  // namespace meshwise::detail
