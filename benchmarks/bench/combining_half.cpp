// SPDX-License-Identifier: Apache-2.0
#include "combining.hpp"

template harness::Perform harness::combining<meshwise::fp16>(Verb, Redop, bool);
