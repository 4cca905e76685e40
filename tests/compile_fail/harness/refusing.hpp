// SPDX-License-Identifier: Apache-2.0
#pragma once

template <class Reason>
struct refused;
struct because_it_is_negative;

refused<because_it_is_negative> take(int);
inline void take(unsigned) {}

template <class T>
void take_by_assertion(T) {
  static_assert(sizeof(T) == 0, "refused in the header");
}
