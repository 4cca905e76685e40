// SPDX-License-Identifier: Apache-2.0
// A float is combined in float: its master would be a copy.
#include "meshwise/train/mixed_precision.hpp"

#include "vocabulary.hpp"

// expect(g++): because::element_is_its_own_master<float>, try_<use_AdamWState>
// expect(clang++): deleted
// note(clang++): because::element_is_its_own_master<float>, *try_<use_AdamWState>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& w) { return MasterState<On<Rows>>(w); }
#else
auto user(const On<Rows>& w) { return AdamWState<On<Rows>>(w); }
#endif
