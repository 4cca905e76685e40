// SPDX-License-Identifier: Apache-2.0
#include "refusing.hpp"

#ifdef MESHWISE_MUST_NOT_COMPILE
void user() { take(-1); }
#else
void user() { take(1u); }
#endif
