// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace harness {

/// Takes a buffer out of the caches of all cores.
class Flush {
 public:
  void operator()(std::byte* data, std::size_t bytes) {
#if defined(__x86_64__)
    for (std::size_t at = 0; at < bytes; at += 64) _mm_clflush(data + at);
    if (bytes > 0) _mm_clflush(data + bytes - 1);
    _mm_mfence();
#else
    // No instruction for it that programs may use: other data takes its place.
    (void)data;
    (void)bytes;
    if (others_.empty()) others_.resize(std::size_t{256} << 20);
    for (std::size_t at = 0; at < others_.size(); at += 64) others_[at] = static_cast<std::byte>(at);
#endif
  }

 private:
  [[maybe_unused]] std::vector<std::byte> others_;
};

/// Writes what is there already, so that the lines of a buffer are this core's, and changed.
inline void rewrite(std::byte* data, std::size_t bytes) {
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes; at += sizeof(std::uint64_t)) {
    auto* const word = reinterpret_cast<std::uint64_t*>(data + at);
    std::uint64_t value = *word;
    asm volatile("" : "+r"(value));
    *word = value;
  }
  for (std::size_t at = bytes / 8 * 8; at < bytes; ++at) {
    auto value = static_cast<unsigned char>(data[at]);
    asm volatile("" : "+r"(value));
    data[at] = static_cast<std::byte>(value);
  }
}

}  // namespace harness
