// SPDX-License-Identifier: Apache-2.0
// Rows of a table for indices that have a dim of the rows.
#include "meshwise/tensor/lookup.hpp"
#include "meshwise/tensor/rename.hpp"

#include "vocabulary.hpp"

// expect: because::dim_repeated<batch>, try_<rename_one_of_them_with_key>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Dims<vocab, batch>>& table, const Ids& ids) { return lookup<vocab>(table, ids); }
#else
auto user(const On<Dims<vocab, batch>>& table, const Ids& ids) {
  return lookup<vocab>(rename<batch, key<batch>>(table), ids);
}
#endif
