// SPDX-License-Identifier: Apache-2.0
#include "meshwise/parallel/data.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <optional>

#include "meshwise/layout/dual.hpp"
#include "support.hpp"

namespace {

using namespace test;

template <class D, class... Ps>
using On = Tensor<float, D, Layout<Grid, Ps...>>;
using Vector = On<Dims<flat>, Partial<dp>>;
using Split = On<Dims<ffn, hidden>, Partial<dp>, Shard<ffn, tp>>;
using OwesBoth = On<Dims<hidden>, Partial<dp>, Partial<tp>>;
using Buckets = GradientBuckets<dp, float, Grid>;

constexpr std::size_t huge = std::size_t{1} << 40;

// Ranks bring gradients of their own along the axes over which T owes a sum, and agree along the others.
template <class T>
T gradient(const Grid& mesh, const Extents<typename T::dims>& extents, std::uint64_t seed) {
  std::uint64_t own = stream_seed(seed, static_cast<std::uint64_t>(mesh.coordinate<dp>()));
  if (std::is_same_v<T, OwesBoth>) own = stream_seed(own, static_cast<std::uint64_t>(mesh.coordinate<tp>()));
  T result(mesh, extents);
  const auto values = result.mutable_local();
  detail::for_each_index(result,
                         [&](const auto& index, std::size_t i) { values[i] = normal<float>(own, index.linear); });
  return result;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// How many buckets the rule makes of these sizes.
std::size_t buckets_of(const std::vector<std::size_t>& sizes, std::size_t bytes) {
  const std::size_t capacity = std::max<std::size_t>(bytes / sizeof(float), 1);
  std::size_t count = 0, filled = 0;
  bool open = false;
  for (std::size_t n : sizes) {
    if (open && filled + n > capacity) {
      ++count;
      filled = 0;
    }
    open = true;
    filled += n;
  }
  return count + (open ? 1 : 0);
}

}  // namespace

TEST_CASE("gradient buckets: the sums of separate all-reduces, to the bit, whatever the bucket size") {
  constexpr std::size_t sizes[] = {0, 1, 2, 3, 5, 7, 8, 64, 1000, 65537};
  Draw draw(4);
  const int cases = full() ? 100 : 12;
  for (int i = 0; i < cases; ++i) {
    const Ranks ranks = draw.ranks();
    std::vector<std::size_t> lengths(draw(9));
    for (std::size_t& n : lengths) n = draw.of(sizes);
    CAPTURE(ranks.data);
    CAPTURE(ranks.tensor);
    CAPTURE(lengths.size());
    const auto check = [&](const Grid& mesh) {
      std::vector<Vector> gradients;
      std::vector<On<Dims<flat>>> sums;
      std::uint64_t elements = 0;
      for (std::size_t k = 0; k < lengths.size(); ++k) {
        gradients.push_back(gradient<Vector>(mesh, {lengths[k]}, k));
        sums.push_back(convert<Replicate<dp>>(gradients[k]));
        elements += lengths[k];
      }
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{1} << 17, huge}) {
        Buckets buckets(mesh, bytes);
        std::vector<Buckets::Ticket<Vector>> tickets;
        const Traffic over_dp = traffic_of<dp>(mesh, [&] {
          for (const Vector& g : gradients) tickets.push_back(buckets.add(g));
          buckets.flush();
        });
        require(buckets.count() == buckets_of(lengths, bytes), "the number of buckets");
        require(over_dp.calls == (mesh.size<dp>() == 1 ? 0 : buckets.count()), "one all-reduce per bucket");
        const auto others = static_cast<std::uint64_t>(mesh.size<dp>() - 1);
        require(sum_over_ranks(mesh, over_dp.volume) ==
                    2 * others * elements * sizeof(float) * static_cast<std::uint64_t>(mesh.size<tp>()),
                "2(n-1) times the gradients");
        for (std::size_t k = 0; k < lengths.size(); ++k) {
          const auto sum = buckets.take(tickets[k]);
          static_assert(std::is_same_v<decltype(sum), const On<Dims<flat>>>);
          require(sum.extents() == sums[k].extents(), "the extents");
          require(same_bits(sum.local(), sums[k].local()), "the bits of a separate all-reduce");
        }
      }
    };
    CHECK_NOTHROW(on_grid(ranks, check));
  }
}

