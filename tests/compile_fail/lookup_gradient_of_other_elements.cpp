// SPDX-License-Identifier: Apache-2.0
// The table has floats.
#include "meshwise/tensor/lookup.hpp"

#include "vocabulary.hpp"

// expect: because::elements_differ, try_<use_one_element_type>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Tensor<double, Rows, Layout<Grid>>& dy, const On<Dims<vocab, hidden>>& table, const Ids& ids) {
  return lookup_backward<vocab>(dy, table, ids);
}
#else
auto user(const On<Rows>& dy, const On<Dims<vocab, hidden>>& table, const Ids& ids) {
  return lookup_backward<vocab>(dy, table, ids);
}
#endif
