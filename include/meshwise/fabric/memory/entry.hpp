// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "meshwise/collective/call.hpp"
#include "meshwise/fabric/memory/notes.hpp"
#include "meshwise/schedule/contract.hpp"

namespace meshwise::detail {

/// What a rank publishes when it enters an operation: the call, as far as all ranks must agree, and its buffers.
///
/// The first line of words is all that most calls need; the others are read and written only where `kind` says so.
struct Entry {
  enum Word : std::size_t { kind, sizes, count, signature, input, output, scratch, verb, context, generator, words };
  static constexpr std::size_t hot = verb;  ///< words of the first line, which begins with a sequence number

  std::array<std::uint64_t, words> word{};
  const Call* notes = nullptr;  ///< while the own call is written down: where its details are

  /// history: of the calls before, for those that not all ranks have compared; part of the signature.
  static Entry of(const Call& call, const void* scratch_memory, std::uint64_t history = 0) {
    Entry entry;
    entry.set(call, scratch_memory, history);
    return entry;
  }

  /// The same into this one, word by word: a copy of words just written would wait for them.
  void set(const Call& call, const void* scratch_memory, std::uint64_t history) {
    const bool own_context = call.regions.own_bytes > 0;
    const bool custom = call.algorithm == Algorithm::custom;
    word[kind] = kind_of(call);
    word[sizes] = sizes_of(call);
    word[count] = call.count;
    word[signature] = call.signature ^ history;
    word[verb] = reinterpret_cast<std::uintptr_t>(call.verb);
    word[input] = reinterpret_cast<std::uintptr_t>(call.input);
    word[output] = reinterpret_cast<std::uintptr_t>(call.output);
    word[scratch] = reinterpret_cast<std::uintptr_t>(scratch_memory);
    word[context] = own_context ? reinterpret_cast<std::uintptr_t>(call.regions.context) : 0;
    word[generator] = custom ? reinterpret_cast<std::uintptr_t>(call.generator.name) : 0;
    notes = more() && noted(call) ? &call : nullptr;
  }

  /// A hash of what must agree. Two short chains of multiplications instead of a long one.
  static std::uint64_t digest(const Call& call) {
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U, other = 0xbf58476d1ce4e5b9U;
    const std::uint64_t a = (kind_of(call) * odd) ^ call.count;
    const std::uint64_t b = (call.signature * other) ^ sizes_of(call);
    return (a ^ a >> 32) * other + (b ^ b >> 29) * odd;
  }

  template <class T>
  T* pointer(Word which) const {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(word[which]));
  }