TEST_CASE("gradient buckets: tensors of several types, split over the other axis, in one bucket") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 2}, Ranks{3, 2}, Ranks{2, 4}, Ranks{1, 3}}) {
    on_grid(ranks, [](const Grid& mesh) {
      // Three rows over up to four ranks: some hold none.
      const auto split = gradient<Split>(mesh, {3, 5}, 1);
      const auto vector = gradient<Vector>(mesh, {7}, 2);
      const auto both = gradient<OwesBoth>(mesh, {6}, 3);
      Buckets buckets(mesh, huge);
      const auto first = buckets.add(split);
      const auto second = buckets.add(vector);
      const auto third = buckets.add(both);
      buckets.flush();
      require(buckets.count() == 1, "one bucket");
      const auto a = buckets.take(first);
      const auto b = buckets.take(second);
      const auto c = buckets.take(third);
      static_assert(std::is_same_v<decltype(a), const On<Dims<ffn, hidden>, Shard<ffn, tp>>>);
      static_assert(std::is_same_v<decltype(c), const On<Dims<hidden>, Partial<tp>>>, "tp is still owed");
      require(a.range<ffn>().size == split.range<ffn>().size, "the own rows");
      require(same_bits(a.local(), convert<Replicate<dp>>(split).local()), "split");
      require(same_bits(b.local(), convert<Replicate<dp>>(vector).local()), "vector");
      require(same_bits(c.local(), convert<Replicate<dp>>(both).local()), "both");
    });
  }
}

TEST_CASE("gradient buckets: the other axis works alike") {
  on_grid({2, 3}, [](const Grid& mesh) {
    GradientBuckets<tp, float, Grid> buckets(mesh, 1000);
    const auto both = gradient<OwesBoth>(mesh, {6}, 3);
    const Traffic before = mesh.along<dp>().traffic();
    const auto ticket = buckets.add(both);
    buckets.flush();
    require(mesh.along<dp>().traffic() == before, "nothing crosses dp");
    const auto sum = buckets.take(ticket);
    static_assert(std::is_same_v<decltype(sum), const On<Dims<hidden>, Partial<dp>>>);
    require(same_bits(sum.local(), convert<Replicate<tp>>(both).local()), "the sum over tp");
  });
}

TEST_CASE("gradient buckets: take before flush is an error; flush may be called at any time") {
  on_grid({2, 1}, [](const Grid& mesh) {
    Buckets buckets(mesh, 40);
    buckets.flush();
    require(buckets.count() == 0, "nothing to sum");
    const auto first = buckets.add(gradient<Vector>(mesh, {8}, 1));
    std::string text;
    try {
      buckets.take(first);
    } catch (const Error& error) {
      text = error.what();
    }
    require(text.find("GradientBuckets::take") != std::string::npos, text);
    require(text.find("flush()") != std::string::npos, text);
    const auto second = buckets.add(gradient<Vector>(mesh, {8}, 2));  // does not fit: the first bucket closes
    require(buckets.count() == 1, "a full bucket is summed without a flush");
    buckets.take(first);
    buckets.flush();
    buckets.flush();
    require(buckets.count() == 2, "an empty flush sums nothing");
    const auto third = buckets.add(gradient<Vector>(mesh, {1}, 3));
    buckets.flush();
    for (const auto& [ticket, seed] : {std::pair(first, 1U), std::pair(second, 2U), std::pair(third, 3U)}) {
      const auto alone = convert<Replicate<dp>>(gradient<Vector>(mesh, ticket.extents, seed));
      require(same_bits(buckets.take(ticket).local(), alone.local()), "each bucket keeps its own");
    }
  });
}

TEST_CASE("gradient buckets: the value at the time of add counts, and what was taken lives on") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 1}}) {
    on_grid(ranks, [](const Grid& mesh) {
      auto own = gradient<Vector>(mesh, {64}, 1);
      const auto expected = convert<Replicate<dp>>(gradient<Vector>(mesh, {64}, 1));
      std::optional<On<Dims<flat>>> taken, neighbour;
      {
        Buckets buckets(mesh, huge);
        const auto ticket = buckets.add(own);
        const auto other = buckets.add(gradient<Vector>(mesh, {64}, 2));
        own.mutable_local()[0] = 1e9F;  // too late to matter
        buckets.flush();
        taken = buckets.take(ticket);
        neighbour = buckets.take(other);
      }
      require(same_bits(taken->local(), expected.local()), "the sum of what was added");
      // Two views of one bucket: writing one leaves the other alone.
      const auto before = piece(*neighbour);
      std::fill(taken->mutable_local().begin(), taken->mutable_local().end(), 7.0F);
      require(piece(*neighbour) == before, "the neighbour in the bucket");
    });
  }
}

TEST_CASE("gradient buckets: a group of one changes nothing and sends nothing") {
  on_grid({1, 2}, [](const Grid& mesh) {
    const auto own = gradient<Split>(mesh, {5, 3}, 1);
    const auto before = piece(own);
    const Traffic silent = traffic_of<dp>(mesh, [&] {
      Buckets buckets(mesh, 1000);
      const auto ticket = buckets.add(own);
      buckets.flush();
      require(piece(buckets.take(ticket)) == before, "the same bits");
      require(piece(own) == before, "the gradient itself too");
    });
    require(silent == Traffic{}, "no traffic in a group of one");
  });
}
