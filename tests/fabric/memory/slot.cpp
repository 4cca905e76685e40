// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/slot.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "sample.hpp"

using namespace meshwise;
using namespace meshwise::detail;
using test::sample;

TEST_CASE("an entry carries the context of a rank that knows only its own buffers") {
  Call call = sample();
  const int counts[4] = {1, 2, 3, 4};
  call.regions.context = counts;
  CHECK(Entry::of(call, nullptr).pointer<const void>(Entry::context) == nullptr);
  call.regions.own_bytes = sizeof(counts);
  const Entry entry = Entry::of(call, nullptr);
  MemorySlot slot;
  slot.write(1, entry);
  slot.progress.store(progress_at(1, 1));
  Entry seen;
  CHECK(slot.read(1, seen));
  CHECK(seen.word == entry.word);
  CHECK(seen.pointer<const void>(Entry::context) == counts);
}

TEST_CASE("an entry can be read while its owner is near, and never torn") {
  MemorySlot slot;
  Entry seen;
  CHECK(!slot.read(1, seen));
  std::atomic<bool> done{false};
  std::thread owner([&] {
    for (std::uint64_t sequence = 1; sequence <= 200000; ++sequence) {
      Entry entry;
      entry.word.fill(sequence);
      slot.write(sequence, entry);
      slot.progress.store(progress_at(sequence, 1), std::memory_order_release);
      slot.progress.store(progress_at(sequence, last_step), std::memory_order_release);
    }
    done.store(true);
  });
  bool good = true;
  while (!done.load()) {
    const std::uint64_t sequence = sequence_of(slot.progress.load(std::memory_order_acquire));
    if (sequence == 0 || !slot.read(sequence, seen)) continue;
    for (const std::uint64_t word : seen.word) good = good && (word == sequence || (word == 0 && !seen.more()));
  }
  owner.join();
  CHECK(good);
  CHECK(slot.read(200000, seen));
  CHECK(slot.read(199985, seen));
  CHECK(!slot.read(199984, seen));
  CHECK(!slot.read(200001, seen));
}

TEST_CASE("what another rank needs of an entry is compared and read at once") {
  using Met = MemorySlot::Met;
  Call call = sample();
  int input = 0, output = 0, scratch = 0;
  call.input = &input;
  call.output = &output;
  const Entry mine = Entry::of(call, nullptr);
  MemorySlot slot;
  std::array<std::uint64_t, 4> buffers{};
  CHECK(slot.meet(1, mine, buffers) == Met::later);
  slot.write(1, Entry::of(call, &scratch));
  CHECK(slot.meet(1, mine, buffers) == Met::same);
  const auto is = [&](std::size_t i, const void* where) {
    return buffers[i] == reinterpret_cast<std::uintptr_t>(where);
  };
  CHECK((is(0, &input) && is(1, &output) && is(2, &scratch) && is(3, nullptr)));
  slot.write(1 + MemorySlot::kept, mine);
  CHECK(slot.meet(1, mine, buffers) == Met::later);
  // Whatever must agree is compared; a context is learned where ranks have their own.
  const auto compared = [&] {
    Entry other;
    other.set(call, nullptr, 0);
    slot.write(2, other);
    const Met met = slot.meet(2, mine, buffers);
    CHECK((met == Met::same) == other.agrees(mine));
    return met;
  };
  CHECK(compared() == Met::same);
  ++call.count;
  CHECK(compared() == Met::other);
  --call.count;
  call.element_size *= 2;
  CHECK(compared() == Met::other);
  call.element_size /= 2;
  ++call.signature;
  CHECK(compared() == Met::other);
  --call.signature;
  call.shape.in_place = !call.shape.in_place;
  CHECK(compared() == Met::other);
  const int counts[2] = {1, 2};
  call.regions.context = counts;
  call.regions.own_bytes = sizeof(counts);
  const Entry own = Entry::of(call, nullptr);
  slot.write(3, own);
  CHECK(slot.meet(3, own, buffers) == Met::same);
  CHECK(is(3, counts));
}
