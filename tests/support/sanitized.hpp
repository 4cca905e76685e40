// SPDX-License-Identifier: Apache-2.0
// Whether a sanitizer watches: tests whose time would only show the same code to it again do with less.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MESHWISE_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MESHWISE_TEST_SANITIZED 1
#endif
#endif

namespace building {

#ifdef MESHWISE_TEST_SANITIZED
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// The number of ranks where very many are meant.
inline constexpr int very_many_ranks = sanitized ? 10000 : 100000;

/// The number of ranks up to which schedules are proven.
inline constexpr int most_ranks = sanitized ? 33 : 1024;

}  // namespace building