  /// An address that other processes do not see, marked as such by the bit that no address of a program has, and the
  /// way back.
  static const void* hidden(const void* address) {
    return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(address) | hidden_bit);
  }
  static bool is_hidden(const void* address) { return (reinterpret_cast<std::uintptr_t>(address) & hidden_bit) != 0; }
  static const void* revealed(const void* address) {
    return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(address) & ~hidden_bit);
  }

  /// Whether two calls may meet. What a custom generator is called is part of the signature.
  bool agrees(const Entry& other) const {
    return word[kind] == other.word[kind] && word[sizes] == other.word[sizes] && word[count] == other.word[count] &&
           word[signature] == other.word[signature];
  }

  Operation operation() const {
    return is_barrier() ? Operation::all_reduce : static_cast<Operation>(operation_bits());
  }
  bool reproducible() const { return (word[kind] >> 5 & 1) != 0; }
  bool more() const { return more(word[kind]); }
  static bool more(std::uint64_t kind_word) { return (kind_word >> 6 & 1) != 0; }
  bool in_place() const { return (word[kind] >> 7 & 1) != 0; }
  ElementKind element() const { return static_cast<ElementKind>(word[kind] >> 8 & 0xff); }
  ReductionKind reduction() const { return static_cast<ReductionKind>(word[kind] >> 16 & 0xff); }
  Algorithm algorithm() const { return static_cast<Algorithm>(word[kind] >> 24 & 0xff); }
  int root() const { return static_cast<int>(word[kind] >> 32); }
  std::uint64_t element_size() const { return word[sizes] & 0xffff'ffff'ffff; }
  int lanes() const { return static_cast<int>(word[sizes] >> 48); }

  /// The algorithm that was asked for, a custom one by the name of its generator.
  const char* algorithm_word() const {
    const char* const custom = pointer<const char>(generator);
    return algorithm() == Algorithm::custom && custom != nullptr ? custom : algorithm_name(algorithm());
  }

  bool is_barrier() const { return operation_bits() == barrier_bits; }

  /// The call in words, such as "all_reduce(1000 x f32, sum, in place)".
  std::string describe() const {
    if (is_barrier() || element_size() == 0) return std::string(pointer<const char>(verb)) + "()";
    std::string text = std::string(pointer<const char>(verb)) + "(" + std::to_string(word[count]) + " x ";
    if (element_size() == meshwise::element_size(element())) {
      text += element_name(element());
    } else {
      text += std::to_string(element_size()) + " bytes";
    }
    if (reduction() != ReductionKind::none) text += std::string(", ") + reduction_name(reduction());
    if (rooted(operation())) text += ", root " + std::to_string(root());
    if (in_place() && !rooted(operation())) text += ", in place";
    if (algorithm() != Algorithm::automatic) text += std::string(", ") + algorithm_word();
    if (lanes() != 0) text += ", " + std::to_string(lanes()) + (lanes() == 1 ? " lane" : " lanes");
    if (reproducible()) text += ", reproducible";
    return text + ")";
  }

  /// Whether two calls are the same but for what notes or counts can tell.
  static bool nearly_agree(const Entry& a, const Entry& b) {
    return a.word[kind] == b.word[kind] && a.word[sizes] == b.word[sizes];
  }

  /// In what two calls differ: the first of the things that must agree.
  static const char* difference(const Entry& a, const Entry& b) {
    if (a.operation() != b.operation() || a.is_barrier() != b.is_barrier()) return "the operation";
    if (a.element() != b.element() || a.element_size() != b.element_size()) return "the element type";
    if (a.reduction() != b.reduction()) return "the reduction";
    if (a.word[count] != b.word[count]) return "the count";
    if (a.root() != b.root()) return "the root";
    if (a.in_place() != b.in_place()) return "in place or not";
    if (a.algorithm() != b.algorithm()) return "the algorithm";
    if (std::strcmp(a.algorithm_word(), b.algorithm_word()) != 0) return "the algorithm";
    if (a.lanes() != b.lanes()) return "the lanes";
    if (a.reproducible() != b.reproducible()) return "reproducible or not";
    return "the extents, the counts or the layout, or in the function that was called, or in its options";
  }

 private:
  static constexpr std::uint64_t barrier_bits = 0x1f;  // no operation
  static constexpr std::uintptr_t hidden_bit = ~(~std::uintptr_t{0} >> 1);

  static std::uint64_t kind_of(const Call& call) {
    const bool more = call.regions.own_bytes > 0 || call.algorithm == Algorithm::custom || call.begins != nullptr;
    return (call.signature == barrier_signature ? barrier_bits : static_cast<std::uint64_t>(call.shape.operation)) |
           static_cast<std::uint64_t>(call.reproducible) << 5 | static_cast<std::uint64_t>(more) << 6 |
           static_cast<std::uint64_t>(call.shape.in_place) << 7 | static_cast<std::uint64_t>(call.element) << 8 |
           static_cast<std::uint64_t>(call.reduction) << 16 | static_cast<std::uint64_t>(call.algorithm) << 24 |
           static_cast<std::uint64_t>(static_cast<std::uint32_t>(call.shape.root)) << 32;
  }
  static std::uint64_t sizes_of(const Call& call) {
    return call.element_size | static_cast<std::uint64_t>(call.lanes) << 48;
  }

  std::uint64_t operation_bits() const { return word[kind] & 0x1f; }
};

}  // namespace meshwise::detail
