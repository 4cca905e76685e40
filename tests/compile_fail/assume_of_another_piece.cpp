// SPDX-License-Identifier: Apache-2.0
// Every rank would still hold all rows.
#include "meshwise/tensor/assume.hpp"

#include "vocabulary.hpp"

// expect: because::a_claim_does_not_change_what_a_rank_holds, try_<convert_<Shard<batch, tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x) { return assume<Shard<batch, tp>>(x); }
#else
auto user(const On<Rows>& x) { return convert<Shard<batch, tp>>(x); }
#endif
