// SPDX-License-Identifier: Apache-2.0
#include "combining.hpp"

template harness::Perform harness::combining<std::int64_t>(Verb, Redop, bool);
