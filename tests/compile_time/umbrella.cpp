// SPDX-License-Identifier: Apache-2.0
// budget: 900 ms
#include "meshwise/meshwise.hpp"
