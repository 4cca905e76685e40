// SPDX-License-Identifier: Apache-2.0
// Refused collectives are visible to `requires`, each beside what is right. What compilers say is in
// tests/compile_fail/collective_*.cpp.
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_gather_v.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/all_to_all.hpp"
#include "meshwise/collective/all_to_all_v.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/gather.hpp"
#include "meshwise/collective/gather_v.hpp"
#include "meshwise/collective/redistribute.hpp"
#include "meshwise/collective/reduce.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/collective/reduce_scatter_v.hpp"
#include "meshwise/collective/scan.hpp"
#include "meshwise/collective/scatter.hpp"
#include "meshwise/collective/scatter_v.hpp"
#include "meshwise/core/logic.hpp"
#include "meshwise/schedule/direct.hpp"
#include "meshwise/schedule/ring.hpp"

namespace meshwise {
namespace {

using Floats = std::vector<float>;
using Counts = std::vector<std::size_t>;

template <class... Choices>
inline constexpr bool combined_0 = requires(Communicator& c, Floats& x, const Counts& n) {
  all_reduce<Choices...>(c, x);
};
template <class... Choices>
inline constexpr bool combined_1 = requires(Communicator& c, Floats& x, const Counts& n) {
  all_reduce<Choices...>(c, std::as_const(x), x);
};
template <class... Choices>
inline constexpr bool combined_2 = requires(Communicator& c, Floats& x, const Counts& n) {
  start_all_reduce<Choices...>(c, x);
};
template <class... Choices>
inline constexpr bool combined_3 = requires(Communicator& c, Floats& x, const Counts& n) {
  prepare_all_reduce<Choices...>(c, x, Floats());
};
template <class... Choices>
inline constexpr bool combined_4 = requires(Communicator& c, Floats& x, const Counts& n) {
  reduce_scatter<Choices...>(c, x);
};
template <class... Choices>
inline constexpr bool combined_5 = requires(Communicator& c, Floats& x, const Counts& n) {
  start_reduce_scatter<Choices...>(c, x, x);
};
template <class... Choices>
inline constexpr bool combined_6 = requires(Communicator& c, Floats& x, const Counts& n) {
  reduce<Choices...>(c, x, 1);
};
template <class... Choices>
inline constexpr bool combined_7 = requires(Communicator& c, Floats& x, const Counts& n) {
  reduce<Choices...>(c, x, x, 1);
};
template <class... Choices>
inline constexpr bool combined_8 = requires(Communicator& c, Floats& x, const Counts& n) {
  prepare_reduce<Choices...>(c, x);
};
template <class... Choices>
inline constexpr bool combined_9 = requires(Communicator& c, Floats& x, const Counts& n) {
  reduce_scatter_v<Choices...>(c, x, n);
};
template <class... Choices>
inline constexpr bool combined_10 = requires(Communicator& c, Floats& x, const Counts& n) {
  start_reduce_scatter_v<Choices...>(c, x, x, n);
};
template <class... Choices>
inline constexpr int combined =
    int{combined_0<Choices...>} + int{combined_1<Choices...>} + int{combined_2<Choices...>} +
    int{combined_3<Choices...>} + int{combined_4<Choices...>} + int{combined_5<Choices...>} +
    int{combined_6<Choices...>} + int{combined_7<Choices...>} + int{combined_8<Choices...>} +
    int{combined_9<Choices...>} + int{combined_10<Choices...>};
inline constexpr int combined_forms = 11;

template <class... Choices>
inline constexpr bool scanned_0 = requires(Communicator& c, Floats& x, const Counts& n) {
  inclusive_scan<Choices...>(c, x);
};
template <class... Choices>
inline constexpr bool scanned_1 = requires(Communicator& c, Floats& x, const Counts& n) {
  start_exclusive_scan<Choices...>(c, x, x);
};
template <class... Choices>
inline constexpr bool scanned_2 = requires(Communicator& c, Floats& x, const Counts& n) {
  prepare_exclusive_scan<Choices...>(c, x);
};
template <class... Choices>
inline constexpr int scanned = int{scanned_0<Choices...>} + int{scanned_1<Choices...>} + int{scanned_2<Choices...>};
inline constexpr int scanned_forms = 3;

template <class... Choices>
inline constexpr bool copied_0 = requires(Communicator& c, Floats& x, const Counts& n) {
  all_gather<Choices...>(c, x);
};
template <class... Choices>
inline constexpr bool copied_1 = requires(Communicator& c, Floats& x, const Counts& n) {
  start_all_gather<Choices...>(c, x, x);
};
template <class... Choices>
inline constexpr bool copied_2 = requires(Communicator& c, Floats& x, const Counts& n) {
  broadcast<Choices...>(c, x);
};
template <class... Choices>
inline constexpr bool copied_3 = requires(Communicator& c, Floats& x, const Counts& n) {
  prepare_broadcast<Choices...>(c, x, 1);
};
template <class... Choices>
inline constexpr bool copied_4 = requires(Communicator& c, Floats& x, const Counts& n) {
  gather<Choices...>(c, x, x, 1);
};
template <class... Choices>
inline constexpr bool copied_5 = requires(Communicator& c, Floats& x, const Counts& n) {
  start_scatter<Choices...>(c, x, x);
};
template <class... Choices>
inline constexpr bool copied_6 = requires(Communicator& c, Floats& x, const Counts& n) {
  all_to_all<Choices...>(c, x, x);
};
template <class... Choices>
inline constexpr bool copied_7 = requires(Communicator& c, Floats& x, const Counts& n) {
  all_gather_v<Choices...>(c, x, n);
};
template <class... Choices>
inline constexpr bool copied_8 = requires(Communicator& c, Floats& x, const Counts& n) {
  prepare_all_gather_v<Choices...>(c, x, x, n);
};
template <class... Choices>
inline constexpr bool copied_9 = requires(Communicator& c, Floats& x, const Counts& n) {
  gather_v<Choices...>(c, x, x, n, 1);
};
template <class... Choices>
inline constexpr bool copied_10 = requires(Communicator& c, Floats& x, const Counts& n) {
  scatter_v<Choices...>(c, x, x, n);
};
template <class... Choices>
inline constexpr bool copied_11 = requires(Communicator& c, Floats& x, const Counts& n) {
  all_to_all_v<Choices...>(c, x, x, n, n);
};
template <class... Choices>
inline constexpr bool copied_12 = requires(Communicator& c, Floats& x, const Counts& n) {
  start_redistribute<Choices...>(c, x, x, n, n);
};
template <class... Choices>
inline constexpr int copied =
    int{copied_0<Choices...>} + int{copied_1<Choices...>} + int{copied_2<Choices...>} + int{copied_3<Choices...>} +
    int{copied_4<Choices...>} + int{copied_5<Choices...>} + int{copied_6<Choices...>} + int{copied_7<Choices...>} +
    int{copied_8<Choices...>} + int{copied_9<Choices...>} + int{copied_10<Choices...>} + int{copied_11<Choices...>} +
    int{copied_12<Choices...>};
inline constexpr int copied_forms = 13;

struct Bound : Ring {
  explicit Bound(int) {}
};

static_assert(combined<> == combined_forms && scanned<> == scanned_forms && copied<> == copied_forms);
static_assert(combined<Ring> == combined_forms && scanned<Ring> == scanned_forms && copied<Ring> == copied_forms);
static_assert(combined<Max, Ring> == combined_forms && scanned<Ring, Max> == scanned_forms);
static_assert(combined<Average> == combined_forms && scanned<PreMultipliedSum> == scanned_forms);

static_assert(combined<int> == 0 && scanned<int> == 0 && copied<int> == 0);
static_assert(combined<Ring, Direct> == 0 && scanned<Ring, Direct> == 0 && copied<Ring, Direct> == 0);
static_assert(combined<Sum, Max> == 0 && scanned<Sum, Max> == 0);
static_assert(combined<BitAnd> == 0 && scanned<BitAnd> == 0);
static_assert(combined<Bound> == 0 && scanned<Bound> == 0 && copied<Bound> == 0);
static_assert(scanned<Average> == 0);
static_assert(copied<Sum> == 0 && copied<Sum, Ring> == 0);

// Buffers.
template <class Data, class Out>
inline constexpr bool transfers = requires(Communicator& c, Data& x, Out& y) {
  all_reduce(c, x, y);
};
template <class Data>
inline constexpr bool in_place = requires(Communicator& c, Data& x) {
  all_reduce(c, x);
};
static_assert(transfers<const Floats, Floats> && transfers<std::span<const float>, float[3]>);
static_assert(!transfers<Floats, std::vector<double>> && !transfers<Floats, const Floats>);
static_assert(!transfers<std::vector<std::string>, std::vector<std::string>>);
static_assert(in_place<Floats> && in_place<const std::span<float>>);
static_assert(!in_place<const Floats> && !in_place<std::span<const float>> && !in_place<int>);
static_assert(!in_place<std::vector<bool>> && !in_place<std::vector<std::string>>);

// An algorithm by its number.
template <Algorithm algorithm>
inline constexpr bool by_value = requires(Communicator& c, Floats& x) {
  all_reduce<algorithm>(c, x);
};
static_assert(!by_value<Algorithm::ring>);

}  // namespace
}  // namespace meshwise
