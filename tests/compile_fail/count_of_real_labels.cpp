// SPDX-License-Identifier: Apache-2.0
// Labels are entries of a vocabulary.
#include "meshwise/parallel/vocabulary.hpp"

#include "vocabulary.hpp"

// expect: because::indices_are_not_integers<float>, try_<use_indices_of_an_integer_type>
#ifdef MESHWISE_MUST_NOT_COMPILE
double user(const On<Rows>& labels) { return count_labels(labels, {.ignored = -1}); }
#else
double user(const Ids& labels) { return count_labels(labels, {.ignored = -1}); }
#endif
