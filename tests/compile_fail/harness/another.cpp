// SPDX-License-Identifier: Apache-2.0
#include "refusing.hpp"

// expect: refused<because_it_is_negative>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user() { take(-2); }
#else
void user() { take(2u); }
#endif
