// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/detail/sort.hpp"
#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/layout/dual.hpp"
#include "meshwise/tensor/detail/places.hpp"
#include "meshwise/tensor/detail/verdicts.hpp"
#include "meshwise/tensor/detail/walk.hpp"

namespace meshwise {

namespace detail {

template <class D, class T>
using dims_without = without<D, dims_of<typename T::dims>>;

/// Whether an operand of numbers (indices) is fit to select: integers, no Partial.
template <class Ids>
inline constexpr bool selects = std::is_integral_v<typename Ids::element>;
template <class Ids>
using not_integers =
    refused<because::indices_are_not_integers<typename Ids::element>, try_<use_indices_of_an_integer_type>>;

/// The verdict on rows of a table [D, rest...] chosen by ids [I...]: [I..., rest...], owed over what shards D.
template <class Table, class Ids, class D>
consteval auto lookup_verdict() {
  using LT = typename Table::layout;
  using LI = typename Ids::layout;
  if constexpr (!selects<Ids>) {
    return type<not_integers<Ids>>{};
  } else if constexpr (!std::is_same_v<grid_of<LT>, grid_of<LI>>) {
    return type<refused<because::meshes_differ, try_<bring_both_to_one_mesh>, LT, LI>>{};
  } else if constexpr (!contains<D, dims_of<typename Table::dims>>) {
    return type<refused<because::dim_not_in_the_tensor<D>, try_<name_a_dim_of_this_tensor>, typename Table::dims>>{};
  } else if constexpr (!std::is_same_v<front<dims_of<typename Table::dims>>, D>) {
    return type<refused<because::dim_is_not_first<D>, try_<put_it_first_in_the_dims>, typename Table::dims>>{};
  } else if constexpr (!is_accepted<map_of<Ids>>) {
    return type<map_of<Ids>>{};
  } else if constexpr (!is_accepted<map_of<Table, true>>) {
    return type<map_of<Table, true>>{};
  } else {
    using layout = typename decltype(canonical_from<grid_of<LI>>(
        placements_of<LI>{} + placements_except<LT, list<D>>{} + partials_over(shard_axes<LT, D>{})))::is;
    if constexpr (!AnyLayout<layout>) {
      return result_refused<LT, LI, layout>{};
    } else {
      using dims = dims_from<join<dims_of<typename Ids::dims>, dims_without<D, Table>>>;
      return result_verdict<typename Table::element, dims, layout, typename Table::space>();
    }
  }
}
template <class D, class Table, class Ids>
using lookup_of = typename decltype(lookup_verdict<operand<Table>, operand<Ids>, D>())::is;

template <class Ids>
void check_ids(const char* verb, const Ids& ids, std::size_t rows) {
  if (ids.mesh().checks() == Checks::none) return;  // whatever is not there is passed over
  for (const auto id : ids.local()) {
    if (!(std::is_signed_v<decltype(id)> && id < 0) && static_cast<std::size_t>(id) < rows) continue;
    fail(verb, "indices in [0, " + std::to_string(rows) + ")", std::to_string(id),
         "make the table as large as the vocabulary of the data", ids.mesh().world().rank());
  }
}

/// Adds rows of `in`, one for each id, up by id, those of one id in the order in which they stand.
template <class E, class Ids>
void add_rows(const LocalPlaces& owned, std::size_t width, const Ids& ids, const E* in, E* rows) {
  using A = accumulate_t<E>;
  if constexpr (std::is_same_v<A, E>) {
    for (const auto id : ids.local()) {
      const std::size_t row = owned.of(static_cast<std::size_t>(id));
      if (row < owned.size()) {
        E* const out = rows + row * width;
        for (std::size_t i = 0; i < width; ++i) out[i] = Sum::apply(out[i], in[i]);
      }
      in += width;
    }
  } else {
    // By rows, so that a sum is rounded once and one wide row is enough.
    struct Use {
      std::size_t row = 0;
      std::size_t number = 0;
    };
    List<Use> uses;
    std::size_t number = 0;
    for (const auto id : ids.local()) {
      const std::size_t row = owned.of(static_cast<std::size_t>(id));
      if (row < owned.size()) uses.push_back({row, number});
      ++number;
    }
    sort_stably(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.row < b.row; });
    List<A> sums(width);
    for (std::size_t at = 0; at < uses.size();) {
      const std::size_t row = uses[at].row;
      for (A& sum : sums) sum = A(0);
      for (; at < uses.size() && uses[at].row == row; ++at) {
        const E* const one = in + uses[at].number * width;
        for (std::size_t i = 0; i < width; ++i) sums[i] += static_cast<A>(one[i]);
      }
      for (std::size_t i = 0; i < width; ++i) rows[row * width + i] = static_cast<E>(sums[i]);
    }
  }
}

/// The verdict on adding rows of dy up into the gradient of a table: its own shards, owed over what shards the ids.
template <class D, class Table, class Ids, class G>
consteval auto lookup_backward_verdict() {
  using LT = typename Table::layout;
  using LI = typename Ids::layout;
  using forward = lookup_of<D, Table, Ids>;
  if constexpr (!is_accepted<forward>) {
    return type<forward>{};
  } else if constexpr (!std::is_same_v<typename forward::is::dims, typename G::dims>) {
    return type<refused<because::dims_differ, try_<give_the_gradient_the_dims_of_the_value>, typename forward::is::dims,
                        typename G::dims>>{};
  } else if constexpr (!std::is_same_v<typename Table::element, typename G::element>) {
    return type<
        refused<because::elements_differ, try_<use_one_element_type>, typename Table::element, typename G::element>>{};
  } else if constexpr (!is_accepted<map_of<G, true>>) {
    return type<map_of<G, true>>{};
  } else if constexpr (!std::is_same_v<decltype(dual_steps<typename forward::is::layout, typename G::layout>()),
                                       list<>>) {
    return type<refused<because::gradient_is_not_in_the_dual_of_the_value, try_<backward_to_<typename forward::is>>,
                        typename G::layout>>{};
  } else {
    using layout = decltype([]<class... Ps>(list<Ps...>) {
      using owed_axes = decltype(joined<axes_of<Ps>...>());
      return canonical_from<grid_of<LT>>(placements_of<LT>{} + partials_over(owed_axes{}) +
                                         partials_of<typename G::layout>{});
    }(placements_of<LI>{}));
    if constexpr (!AnyLayout<typename layout::is>) {
      return layout{};
    } else {
      return type<accepted<
          Tensor<typename Table::element, typename Table::dims, typename layout::is, typename Table::space>>>{};
    }
  }
}
template <class D, class Table, class Ids, class G>
using lookup_backward_of =
    typename decltype(lookup_backward_verdict<D, operand<Table>, operand<Ids>, operand<G>>())::is;

}  // namespace detail

