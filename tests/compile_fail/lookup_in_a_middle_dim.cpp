// SPDX-License-Identifier: Apache-2.0
// Rows of a table are contiguous.
#include "meshwise/tensor/lookup.hpp"

#include "vocabulary.hpp"

// expect: because::dim_is_not_first<vocab>, try_<put_it_first_in_the_dims>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Dims<hidden, vocab>>& by_column, const Ids& ids) { return lookup<vocab>(by_column, ids); }
#else
auto user(const On<Dims<vocab, hidden>>& by_row, const Ids& ids) { return lookup<vocab>(by_row, ids); }
#endif
