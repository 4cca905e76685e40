// SPDX-License-Identifier: Apache-2.0
#include "meshwise/parallel/data.hpp"

#include "vocabulary.hpp"

using Buckets = GradientBuckets<dp, float, Grid>;
using Ticket = Buckets::Ticket<On<Rows>>;

// expect: because::gradient_owes_no_sum<dp>, try_<use_it_as_it_is>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Buckets& buckets, const Ticket& ticket, const On<Rows>& settled) { buckets.add(ticket, settled); }
#else
void user(Buckets& buckets, const Ticket& ticket, const On<Rows, Partial<dp>>& owed) { buckets.add(ticket, owed); }
#endif