/// Rows of a table chosen by indices (an embedding): result[i..., :] = table[ids[i...], :].
///
/// table: [D, rest...], D may be sharded; ids: integers [i...], no Partial. Result: [i..., rest...]; where D is sharded
/// each rank contributes the rows it owns and zeros for the others, so the result is `Partial` over those axes. Cost:
/// local only, one allocation. Errors: an index outside of the table; refused for layouts that would use an axis twice.
template <Dim D, AnyTensor Table, AnyTensor Ids>
  requires detail::is_accepted<detail::lookup_of<D, Table, Ids>>
[[nodiscard]] auto lookup(const Table& table, const Ids& ids) {
  using Result = typename detail::lookup_of<D, Table, Ids>::is;
  detail::check_operands("lookup", table, ids);
  detail::check_ids("lookup", ids, table.template extent<D>());
  Result result(table.mesh(), detail::extents_of_both<typename Result::dims>(ids, table), detail::uninitialised{});
  const detail::LocalPlaces owned(table.template positions<D>());
  const std::size_t width = detail::elements_after(table, 0);
  auto* out = detail::written(result);
  const auto* rows = table.local().data();
  for (const auto id : ids.local()) {
    const std::size_t row = owned.of(static_cast<std::size_t>(id));
    if (row < owned.size()) {
      for (std::size_t i = 0; i < width; ++i) out[i] = rows[row * width + i];
    } else {
      detail::fill(out, width, typename Table::element(0));
    }
    out += width;
  }
  return result;
}
template <Dim D, AnyTensor Table, AnyTensor Ids>
  requires(!detail::is_accepted<detail::lookup_of<D, Table, Ids>>)
[[nodiscard]] auto lookup(const Table& table, const Ids& ids) -> detail::lookup_of<D, Table, Ids>;

/// The gradient of the table of a lookup: rows of dy added up by index.
///
/// dy: the gradient at the result, with the dual of its layout (Replicate where D is sharded); table: for its type and
/// extents; ids: as they were given. Result: like the table, and `Partial` over the axes that shard the ids or
/// over which dy owes a sum. Cost: local only; zeros and adds one table; narrow floats are summed in float and rounded
/// once, which sorts the local ids. Ordering: rows are added in the order of the local ids; integers wrap.
template <Dim D, AnyTensor Table, AnyTensor Ids, AnyTensor G>
  requires detail::is_accepted<detail::lookup_backward_of<D, Table, Ids, G>>
