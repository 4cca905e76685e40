// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/verdict.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace meshwise;

TEST_CASE("every fault has words of its own") {
  std::set<std::string> texts;
  const int faults = static_cast<int>(Fault::contribution_foreign) + 1;
  for (int f = 0; f < faults; ++f) texts.insert(text(static_cast<Fault>(f)));
  CHECK(static_cast<int>(texts.size()) == faults);
  CHECK(texts.count("unknown fault") == 0);
}

TEST_CASE("a verdict without a fault is a pass") {
  CHECK(Verdict{}.ok());
  Verdict verdict;
  verdict.fault = Fault::conflict;
  CHECK(!verdict.ok());
}
