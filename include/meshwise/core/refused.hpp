// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace meshwise {

/// What a program that must not compile is answered with: the reason, the remedy, and the types concerned.
///
/// Never defined. A verb that has to be refused is an overload that is only declared and returns this type, so the
/// compiler's first error stands at the caller's own line and spells the reason out, and `requires` sees it as well.
template <class Because, class Try, class... Context>
struct refused;

/// A remedy, to be read as a sentence: `try_<use_one_element_type>`.
template <class... What>
struct try_;
/// An alternative to the remedy before it.
template <class What>
struct or_;

struct use_one_element_type;
struct use_an_element_that_the_reduction_is_defined_on;

/// Reasons, to be read as a sentence: `because::elements_differ`.
namespace because {
struct elements_differ;
template <class Op, class E>
struct reduction_is_not_defined_on_this_element;
}  // namespace because

}  // namespace meshwise
