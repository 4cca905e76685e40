// SPDX-License-Identifier: Apache-2.0
#include "refusing.hpp"

// expect: refused in the header
#ifdef MESHWISE_MUST_NOT_COMPILE
void user() { take_by_assertion(1); }
#else
void user() { take(1u); }
#endif
