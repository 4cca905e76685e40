// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "meshwise/collective/detail/arguments.hpp"
#include "meshwise/collective/detail/choices.hpp"
#include "meshwise/core/combination.hpp"
#include "meshwise/core/refused.hpp"
#include "meshwise/schedule/algorithm.hpp"
#include "meshwise/schedule/generator.hpp"

namespace meshwise {

// What can be wrong with the template arguments and the buffers of a collective. Each verb has an overload for it that
// is only declared, see `refused`.

struct name_a_combination_such_as_Sum_or_an_algorithm_such_as_Ring;
struct name_an_algorithm_such_as_Ring_or_nothing;
struct keep_one_of_them;
struct pass_an_object_of_it_in_options_generator;
struct use_Sum_and_divide_by_the_number_of_ranks_so_far;
struct name_a_type_such_as_Ring;
struct set_options_algorithm;
struct pass_a_vector_an_array_or_a_span;
struct pass_an_output_that_may_be_written;

namespace because {
template <class Choice>
struct this_is_neither_a_combination_nor_an_algorithm;
template <class C>
struct this_operation_combines_nothing;
template <class First, class Second>
struct two_combinations_are_named;
template <class First, class Second>
struct two_algorithms_are_named;
template <class G>
struct this_algorithm_needs_parameters;
template <Algorithm algorithm>
struct an_algorithm_is_named_by_its_type;
struct a_scan_has_no_average;
template <class Buffer>
struct this_is_no_span_of_trivially_copyable_elements;
template <class Buffer>
struct the_output_is_const;
}  // namespace because

namespace detail {

template <class... Types>
struct types;

/// What a verb does with its template arguments.
struct copying;
struct reducing;
struct scanning;

template <class Verb, class T, class... Choices>
inline constexpr bool choices_fit = Copying<Choices...>;
template <class T, class... Choices>
inline constexpr bool choices_fit<reducing, T, Choices...> = Reducing<T, Choices...>;
template <class T, class... Choices>
inline constexpr bool choices_fit<scanning, T, Choices...> = Scanning<T, Choices...>;

/// Whether the buffers fit: an input and an output of the same elements, or one that is both. More: the types of the
/// arguments that follow the first buffer; void if they are not to be looked at, because they may be counts.
template <class Data, class More>
inline constexpr bool buffers_fit = Writable<Data>;
template <class Data, Readable Out, class... More>
inline constexpr bool buffers_fit<Data, types<Out, More...>> = Writable<Out>&& Matching<Data, Out>;
template <Readable Data>
inline constexpr bool buffers_fit<Data, void> = true;

/// The first of several types that is one of a kind, and the second; void if there is none.
template <template <class> class Is, class... Choices>
struct first_two {
  using first = void;
  using second = void;
};
template <template <class> class Is, class C, class... Choices>
struct first_two<Is, C, Choices...> {
  using after = first_two<Is, Choices...>;
  using first = std::conditional_t<Is<C>::value, C, typename after::first>;
  using second = std::conditional_t<Is<C>::value, typename after::first, typename after::second>;
};
template <class C>
struct is_algorithm : std::bool_constant<NamedGenerator<C>> {};
template <class C>
struct is_combination : std::bool_constant<Combination<C>> {};
template <class C>
struct is_no_choice : std::bool_constant<!NamedGenerator<C> && !Combination<C>> {};

template <class Because, class Try, class... Context>
using refused_as = std::type_identity<refused<Because, try_<Try>, Context...>>;

/// What is wrong with buffers that do not fit.
template <class Data, class More>
struct wrong_buffers : refused_as<because::the_output_is_const<Data>, pass_an_output_that_may_be_written> {};
template <class Data, class Out, class... More>
  requires Writable<Out>
struct wrong_buffers<Data, types<Out, More...>>
    : refused_as<because::elements_differ, use_one_element_type, std::remove_const_t<item_t<Data>>, item_t<Out>> {
};
template <class Data, Readable Out, class... More>
  requires(!Writable<Out>)
struct wrong_buffers<Data, types<Out, More...>>
    : refused_as<because::the_output_is_const<Out>, pass_an_output_that_may_be_written> {};

/// What is wrong with a call that is: the first that applies.
template <class Verb, class Data, class More, class... Choices>
constexpr auto find_refusal() {
  using Wrong = typename first_two<is_no_choice, Choices...>::first;
  using Algorithms = first_two<is_algorithm, Choices...>;
  using Combinations = first_two<is_combination, Choices...>;
  using First = typename Combinations::first;
  constexpr bool copies = std::is_same_v<Verb, copying>;
  if constexpr (!Readable<Data>) {
    return refused_as<because::this_is_no_span_of_trivially_copyable_elements<Data>,
                      pass_a_vector_an_array_or_a_span>{};
  } else if constexpr (Generator<Wrong>) {
    return refused_as<because::this_algorithm_needs_parameters<Wrong>, pass_an_object_of_it_in_options_generator>{};
  } else if constexpr (!std::is_void_v<Wrong>) {
    using Names = std::conditional_t<copies, name_an_algorithm_such_as_Ring_or_nothing,
                                     name_a_combination_such_as_Sum_or_an_algorithm_such_as_Ring>;
    return refused_as<because::this_is_neither_a_combination_nor_an_algorithm<Wrong>, Names>{};
  } else if constexpr (copies && !std::is_void_v<First>) {
    return refused_as<because::this_operation_combines_nothing<First>, name_an_algorithm_such_as_Ring_or_nothing>{};
  } else if constexpr (!std::is_void_v<typename Algorithms::second>) {
    return refused_as<because::two_algorithms_are_named<typename Algorithms::first, typename Algorithms::second>,
                      keep_one_of_them>{};
  } else if constexpr (!std::is_void_v<typename Combinations::second>) {
    return refused_as<because::two_combinations_are_named<First, typename Combinations::second>, keep_one_of_them>{};
  } else if constexpr (std::is_same_v<Verb, scanning> && std::is_same_v<First, Average>) {
    return refused_as<because::a_scan_has_no_average, use_Sum_and_divide_by_the_number_of_ranks_so_far>{};
  } else if constexpr (!choices_fit<Verb, std::remove_const_t<item_t<Data>>, Choices...>) {
    return refused_as<because::reduction_is_not_defined_on_this_element<combination_in<Choices...>,
                                                                        std::remove_const_t<item_t<Data>>>,
                      use_an_element_that_the_reduction_is_defined_on>{};
  } else {
    return wrong_buffers<Data, More>{};
  }
}

template <class Data>
struct value_in {
  using is = void;
};
template <Readable Data>
struct value_in<Data> {
  using is = std::remove_const_t<item_t<Data>>;
};

template <bool fits, class Verb, class Data, class More, class... Choices>
struct refusal {};
template <class Verb, class Data, class More, class... Choices>
struct refusal<false, Verb, Data, More, Choices...> {
  using is = typename decltype(find_refusal<Verb, Data, More, Choices...>())::type;
};

/// The refusal of a call; no type if there is nothing wrong with it. Data: the first buffer; More: see `buffers_fit`.
template <class Verb, class Data, class More, class... Choices>
using refusal_t =
    typename refusal<buffers_fit<std::remove_reference_t<Data>, More> &&
                         choices_fit<Verb, typename value_in<std::remove_reference_t<Data>>::is, Choices...>,
                     Verb, std::remove_reference_t<Data>, More, Choices...>::is;

/// The same where what follows the first buffer may be counts.
template <class Verb, class Data, class... Choices>
using refusal_of_choices_t = refusal_t<Verb, Data, void, Choices...>;

/// That of an algorithm that is named by its number. Data only makes it depend on the call.
template <Algorithm algorithm, class Data>
using refusal_of_value_t = std::conditional_t<true,
                                              refused<because::an_algorithm_is_named_by_its_type<algorithm>,
                                                      try_<name_a_type_such_as_Ring, or_<set_options_algorithm>>>,
                                              Data>;

}  // namespace detail
}  // namespace meshwise
