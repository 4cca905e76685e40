// SPDX-License-Identifier: Apache-2.0
#include "verify.hpp"

void harness::before_verification(const Work&) {}
