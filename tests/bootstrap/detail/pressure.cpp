// SPDX-License-Identifier: Apache-2.0
#include "meshwise/bootstrap/detail/pressure.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>

using meshwise::detail::Moment;
using meshwise::detail::Pressure;

TEST_CASE("a moment comes once its time has passed") {
  Moment never;
  CHECK(!never.set());
  CHECK(!never.come());
  int wait = -1;
  never.limit(wait);
  CHECK(wait == -1);
  CHECK(!Moment::in(1e12).set());
  const Moment now = Moment::in(0);
  CHECK(now.come());
  now.limit(wait);
  CHECK(wait == 0);
  const Moment later = Moment::in(30);
  CHECK(later.set());
  CHECK(!later.come());
  wait = -1;
  later.limit(wait);
  CHECK(wait > 10'000);
  CHECK(wait <= 30'000);
  wait = 5;
  later.limit(wait);
  CHECK(wait == 5);
  wait = -1;
  Moment::in(1e6).limit(wait);  // poll counts in int
  CHECK(wait == 60'000);
}

TEST_CASE("grace, SIGTERM, SIGKILL, each once and in this order") {
  Pressure none(0, 0);
  CHECK(none.due() == 0);
  CHECK(!none.begun());
  CHECK(!none.hopeless());
  Pressure quick(0, 0);
  quick.begin();
  CHECK(quick.begun());
  CHECK(!quick.sent());
  CHECK(quick.due() == SIGTERM);
  CHECK(quick.sent());
  CHECK(quick.due() == SIGKILL);
  CHECK(quick.due() == 0);
  CHECK(!quick.hopeless());
  Pressure patient(60, 60);
  patient.begin();
  CHECK(patient.due() == 0);
  patient.ask();
  CHECK(patient.due() == SIGTERM);
  CHECK(patient.due() == 0);
  patient.kill();
  CHECK(patient.sent());
  CHECK(patient.due() == 0);
}

TEST_CASE("the time of grace begins again where it is postponed, but not once they are asked to end") {
  Pressure none(0, 0);
  none.postpone();
  CHECK(!none.begun());
  Pressure quick(0, 0);
  quick.begin();
  quick.postpone();
  CHECK(quick.due() == 0);  // a little later
  int wait = -1;
  quick.limit(wait);
  CHECK(wait > 0);
  CHECK(wait <= 100);
  usleep(110'000);
  CHECK(quick.due() == SIGTERM);
  quick.postpone();
  quick.begin();
  CHECK(quick.sent());
  CHECK(quick.due() == SIGKILL);
  Pressure urgent(60, 60);
  urgent.begin();
  urgent.ask();
  urgent.postpone();
  urgent.begin();
  CHECK(urgent.due() == SIGTERM);
}