[[nodiscard]] auto lookup_backward(const G& dy, const Table& table, const Ids& ids) {
  detail::check_operands("lookup_backward", dy, ids);
  detail::check_ids("lookup_backward", ids, table.template extent<D>());
  detail::check_operands("lookup_backward", dy, table);
  typename detail::lookup_backward_of<D, Table, Ids, G>::is result(table.mesh(), table.extents());
  const detail::LocalPlaces owned(table.template positions<D>());
  const std::size_t width = detail::elements_after(table, 0);
  detail::add_rows(owned, width, ids, dy.local().data(), detail::written(result));
  return result;
}
template <Dim D, AnyTensor Table, AnyTensor Ids, AnyTensor G>
  requires(!detail::is_accepted<detail::lookup_backward_of<D, Table, Ids, G>>)
[[nodiscard]] auto lookup_backward(const G& dy, const Table& table, const Ids& ids)
    -> detail::lookup_backward_of<D, Table, Ids, G>;

namespace detail {

/// The verdict on picking one entry of the last dim D of x by ids with the other dims.
template <class X, class Ids, class D>
consteval auto pick_verdict() {
  using LX = typename X::layout;
  using rest = dims_without<D, X>;
  if constexpr (!selects<Ids>) {
    return type<not_integers<Ids>>{};
  } else if constexpr (!std::is_same_v<grid_of<LX>, grid_of<typename Ids::layout>>) {
    return type<refused<because::meshes_differ, try_<bring_both_to_one_mesh>, LX, typename Ids::layout>>{};
  } else if constexpr (!contains<D, dims_of<typename X::dims>>) {
    return type<refused<because::dim_not_in_the_tensor<D>, try_<name_a_dim_of_this_tensor>, typename X::dims>>{};
  } else if constexpr (!std::is_same_v<back<dims_of<typename X::dims>>, D>) {
    return type<refused<because::dim_is_not_last<D>, try_<put_it_last_in_the_dims>, typename X::dims>>{};
  } else if constexpr (!std::is_same_v<dims_of<typename Ids::dims>, rest>) {
    return type<
        refused<because::dims_differ, try_<give_the_indices_the_other_dims>, typename X::dims, typename Ids::dims>>{};
  } else if constexpr (!is_accepted<map_of<X>>) {
    return type<map_of<X>>{};
  } else {
    using layout = typename decltype(canonical_from<grid_of<LX>>(placements_except<LX, list<D>>{} +
                                                                 partials_over(shard_axes<LX, D>{})))::is;
    using result = Tensor<typename X::element, dims_from<rest>, layout, typename X::space>;
    return []<class... Ds>(list<Ds...>) {
      return first_refusal<result, placed_alike<Ds, LX, typename Ids::layout>...>();
    }(rest{});
  }
}
template <class D, class X, class Ids>
using pick_of = typename decltype(pick_verdict<operand<X>, operand<Ids>, D>())::is;

}  // namespace detail

/// One entry per row, chosen by index: result[i...] = x[i..., ids[i...]].
///
/// x: [i..., D], D may be sharded; ids: integers [i...], placed like x on these dims. Result: [i...], `Partial` over
/// the axes that shard D. Cost: local only, one allocation. Errors: an index outside of D.
template <Dim D, AnyTensor X, AnyTensor Ids>
  requires detail::is_accepted<detail::pick_of<D, X, Ids>>
[[nodiscard]] auto pick(const X& x, const Ids& ids) {
  using Result = typename detail::pick_of<D, X, Ids>::is;
  detail::check_ids("pick", ids, x.template extent<D>());
  detail::check_operands("pick", x, ids);
  Result result(x.mesh(), ids.extents());
  const detail::LocalPlaces owned(x.template positions<D>());
  auto* out = detail::written(result);
  const auto* in = x.local().data();
  for (const auto id : ids.local()) {
    const std::size_t at = owned.of(static_cast<std::size_t>(id));
    if (at < owned.size()) *out = in[at];
    in += owned.size();
    ++out;
  }
  return result;
}
template <Dim D, AnyTensor X, AnyTensor Ids>
  requires(!detail::is_accepted<detail::pick_of<D, X, Ids>>)
[[nodiscard]] auto pick(const X& x, const Ids& ids) -> detail::pick_of<D, X, Ids>;

}  // namespace meshwise
