// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace meshwise::detail {

static_assert(
    sizeof(void*) == 8,
    "processes share memory at equal addresses, which needs a 64-bit address space; use ranks that are threads");

/// Arenas begin at multiples of it: the size of a huge page.
inline constexpr std::uint64_t arena_granule = std::uint64_t{2} << 20;
/// The most address space that one rank gets.
inline constexpr std::uint64_t largest_arena = std::uint64_t{1} << 40;

/// A part of the address space in which nothing lies, as a rule.
struct AddressPlace {
  std::uint64_t base;
  std::uint64_t bytes;

  /// What each of so many arenas gets there, if it wants no more than `most`.
  constexpr std::uint64_t arena(int ranks, std::uint64_t most) const {
    const std::uint64_t share = bytes / static_cast<std::uint64_t>(ranks) / arena_granule * arena_granule;
    return share < most ? share : most;
  }
};

/// Where the memory of a job may lie, best first. Ranks agree on the first one that is free in all of them, so a rank
/// that runs under a sanitizer, or that belongs to two jobs, moves all to a place that suits it too. Between programs,
/// heaps and libraries of x86-64, aarch64 and riscv64:
/// * three large ones above the shadow of the address sanitizer (which ends at 0x10007fff8000 on x86-64, at
///   0x201000000000 on aarch64 with 48 bits): 1 TiB for each of 16 ranks, 64 GiB for each of 256;
/// * below the libraries, and two below 2^39, where the thread sanitizer of x86-64 lets programs map something, and
///   which aarch64 and riscv64 have with 39 bits of addresses too;
/// * a last one that fits limits of address space (ulimit -v).
inline constexpr AddressPlace address_places[] = {
    {0x2100'0000'0000, std::uint64_t{16} << 40},  {0x3100'0000'0000, std::uint64_t{16} << 40},
    {0x4100'0000'0000, std::uint64_t{16} << 40},  {0x7e80'0000'0000, std::uint64_t{384} << 30},
    {0x0020'0000'0000, std::uint64_t{192} << 30}, {0x0010'0000'0000, std::uint64_t{64} << 30},
    {0x0004'0000'0000, std::uint64_t{16} << 30}};
inline constexpr int address_place_count = sizeof(address_places) / sizeof(address_places[0]);

/// Whether nothing lies in a part of the address space of this process, and something could.
///
/// The question goes to the system itself: sanitizers replace mmap by functions of their own that ignore what is asked
/// for, or end the program, when an address is none of theirs. What is theirs is taken.
inline bool addresses_free(std::uint64_t base, std::uint64_t bytes) {
  const long got = syscall(SYS_mmap, base, bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0L);
  if (got == -1) return false;
  syscall(SYS_munmap, got, bytes);
  return static_cast<std::uint64_t>(got) == base;  // elsewhere: a kernel that does not know the flag, before 4.17
}

/// The free places for so many arenas of at most so many bytes: bit k stands for address_places[k].
inline std::uint64_t free_places(int ranks, std::uint64_t most) {
  std::uint64_t free = 0;
  for (int k = 0; k < address_place_count; ++k) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(ranks) * address_places[k].arena(ranks, most);
    if (addresses_free(address_places[k].base, bytes)) free |= std::uint64_t{1} << k;
  }
  return free;
}

}  // namespace meshwise::detail
