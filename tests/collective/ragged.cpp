// SPDX-License-Identifier: Apache-2.0
// all_gather_v and reduce_scatter_v: blocks of any sizes.
#include <doctest/doctest.h>

#include "meshwise/collective/all_gather_v.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/reduce_scatter_v.hpp"
#include "rooted.hpp"

namespace {

using namespace test;

enum class Form { apart, coinciding, within };

void gather_once(Communicator& communicator, const std::vector<std::size_t>& counts, Algorithm algorithm, Form form) {
  const auto me = static_cast<std::size_t>(communicator.rank());
  const std::size_t total = sum_of(counts, counts.size());
  const std::size_t begin = sum_of(counts, me);
  Guarded<int> out(total);
  Guarded<int> own(counts[me]);
  const auto item = [](std::size_t i) { return static_cast<int>(i * 3 + 1); };
  const std::span<int> in = form == Form::apart ? own.span() : out.span().subspan(begin, counts[me]);
  for (std::size_t i = 0; i < counts[me]; ++i) in[i] = item(begin + i);
  CollectiveOptions options;
  options.algorithm = algorithm;
  if (form == Form::within) {
    all_gather_v(communicator, out.span(), counts, options);
  } else {
    all_gather_v(communicator, std::span<const int>(in), out.span(), counts, options);
  }
  const std::string what = "all_gather_v of " + std::to_string(total) + " on " + std::to_string(counts.size());
  out.check(what.c_str());
  own.check(what.c_str());
  require_items(out.data(), total, what, item);
}

void scatter_once(Communicator& communicator, const std::vector<std::size_t>& counts, Algorithm algorithm, Form form) {
  const auto me = static_cast<std::size_t>(communicator.rank());
  const std::size_t total = sum_of(counts, counts.size());
  const std::size_t begin = sum_of(counts, me);
  Guarded<int> in(total);
  Guarded<int> own(counts[me]);
  for (std::size_t i = 0; i < total; ++i) in.data()[i] = value<int, Sum>(communicator.rank(), i);
  const std::span<int> out = form == Form::apart ? own.span() : in.span().subspan(begin, counts[me]);
  CollectiveOptions options;
  options.algorithm = algorithm;
  if (form == Form::within) {
    require(reduce_scatter_v(communicator, in.span(), counts, options).data() == out.data(), "own block");
  } else {
    reduce_scatter_v(communicator, std::span<const int>(in.span()), out, counts, options);
  }
  const std::string what = "reduce_scatter_v of " + std::to_string(total) + " on " + std::to_string(counts.size());
  in.check(what.c_str());
  own.check(what.c_str());
  const std::vector<int> wanted = expected<int, Sum>(communicator.size());
  require_items(out.data(), counts[me], what, [&](std::size_t i) { return wanted[(begin + i) % period]; });
  for (std::size_t i = 0; i < total; ++i) {
    if (form != Form::apart && i >= begin && i < begin + counts[me]) continue;
    require(in.data()[i] == value<int, Sum>(communicator.rank(), i), what + ", the rest of the input");
  }
}

}  // namespace

TEST_CASE("blocks of any sizes, in and out of place, with and without empty ones") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    on_both(ranks, [&](Communicator& communicator) {
      for (const std::size_t scale : {0U, 1U, 2U, 7U, 1000U}) {
        std::vector<std::size_t> counts = uneven(ranks, scale);
        for (const bool padded : both) {
          if (padded) {
            for (std::size_t& count : counts) ++count;
          }
          for (const Algorithm algorithm : algorithms) {
            for (const Form form : {Form::apart, Form::coinciding, Form::within}) {
              gather_once(communicator, counts, algorithm, form);
              scatter_once(communicator, counts, algorithm, form);
            }
          }
        }
      }
    });
  }
}

TEST_CASE("one rank has everything") {
  launch(4, [](Communicator& communicator) {
    const std::vector<std::size_t> counts{0, 0, 5, 0};
    std::vector<int> all(5);
    const std::vector<int> mine(communicator.rank() == 2 ? 5 : 0, 9);
    all_gather_v(communicator, mine, all, counts);
    require(all == std::vector<int>(5, 9), "all_gather_v");
    std::vector<int> sums = start_reduce_scatter_v(communicator, all, std::vector<int>(mine.size()), counts).wait();
    require(sums == std::vector<int>(mine.size(), 36), "start_reduce_scatter_v");
    auto prepared = prepare_all_gather_v(communicator, std::vector<int>(mine), std::vector<int>(5), counts);
    require(prepared.run()[4] == 9 && prepared.run().size() == 5, "prepared with buffers of its own");
  });
}

TEST_CASE("counts that do not fit are refused") {
  launch(2, [](Communicator& communicator) {
    std::vector<int> data(5);
    const std::vector<std::size_t> one{5};
    const std::vector<std::size_t> even{3, 3};
    refuse([&] { all_gather_v(communicator, data, one); }, "a count for each of 2 ranks");
    refuse([&] { all_gather_v(communicator, data, even); }, "data as long as all blocks: 3 + 3 = 6 elements, found 5");
    refuse([&] { reduce_scatter_v(communicator, data, std::vector<int>(3), even); },
           "an input as long as all blocks: 3 + 3 = 6");
    refuse([&] { all_gather_v(communicator, data, std::vector<int>(6), even); },
           "this rank's block of the output: 3 elements, which is counts[");
  });
  const Outcome result = outcome(2, Setup{}, [](Communicator& communicator) {
    std::vector<int> data(5);
    const std::vector<std::size_t> counts{communicator.rank() == 0 ? 2U : 3U, communicator.rank() == 0 ? 3U : 2U};
    all_gather_v(communicator, data, counts);
    barrier(communicator);
  });
  CHECK(result.code[0] == Code::mismatch);
  CHECK(result.code[1] == Code::mismatch);
}

TEST_CASE("ranks that cut a vector differently are told where: both ranks, both counts") {
  // Small, large, of another sum, more ranks than counts are noted of; in one call or the one after the next.
  struct Cut {
    int ranks;
    std::size_t scale;
    bool same_sum;
    int earlier;
  };
  for (const Cut& cut :
       {Cut{2, 1, true, 0}, Cut{3, 20000, true, 0}, Cut{3, 1, false, 0}, Cut{18, 1, true, 0}, Cut{3, 5, true, 3}}) {
    for (const bool messages : both) {
      Setup setup;
      setup.messages = messages;
      const auto ranks = static_cast<std::size_t>(cut.ranks);
      const Outcome result = outcome(cut.ranks, setup, [&](Communicator& communicator) {
        std::vector<std::size_t> counts(ranks, 3 * cut.scale);
        std::vector<int> data(ranks * 3 * cut.scale);
        for (int k = 0; k < cut.earlier; ++k) all_gather_v(communicator, data, counts);
        if (communicator.rank() == 1) {
          counts[0] -= cut.same_sum ? cut.scale : 0;
          counts[1] += cut.scale;
          data.resize(sum_of(counts, ranks));
        }
        reduce_scatter_v(communicator, data, counts);
        barrier(communicator);
      });
      const std::string part = cut.same_sum ? "the part of rank 0 has " : "the part of rank 1 has ";
      const std::string usual = std::to_string(3 * cut.scale);
      const std::string other = std::to_string((cut.same_sum ? 2 : 4) * cut.scale);
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        CAPTURE(result.text[rank]);
        CHECK(result.code[rank] == Code::mismatch);
        CHECK((contains(result.text[rank], part + usual + " elements, rank 1 says " + other) ||
               contains(result.text[rank], "rank 1 says that " + part + other + " elements, rank ")));
      }
    }
  }
}
