// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/lookup.hpp"

#include "vocabulary.hpp"

// expect: because::indices_are_not_integers<float>, try_<use_indices_of_an_integer_type>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Dims<vocab, hidden>>& table, const On<Dims<batch>>& floats) { return lookup<vocab>(table, floats); }
#else
auto user(const On<Dims<vocab, hidden>>& table, const Ids& ids) { return lookup<vocab>(table, ids); }
#endif
