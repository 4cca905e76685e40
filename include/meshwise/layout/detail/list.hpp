// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

namespace meshwise::detail {

/// A list of types. Joined with `+` on values, which costs one function call per join instead of a recursion.
template <class... Ts>
struct list {
  static constexpr int size = static_cast<int>(sizeof...(Ts));
};

template <class... As, class... Bs>
consteval list<As..., Bs...> operator+(list<As...>, list<Bs...>) {
  return {};
}

// g++ 12 rejects a fold expression inside an alias template, hence the function.
template <class... Lists>
consteval auto joined() {
  return (list<>{} + ... + Lists{});
}

template <class... Lists>
using join = decltype(joined<Lists...>());

template <class T>
struct type {
  using is = T;
};

template <class T, class... Ts>
inline constexpr int count_same = (0 + ... + (std::is_same_v<T, Ts> ? 1 : 0));

template <class T, class List>
inline constexpr bool contains = false;
template <class T, class... Ts>
inline constexpr bool contains<T, list<Ts...>> = (std::is_same_v<T, Ts> || ...);

template <class T, class... Ts>
consteval int position(list<Ts...>) {
  int at = 0;
  static_cast<void>(((std::is_same_v<T, Ts> ? false : (++at, true)) && ...));
  return at;
}

/// Index of T in the list, or the list's size.
template <class T, class List>
inline constexpr int index_of = position<T>(List{});

template <class First, class... Rest>
consteval type<First> first_of(list<First, Rest...>) {
  return {};
}
template <class List>
using front = typename decltype(first_of(List{}))::is;

template <class A, class B>
consteval type<B> operator|(type<A>, type<B>) {
  return {};
}
template <class... Ts>
consteval auto last_of(list<Ts...>) {
  return (type<void>{} | ... | type<Ts>{});
}
template <class List>
using back = typename decltype(last_of(List{}))::is;

/// The types of List for which Keep<T>::value holds, in order.
template <template <class> class Keep, class... Ts>
consteval auto filtered(list<Ts...>) {
  return joined<std::conditional_t<Keep<Ts>::value, list<Ts>, list<>>...>();
}

template <class Done = list<>>
consteval Done distinct(list<>, Done = {}) {
  return {};
}
/// The types of a list, each once, in order.
template <class T, class... Ts, class Done = list<>>
consteval auto distinct(list<T, Ts...>, Done done = {}) {
  if constexpr (contains<T, Done>) {
    return distinct(list<Ts...>{}, done);
  } else {
    return distinct(list<Ts...>{}, done + list<T>{});
  }
}

consteval list<> reversed(list<>) { return {}; }
template <class T, class... Ts>
consteval auto reversed(list<T, Ts...>) {
  return reversed(list<Ts...>{}) + list<T>{};
}

/// The list without T.
template <class T, class... Ts>
consteval auto removed(list<Ts...>) {
  return joined<std::conditional_t<std::is_same_v<T, Ts>, list<>, list<Ts>>...>();
}
template <class T, class List>
using without = decltype(removed<T>(List{}));

/// The first type that stands in the list more than once, or void.
template <class... Ts>
consteval auto first_repeated(list<Ts...>) {
  return first_of(joined<std::conditional_t<(count_same<Ts, Ts...> > 1), list<Ts>, list<>>..., list<void>>());
}
template <class List>
using repeated = typename decltype(first_repeated(List{}))::is;

}  // namespace meshwise::detail
