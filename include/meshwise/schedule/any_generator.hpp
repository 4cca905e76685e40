// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "meshwise/schedule/generator.hpp"

namespace meshwise {

namespace detail {

/// The members of a generator behind pointers: one instantiation of compile and lower serves all.
struct GeneratorTable {
  const char* name;
  bool (*supports)(const void*, const Shape&);
  int (*rounds)(const void*, const Shape&);
  int (*scratch_slots)(const void*, const Shape&);
  std::vector<Move> (*by)(const void*, const Shape&, int, int);
  std::vector<int> (*partners)(const void*, const Shape&, int, int);
  int (*alike)(const void*, const Shape&, int);
  std::string (*description)(const void*);  ///< null if the name says everything
};

template <class G>
const G& generator_at(const void* object) {
  return *static_cast<const G*>(object);
}

template <class G>
constexpr auto describer() -> std::string (*)(const void*) {
  if constexpr (DescribedGenerator<G>) {
    return [](const void* g) -> std::string { return generator_at<G>(g).description(); };
  } else {
    return nullptr;
  }
}

template <Generator G>
inline constexpr GeneratorTable generator_table{
    G::name,
    [](const void* g, const Shape& shape) { return generator_at<G>(g).supports(shape); },
    [](const void* g, const Shape& shape) { return generator_at<G>(g).rounds(shape); },
    [](const void* g, const Shape& shape) { return generator_at<G>(g).scratch_slots(shape); },
    [](const void* g, const Shape& shape, int rank, int round) { return generator_at<G>(g).by(shape, rank, round); },
    [](const void* g, const Shape& shape, int rank, int round) {
      return generator_at<G>(g).partners(shape, rank, round);
    },
    [](const void* g, const Shape& shape, int round) -> int {
      if constexpr (requires { generator_at<G>(g).alike(shape, round); }) return generator_at<G>(g).alike(shape, round);
      return 1;
    },
    describer<G>(),
};

template <Generator G>
inline constexpr G default_generator{};

}  // namespace detail

/// Any generator, known at run time only. Empty by default.
///
/// Lifetime: refers to the generator it was made from, except when made by `of<G>()`. Copying costs two pointers.
class AnyGenerator {
 public:
  const char* name = "none";

  constexpr AnyGenerator() = default;
  template <Generator G>
  explicit constexpr AnyGenerator(const G& generator)
      : name(G::name), object_(&generator), table_(&detail::generator_table<G>) {}

  /// One of a type without parameters.
  template <Generator G>
  static constexpr AnyGenerator of() {
    AnyGenerator result(detail::default_generator<G>);
    result.permanent_ = true;
    return result;
  }

  constexpr bool empty() const { return table_ == nullptr; }

  /// Whether it was made by `of`: the same generator for ever, so that what was derived from it may be kept.
  constexpr bool permanent() const { return permanent_; }

  /// Whether both refer to one object.
  friend constexpr bool operator==(const AnyGenerator& a, const AnyGenerator& b) {
    return a.object_ == b.object_ && a.table_ == b.table_;
  }

  /// Whether its description says more than its name: it has parameters.
  bool parametrised() const { return table_ != nullptr && table_->description != nullptr; }

  /// The name with the parameters, such as "torus{4, 2}"; the name alone if there are none.
  std::string description() const { return parametrised() ? table_->description(object_) : std::string(name); }

  bool supports(const Shape& shape) const { return table_ != nullptr && table_->supports(object_, shape); }
  int rounds(const Shape& shape) const { return table_->rounds(object_, shape); }
  int scratch_slots(const Shape& shape) const { return table_->scratch_slots(object_, shape); }
  std::vector<Move> by(const Shape& shape, int rank, int round) const {
    return table_->by(object_, shape, rank, round);
  }
  std::vector<int> partners(const Shape& shape, int rank, int round) const {
    return table_->partners(object_, shape, rank, round);
  }
  int alike(const Shape& shape, int round) const { return table_->alike(object_, shape, round); }

 private:
  const void* object_ = nullptr;
  const detail::GeneratorTable* table_ = nullptr;
  bool permanent_ = false;
};

static_assert(Generator<AnyGenerator>);

}  // namespace meshwise
