// SPDX-License-Identifier: Apache-2.0
#include "refusing.hpp"

// expect: refused<because_it_is_negative>
// expect(g++): incomplete type
// expect(clang++): undefined template
// note(g++): declaration of .*refused
// note(clang++): template is declared here
#ifdef MESHWISE_MUST_NOT_COMPILE
void user() { take(-1); }
#else
void user() { take(1u); }
#endif
