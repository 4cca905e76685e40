// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "meshwise/core/element.hpp"
#include "meshwise/core/reduce.hpp"
#include "meshwise/core/reduction.hpp"
#include "meshwise/schedule/schedule.hpp"

namespace meshwise {

/// Where a slot lies in a rank's buffer, in elements: `repeat` runs of `run` elements, `stride` apart.
struct Region {
  std::size_t offset = 0;
  std::size_t run = 0;
  std::size_t stride = 0;
  std::size_t repeat = 1;

  constexpr std::size_t size() const { return run * repeat; }
};

/// The region of every slot of every rank, as a formula that each rank evaluates for itself and for its peers.
///
/// A block has the same number of elements wherever it lies; the runs may differ from place to place, so that a
/// piece of a strided tensor is moved where it lies, without packing. Asked for input and output slots only: scratch
/// belongs to the fabric.
struct Regions {
  using Locate = Region (*)(const void* context, const Shape& shape, Buffer buffer, int rank, int slot);
  Locate locate = nullptr;
  const void* context = nullptr;
};

/// The schedule of a collective. `automatic` leaves the choice to the fabric.
enum class Algorithm : std::uint8_t { automatic, direct, ring };

/// The short name of an algorithm, such as "ring".
constexpr const char* algorithm_name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::automatic: return "automatic";
    case Algorithm::direct: return "direct";
    case Algorithm::ring: return "ring";
  }
  return "unknown";
}

/// What a caller may say about one collective besides its data. All ranks must choose the same algorithm.
struct CollectiveOptions {
  Algorithm algorithm = Algorithm::automatic;
  double deadline = -1;  ///< seconds that this call may wait, 0 for ever; negative: the communicator's deadline
};

/// The signature of a barrier, which tells it from an all_reduce of nothing.
inline constexpr std::uint64_t barrier_signature = 0x62617272696572;

/// One collective as a fabric sees it: the form to which the typed and the span interfaces come down.
///
/// `shape` to `algorithm` must be the same on all ranks; a fabric compares them and reports a difference as `mismatch`.
/// `verb` and `deadline` may differ. Data pointers may be null where a rank has no elements.
struct Call {
  const char* verb = "collective";  ///< the function, as the user spells it; a literal, it must outlive everything
  Shape shape;                      ///< `ranks` is filled in by the communicator
  ElementKind element = ElementKind::u8;
  std::size_t element_size = 1;  ///< in bytes; may differ from the kind's for plain structs that are only copied
  ReductionKind reduction = ReductionKind::none;
  std::uint64_t count = 0;      ///< elements in all blocks of the operation; 0: nothing moves, the ranks only meet
  std::uint64_t signature = 0;  ///< a hash of whatever else must agree, such as extents and layouts
  Algorithm algorithm = Algorithm::automatic;
  double deadline = -1;  ///< seconds, 0 for ever; negative: the communicator's deadline

  Reduce kernel = nullptr;  ///< combines several sources; null where the operation combines nothing
  const void* input = nullptr;
  void* output = nullptr;
  Regions regions;
};

}  // namespace meshwise
