// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "meshwise/layout/detail/list.hpp"

namespace meshwise {

/// Base of tensor dimensions: `struct seq : meshwise::dim {};` makes a new one.
struct dim {};

/// An empty tag type that names a dimension of a tensor.
template <class D>
concept Dim = std::is_base_of_v<dim, D> && std::is_empty_v<D> && !std::is_same_v<dim, D>;

struct batch : dim {};
struct seq : dim {};
struct hidden : dim {};
struct ffn : dim {};
struct heads : dim {};
struct kv : dim {};  ///< heads of keys and values, each shared by a group of `heads`
struct head_dim : dim {};
struct vocab : dim {};
struct flat : dim {};  ///< elements without a shape: buckets, optimizer state

/// A second use of a dimension in one tensor: in attention scores, `seq` is the query and `key<seq>` the key position.
template <Dim D>
struct key : dim {};

/// The dimensions of a tensor, outermost first.
template <Dim... Ds>
struct Dims {
  static constexpr int rank = static_cast<int>(sizeof...(Ds));
};

namespace detail {

template <class D>
struct dims_list;
template <Dim... Ds>
struct dims_list<Dims<Ds...>> {
  using is = list<Ds...>;
};
template <class D>
using dims_of = typename dims_list<D>::is;

template <Dim... Ds>
consteval type<Dims<Ds...>> make_dims(list<Ds...>) {
  return {};
}
template <class List>
using dims_from = typename decltype(make_dims(List{}))::is;

}  // namespace detail
}  // namespace meshwise
