// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "meshwise/core/element.hpp"
#include "meshwise/core/reduce.hpp"
#include "meshwise/core/reduction.hpp"
#include "meshwise/schedule/algorithm.hpp"
#include "meshwise/schedule/any_generator.hpp"
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
///
/// Usually the context says the same on all ranks. If a rank only knows its own buffers (all_to_all with counts of its
/// own), `own_bytes` is the size of the context, a flat block without pointers that describes its owner's buffers only:
/// then a fabric asks about a piece with the context of the rank that the piece lies on, and only schedules of one
/// round without scratch can run.
struct Regions {
  using Locate = Region (*)(const void* context, const Shape& shape, Buffer buffer, int rank, int slot);
  Locate locate = nullptr;
  const void* context = nullptr;
  std::size_t own_bytes = 0;
  bool contiguous =
      false;  ///< the slots of every buffer follow each other without gaps, and the first at its beginning
};

/// The type in which values travel; unset, their own.
struct Wire {
  bool set = false;
  ElementKind kind = ElementKind::f32;

  constexpr Wire() = default;
  constexpr Wire(ElementKind element) : set(true), kind(element) {}  // NOLINT: `options.wire = ElementKind::bf16`
};

/// What a caller may say about one collective besides its data. All ranks must say the same, but for the deadline and
/// the factor.
///
/// Cost of a wire element other than the data's: every byte of traffic is of that type, so that a wider one takes as
/// much more of it (f32 for bf16 twice); staging memory for the own input and output in that type, kept for the next
/// call; and a pass over the input before and over the output after the collective. This is always paid, even where
/// all contributions are combined in one move, in which narrow elements are summed in f32 anyway and the bits would be
/// the same: the fabric chooses the schedule after the data has been converted.
struct CollectiveOptions {
  Algorithm algorithm = Algorithm::automatic;
  double deadline = -1;       ///< seconds that this call may wait, 0 for ever; negative: the communicator's deadline
  int lanes = 0;              ///< slices that pass through the schedule one behind the other; 0: the selector's choice
  Wire wire = {};             ///< floating-point data is converted on the way, and combined as that type is
  bool reproducible = false;  ///< combine in rank order, all contributions at once: the bits depend neither on size nor
                              ///< on algorithm, and narrow floats are rounded once
  double factor = 1;          ///< PreMultipliedSum: what this rank's values are multiplied by
  /// A schedule of the caller's own, instead of an algorithm: AnyGenerator(star), which must outlive the call, or
  /// AnyGenerator::of<Star>(). Ranks compare its name and, if it has parameters, its description (see Generator).
  AnyGenerator generator = {};
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
  /// For errors only, where callers cut blocks: where each block begins and the last one ends, in elements, ranks + 1
  /// numbers that are part of the signature; for an exchange those after it too.
  const std::size_t* begins = nullptr;
  const std::size_t* begins_after = nullptr;
  Algorithm algorithm = Algorithm::automatic;
  AnyGenerator generator;     ///< the schedule to use if `algorithm` is custom
  int lanes = 0;              ///< 0: the selector's choice
  bool reproducible = false;  ///< only schedules that are proven to combine in rank order
  bool commutative = true;    ///< the reduction may be combined in another order than that of the ranks
  double deadline = -1;       ///< seconds, 0 for ever; negative: the communicator's deadline

  Reduce kernel = nullptr;  ///< combines several sources; null where the operation combines nothing
  /// Combines the contributions of all ranks and finishes the result (an average divides). Used for a move with as
  /// many sources as there are ranks; then `run` says that it is finished. Null: there is nothing to finish.
  Reduce finishing = nullptr;
  const void* input = nullptr;
  void* output = nullptr;
  Regions regions;
  /// What Endpoint::digest says of this call, so that it is not asked again for a call that is performed many times;
  /// 0: it is asked.
  std::uint64_t digest = 0;
};

}  // namespace meshwise
