// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/gather.hpp"

#include <doctest/doctest.h>

#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/gather_v.hpp"
#include "meshwise/collective/scatter.hpp"
#include "meshwise/collective/scatter_v.hpp"
#include "rooted.hpp"

namespace {

using namespace test;

int item(int rank, std::size_t i) { return rank * 100003 + static_cast<int>(i); }

/// Which rank's block element i of the whole lies in, and where in it.
struct At {
  int rank;
  std::size_t index;
};
At at(const std::vector<std::size_t>& counts, std::size_t i) {
  std::size_t rank = 0;
  while (i >= counts[rank]) i -= counts[rank++];
  return {static_cast<int>(rank), i};
}

enum class Form { equal, counted, started, prepared };

void gather_once(Communicator& communicator, const std::vector<std::size_t>& counts, int root, bool in_place,
                 Form form) {
  const auto me = static_cast<std::size_t>(communicator.rank());
  const bool collects = communicator.rank() == root;
  const std::size_t begin = sum_of(counts, me);
  const std::size_t total = sum_of(counts, counts.size());
  Guarded<int> whole(collects ? total : 0);
  Guarded<int> own(counts[me]);
  const std::span<int> in = collects && in_place ? whole.span().subspan(begin, counts[me]) : own.span();
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = item(communicator.rank(), i);
  const std::span<int> out = collects ? whole.span() : std::span<int>();
  const std::span<const int> from = in;
  const std::string what =
      "gather of " + std::to_string(total) + " to " + std::to_string(root) + " of " + std::to_string(counts.size());
  const Traffic before = communicator.traffic();
  std::uint64_t calls = 1;
  switch (form) {
    case Form::equal: gather(communicator, from, out, root); break;
    case Form::counted: gather_v(communicator, from, out, counts, root); break;
    case Form::started: {
      auto pending = start_gather_v(communicator, from, out, counts, root);
      require(pending.wait().data() == out.data(), what + ", result");
      break;
    }
    case Form::prepared: {
      auto prepared = prepare_gather_v(communicator, from, out, counts, root);
      prepared.run();
      if (collects && !in_place) std::fill(out.begin(), out.end(), -1);
      prepared.run();
      calls = 2;
      break;
    }
  }
  const Traffic traffic = communicator.traffic() - before;
  own.check(what.c_str());
  whole.check(what.c_str());
  if (collects) {
    require_items(out.data(), total, what, [&](std::size_t i) {
      const At place = at(counts, i);
      return item(place.rank, place.index);
    });
  }
  require_items(in.data(), in.size(), what + ", input", [&](std::size_t i) { return item(communicator.rank(), i); });
  const std::uint64_t volume = collects && communicator.size() > 1 ? (total - counts[me]) * sizeof(int) : 0;
  require(traffic.calls == calls && traffic.volume == calls * volume, what + ", traffic");
}

void scatter_once(Communicator& communicator, const std::vector<std::size_t>& counts, int root, bool in_place,
                  Form form) {
  const auto me = static_cast<std::size_t>(communicator.rank());
  const bool gives = communicator.rank() == root;
  const std::size_t total = sum_of(counts, counts.size());
  Guarded<int> whole(gives ? total : 0);
  Guarded<int> own(counts[me]);
  for (std::size_t i = 0; i < whole.span().size(); ++i) whole.data()[i] = item(at(counts, i).rank, at(counts, i).index);
  const std::span<int> out = gives && in_place ? whole.span().subspan(sum_of(counts, me), counts[me]) : own.span();
  const std::span<const int> in = whole.span();
  const std::string what =
      "scatter of " + std::to_string(total) + " from " + std::to_string(root) + " of " + std::to_string(counts.size());
  switch (form) {
    case Form::equal: scatter(communicator, in, out, root); break;
    case Form::counted: scatter_v(communicator, in, out, counts, root); break;
    case Form::started: start_scatter_v(communicator, in, out, counts, root).wait(); break;
    case Form::prepared: {
      auto prepared = prepare_scatter_v(communicator, in, out, counts, root);
      prepared.run();
      prepared.start().wait();
      break;
    }
  }
  own.check(what.c_str());
  whole.check(what.c_str());
  require_items(out.data(), out.size(), what, [&](std::size_t i) { return item(communicator.rank(), i); });
  require_items(in.data(), in.size(), what + ", input",
                [&](std::size_t i) { return item(at(counts, i).rank, at(counts, i).index); });
}

template <class F>
void all_forms(const F& once) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    on_both(ranks, [&](Communicator& communicator) {
      for (const int root : roots(ranks)) {
        for (const bool in_place : both) {
          for (const std::size_t each : {0U, 1U, 3U, 64U, 1000U}) {
            const std::vector<std::size_t> equal(static_cast<std::size_t>(ranks), each);
            once(communicator, equal, root, in_place, Form::equal);
          }
          for (const std::size_t scale : {0U, 1U, 2U, 7U, 1000U}) {
            for (const Form form : {Form::counted, Form::started, Form::prepared}) {
              once(communicator, uneven(ranks, scale), root, in_place, form);
            }
          }
        }
      }
    });
  }
}

}  // namespace

TEST_CASE("gather puts blocks together at the root") { all_forms(gather_once); }

TEST_CASE("scatter is the way back") { all_forms(scatter_once); }

TEST_CASE("gather and scatter refuse what cannot work before anything is sent") {
  launch(3, [](Communicator& communicator) {
    std::vector<int> whole(9), own(3);
    const std::vector<std::size_t> two{1, 2};
    const std::vector<std::size_t> counts{3, 3, 3};
    const std::vector<std::size_t> endless{~std::size_t{0}, 1, 0};
    const bool root = communicator.rank() == 1;
    const auto refused = [&](auto&& call, const char* word) { refuse(call, word); };
    refused([&] { gather(communicator, own, whole, 3); }, "a root from 0 to 2");
    refused([&] { scatter(communicator, whole, own, -1); }, "a root from 0 to 2");
    refused([&] { gather_v(communicator, own, whole, two, 1); }, "a count for each of 3 ranks");
    refused([&] { gather_v(communicator, own, whole, endless, 1); }, "a sum of all counts below 2^64");
    refused([&] { gather_v(communicator, std::span(own).first(2), whole, counts, 1); },
            "this rank's block: 3 elements");
    if (root) {
      refused([&] { gather(communicator, own, std::span(whole).first(8), 1); },
              "an output of the root as long as all blocks: 9 elements");
      refused([&] { gather(communicator, std::span(whole).subspan(2, 3), whole, 1); }, "an overlap");
      refused([&] { scatter(communicator, whole, std::span(whole).subspan(1, 3), 1); }, "an overlap");
      refused([&] { scatter(communicator, std::span<int>(), own, 1); }, "an input of the root as long as all blocks");
    }
    gather(communicator, own, whole, 1);
  });
}

TEST_CASE("ranks whose counts differ hear of it") {
  const Outcome result = outcome(2, Setup{}, [](Communicator& communicator) {
    std::vector<int> whole(4), own(2);
    const std::vector<std::size_t> even{2, 2};
    const std::vector<std::size_t> other{1, 2};
    gather_v(communicator, own, whole, communicator.rank() == 0 ? even : other, 0);
    barrier(communicator);  // a rank that only sends may hear of it here
  });
  CHECK(result.code[0] == Code::mismatch);
  CHECK(result.code[1] == Code::mismatch);
}
