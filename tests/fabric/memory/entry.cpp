// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/entry.hpp"

#include <doctest/doctest.h>

#include <string>

#include "sample.hpp"

using namespace meshwise;
using namespace meshwise::detail;
using test::sample;

TEST_CASE("an entry keeps what must agree, and says it in words") {
  const Entry entry = Entry::of(sample(), nullptr);
  CHECK(entry.operation() == Operation::all_reduce);
  CHECK(entry.in_place());
  CHECK(entry.element() == ElementKind::bf16);
  CHECK(entry.reduction() == ReductionKind::max);
  CHECK(entry.algorithm() == Algorithm::ring);
  CHECK(entry.root() == 3);
  CHECK(entry.describe() == "all_reduce(77 x bf16, max, in place, ring)");
  CHECK(entry.agrees(entry));

  Call call = sample();
  const auto differs = [&](const char* what) {
    const Entry other = Entry::of(call, nullptr);
    CHECK(!other.agrees(entry));
    CHECK(std::string(Entry::difference(entry, other)) == what);
    call = sample();
  };
  call.shape.operation = Operation::broadcast;
  differs("the operation");
  call.element = ElementKind::f16;
  differs("the element type");
  call.element_size = 4;
  differs("the element type");
  call.reduction = ReductionKind::sum;
  differs("the reduction");
  call.count = 78;
  differs("the count");
  call.shape.root = 2;
  differs("the root");
  call.shape.in_place = false;
  differs("in place or not");
  call.algorithm = Algorithm::direct;
  differs("the algorithm");
  call.lanes = 4;
  differs("the lanes");
  call.reproducible = true;
  differs("reproducible or not");
  call.signature = 6;
  differs("the extents, the counts or the layout, or in the function that was called, or in its options");
  call.verb = "another";
  call.input = &call;
  CHECK(Entry::of(call, &call).agrees(entry));
}

TEST_CASE("an entry says what else was asked for") {
  Call call = sample();
  call.shape = Shape{Operation::reduce, 4, 2, true};
  call.lanes = 3;
  call.reproducible = true;
  call.algorithm = Algorithm::automatic;
  CHECK(Entry::of(call, nullptr).describe() == "all_reduce(77 x bf16, max, root 2, 3 lanes, reproducible)");
  call.algorithm = Algorithm::custom;
  call.generator.name = "zigzag";
  call.lanes = 1;
  const Entry custom = Entry::of(call, nullptr);
  CHECK(custom.describe() == "all_reduce(77 x bf16, max, root 2, zigzag, 1 lane, reproducible)");
  call.generator.name = "zagzig";
  call.signature = 6;
  CHECK(std::string(Entry::difference(custom, Entry::of(call, nullptr))) == "the algorithm");
  call.element_size = 12;
  CHECK(Entry::of(call, nullptr).element_size() == 12);
}
