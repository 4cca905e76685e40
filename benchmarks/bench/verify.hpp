// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "work.hpp"

namespace harness {

/// Elements that a rank sends to another in an all_to_all_v of blocks of `count` elements: the same, or between 1/n and
/// 2 of it, in sum the same for all senders and receivers.
std::size_t block_between(int from, int to, std::size_t count, int ranks, bool ragged);

/// Puts this rank's input where the operation wants it, and something else wherever it has to write.
void prepare(const Work& work, std::uint32_t seed);

/// How many elements of this rank's result differ from what the inputs of all ranks, computed anew, make of it. Every
/// element is looked at.
std::int64_t count_wrong(const Work& work, std::uint32_t seed);

/// Called once on every rank for each checked call, between the call and the count. Does nothing; tests of the harness
/// link one that spoils a result instead.
void before_verification(const Work& work);

}  // namespace harness
