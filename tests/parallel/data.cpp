// SPDX-License-Identifier: Apache-2.0
#include "meshwise/parallel/data.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <numeric>
#include <optional>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/layout/dual.hpp"
#include "meshwise/tensor/accumulate.hpp"
#include "support.hpp"

namespace {

using namespace test;

template <class D, class... Ps>
using On = Tensor<float, D, Layout<Grid, Ps...>>;
using Vector = On<Dims<flat>, Partial<dp>>;
using Split = On<Dims<ffn, hidden>, Partial<dp>, Shard<ffn, tp>>;
using OwesBoth = On<Dims<hidden>, Partial<dp>, Partial<tp>>;
using VectorValue = On<Dims<flat>>;
using SplitValue = On<Dims<ffn, hidden>, Shard<ffn, tp>>;
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

// How many buckets the rule makes of these sizes, from the last one on.
std::size_t buckets_of(const std::vector<std::size_t>& sizes, std::size_t bytes) {
  const std::size_t capacity = std::max<std::size_t>(bytes / sizeof(float), 1);
  std::size_t count = 0, filled = 0;
  for (std::size_t i = sizes.size(); i-- > 0; filled += sizes[i]) {
    if (count != 0 && filled + sizes[i] <= capacity) continue;
    ++count;
    filled = 0;
  }
  return count;
}

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}
bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("gradient buckets: the sums of separate all-reduces, to the bit, for any bucket size and order of arrival") {
  constexpr std::size_t sizes[] = {0, 1, 2, 3, 5, 7, 8, 64, 1000, 65537};
  Draw draw(4);
  const int cases = full() ? 100 : 12;
  for (int i = 0; i < cases; ++i) {
    const Ranks ranks = draw.ranks();
    std::vector<std::size_t> lengths(draw(9));
    for (std::size_t& n : lengths) n = draw.of(sizes);
    std::vector<std::size_t> order(lengths.size());
    std::iota(order.begin(), order.end(), 0U);
    for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[draw(k)]);
    CAPTURE(ranks.data);
    CAPTURE(ranks.tensor);
    CAPTURE(lengths.size());
    const auto check = [&](const Grid& mesh) {
      std::vector<Vector> gradients;
      std::vector<VectorValue> sums;
      std::uint64_t elements = 0;
      for (std::size_t k = 0; k < lengths.size(); ++k) {
        gradients.push_back(gradient<Vector>(mesh, {lengths[k]}, k));
        sums.push_back(convert<Replicate<dp>>(gradients[k]));
        elements += lengths[k];
      }
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{1} << 17, huge}) {
        Buckets buckets(mesh, bytes);
        std::vector<Buckets::Ticket<VectorValue>> tickets;
        for (const Vector& g : gradients) tickets.push_back(buckets.expect<VectorValue>(g.extents()));
        require(buckets.count() == buckets_of(lengths, bytes), "the number of buckets");
        for (int step = 0; step < 3; ++step) {
          const Traffic over_dp = traffic_of<dp>(mesh, [&] {
            // What arrives first differs from rank to rank: the order of the sums must not.
            const std::size_t first = static_cast<std::size_t>(mesh.coordinate<dp>() + step);
            for (std::size_t k = 0; k < order.size(); ++k) {
              const std::size_t at = order[(k + first) % order.size()];
              buckets.add(tickets[at], gradients[at]);
            }
            buckets.finish();
          });
          require(over_dp.calls == (mesh.size<dp>() == 1 ? 0 : buckets.count()), "one all-reduce per bucket");
          const auto others = static_cast<std::uint64_t>(mesh.size<dp>() - 1);
          require(sum_over_ranks(mesh, over_dp.volume) ==
                      2 * others * elements * sizeof(float) * static_cast<std::uint64_t>(mesh.size<tp>()),
                  "2(n-1) times the gradients");
          for (std::size_t k = 0; k < lengths.size(); ++k) {
            const auto sum = buckets.take(tickets[k]);
            static_assert(std::is_same_v<decltype(sum), const VectorValue>);
            require(sum.extents() == sums[k].extents(), "the extents");
            require(same_bits(sum.local(), sums[k].local()), "the bits of a separate all-reduce");
          }
        }
      }
    };
    CHECK_NOTHROW(on_grid(ranks, check));
  }
}

TEST_CASE("gradient buckets: tensors of several types, split over the other axis, in one bucket") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 2}, Ranks{3, 2}, Ranks{2, 4}, Ranks{1, 3}, Ranks{5, 1}}) {
    on_grid(ranks, [](const Grid& mesh) {
      // Three rows over up to four ranks: some hold none.
      const auto split = gradient<Split>(mesh, {3, 5}, 1);
      const auto vector = gradient<Vector>(mesh, {7}, 2);
      const auto both = gradient<OwesBoth>(mesh, {6}, 3);
      Buckets buckets(mesh, huge);
      const auto first = buckets.expect(SplitValue(mesh, {3, 5}));
      const auto second = buckets.expect<VectorValue>({7});
      const auto third = buckets.expect<On<Dims<hidden>, Partial<tp>>>({6});
      buckets.add(first, split);
      buckets.add(third, both);
      buckets.add(second, vector);
      buckets.finish();
      require(buckets.count() == 1, "one bucket");
      const auto a = buckets.take(first);
      const auto b = buckets.take(second);
      const auto c = buckets.take(third);
      static_assert(std::is_same_v<decltype(a), const SplitValue>);
      static_assert(std::is_same_v<decltype(c), const On<Dims<hidden>, Partial<tp>>>, "tp is still owed");
      require(a.range<ffn>().size == split.range<ffn>().size, "the own rows");
      require(same_bits(a.local(), convert<Replicate<dp>>(split).local()), "split");
      require(same_bits(b.local(), convert<Replicate<dp>>(vector).local()), "vector");
      require(same_bits(c.local(), convert<Replicate<dp>>(both).local()), "both");
    });
  }
}

TEST_CASE("gradient buckets: the other axis works alike, and both at once are one all-reduce") {
  for (const Ranks ranks : {Ranks{2, 3}, Ranks{1, 2}, Ranks{2, 1}, Ranks{1, 1}, Ranks{3, 2}}) {
    on_grid(ranks, [](const Grid& mesh) {
      const auto both = gradient<OwesBoth>(mesh, {6000}, 3);
      GradientBuckets<tp, float, Grid> over_tp(mesh, 1000);
      const auto ticket = over_tp.expect<On<Dims<hidden>, Partial<dp>>>({6000});
      const Traffic before = mesh.along<dp>().traffic();
      over_tp.add(ticket, both);
      over_tp.finish();
      require(mesh.along<dp>().traffic() == before, "nothing crosses dp");
      const auto sum = over_tp.take(ticket);
      static_assert(std::is_same_v<decltype(sum), const On<Dims<hidden>, Partial<dp>>>);
      require(same_bits(sum.local(), convert<Replicate<tp>>(both).local()), "the sum over tp");

      GradientBuckets<Mesh<dp, tp>, float, Grid> joint(mesh, 1000);
      const auto place = joint.expect<On<Dims<hidden>>>({6000});
      const Traffic start = mesh.traffic<dp, tp>();
      for (int step = 0; step < 2; ++step) {
        joint.add(place, both);
        joint.finish();
        require(same_bits(joint.take(place).local(), convert<Replicate<dp>, Replicate<tp>>(both).local()), "both sums");
      }
      const int ranks_in_all = mesh.size<dp>() * mesh.size<tp>();
      const Traffic spent = mesh.traffic<dp, tp>() - start;
      require(spent.calls == (ranks_in_all == 1 ? 0U : 4U), "one all-reduce each, and one of each convert");
      require(sum_over_ranks(mesh, spent.volume) == static_cast<std::uint64_t>(ranks_in_all - 1) * 8 * 6000 * 4,
              "2(n-1) of all ranks together");
    });
  }
}

TEST_CASE("gradient buckets: of several micro-batches only the last one communicates") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 1}, Ranks{3, 2}}) {
    on_grid(ranks, [](const Grid& mesh) {
      Buckets buckets(mesh, 40);
      const auto a = buckets.expect<VectorValue>({8});
      const auto b = buckets.expect<VectorValue>({3}, 2);  // comes twice in each micro-batch
      const std::uint64_t calls = mesh.size<dp>() == 1 ? 0 : buckets.count();
      for (int step = 0; step < 2; ++step) {
        std::optional<Vector> sum_a, sum_b;
        const auto into = [](std::optional<Vector>& sum, const Vector& g) {
          if (sum) {
            *sum += g;
          } else {
            sum = g;
          }
        };
        for (unsigned i = 0; i < 4; ++i) {
          const auto quiet = buckets.no_sync(i != 3);
          const Traffic spent = traffic_of<dp>(mesh, [&] {
            for (unsigned use = 0; use < 2; ++use) {
              const auto gb = gradient<Vector>(mesh, {3}, 100 + 10 * i + use);
              buckets.add(b, gb);
              into(sum_b, gb);
            }
            if (i == 1) return;  // a is not used in this micro-batch
            const auto ga = gradient<Vector>(mesh, {8}, i);
            buckets.add(a, ga);
            into(sum_a, ga);
          });
          require(i == 3 || spent == Traffic{}, "a micro-batch that is not the last one is silent");
        }
        const Traffic before = mesh.along<dp>().traffic();
        buckets.finish();
        require((mesh.along<dp>().traffic() - before).calls <= calls, "the last one pays");
        require(same_bits(buckets.take(a).local(), convert<Replicate<dp>>(*sum_a).local()), "the sum of all, first");
        require(same_bits(buckets.take(b).local(), convert<Replicate<dp>>(*sum_b).local()), "the sum of all, second");
      }
    });
  }
}

TEST_CASE("gradient buckets: unused parameters count as zero and stall nothing, whichever ranks use them") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 1}, Ranks{3, 1}, Ranks{5, 1}}) {
    for (const std::size_t bytes : {std::size_t{4}, std::size_t{64}, huge}) {
      on_grid(ranks, [bytes](const Grid& mesh) {
        Buckets buckets(mesh, bytes);
        std::vector<Buckets::Ticket<VectorValue>> tickets;
        for (std::size_t k = 0; k < 6; ++k) tickets.push_back(buckets.expect<VectorValue>({k + 1}));
        for (unsigned step = 0; step < 4; ++step) {
          for (std::size_t k = 6; k-- > 0;) {
            Vector own = gradient<Vector>(mesh, {k + 1}, k);
            // Number 4 is used by nobody, number 3 by coordinate 1 only, in odd steps the others by nobody at all.
            const bool used = k == 3 ? mesh.coordinate<dp>() == 1 : k != 4 && step % 2 == 0;
            if (used) buckets.add(tickets[k], own);
            if (!used) std::fill(own.mutable_local().begin(), own.mutable_local().end(), 0.0F);
            const auto expected = convert<Replicate<dp>>(own);
            if (k != 0) continue;
            buckets.finish();
            require(same_bits(buckets.take(tickets[0]).local(), expected.local()), "the last to come");
          }
          for (const float v : buckets.take(tickets[4]).local()) require(v == 0, "used by nobody");
          Vector third = gradient<Vector>(mesh, {4}, 3);
          if (mesh.coordinate<dp>() != 1) std::fill(third.mutable_local().begin(), third.mutable_local().end(), 0.0F);
          require(same_bits(buckets.take(tickets[3]).local(), convert<Replicate<dp>>(third).local()), "used by one");
        }
      });
    }
  }
}

TEST_CASE("gradient buckets: a full bucket is summed while others are awaited") {
  on_grid({3, 1}, [](const Grid& mesh) {
    constexpr std::size_t n = 40000;
    Buckets buckets(mesh, n * sizeof(float));
    const auto late = buckets.expect<VectorValue>({n});
    const auto early = buckets.expect<VectorValue>({n});
    const auto one = gradient<Vector>(mesh, {n}, 1), two = gradient<Vector>(mesh, {n}, 2);
    const Traffic before = mesh.along<dp>().traffic();
    buckets.add(early, one);
    // Whatever the ranks wait for, they go on with what is in flight.
    std::vector<std::uint64_t> moved{0};
    for (int i = 0; i < 1000 && moved[0] == 0; ++i) {
      moved[0] = (mesh.along<dp>().traffic() - before).moved;
      all_reduce<Min>(mesh.world(), moved);
    }
    require(moved[0] > 0, "the first bucket is on its way on all ranks");
    buckets.add(late, two);
    buckets.finish();
    require(same_bits(buckets.take(early).local(), convert<Replicate<dp>>(one).local()), "early");
    require(same_bits(buckets.take(late).local(), convert<Replicate<dp>>(two).local()), "late");
  });
}

TEST_CASE("gradient buckets: what cannot be is an error that says so") {
  on_grid({2, 1}, [](const Grid& mesh) {
    Buckets buckets(mesh, 40);
    const auto a = buckets.expect<VectorValue>({8});
    const auto b = buckets.expect<VectorValue>({8});
    const auto g = gradient<Vector>(mesh, {8}, 1);
    require(contains(error_of([&] { (void)buckets.expect<VectorValue>({1}, 0); }), "at least 1 use"), "no use");
    require(contains(error_of([&] { (void)buckets.take(a); }), "call finish()"), "before the first step");
    buckets.add(a, g);
    require(contains(error_of([&] { (void)buckets.expect<VectorValue>({8}); }), "before the first add"), "too late");
    require(contains(error_of([&] { buckets.add(a, g); }), "how many times it comes"), "twice");
    require(contains(error_of([&] { buckets.add(b, gradient<Vector>(mesh, {7}, 1)); }), "the extents"),
            "other extents");
    require(contains(error_of([&] { (void)buckets.take(a); }), "call finish()"), "before finish");
    {
      const auto quiet = buckets.no_sync();
      require(contains(error_of([&] { buckets.finish(); }), "no_sync"), "within no_sync");
    }
    buckets.add(b, g);
    // A trainer that forgets finish: the bucket may be on its way, and is not refilled.
    require(contains(error_of([&] { buckets.add(b, g); }), "call finish after each step"), "the next step");
    {
      const auto quiet = buckets.no_sync();
      require(contains(error_of([&] { buckets.add(b, g); }), "call finish after each step"), "the next step, quietly");
    }
    buckets.finish();
    require(same_bits(buckets.take(a).local(), convert<Replicate<dp>>(g).local()), "nothing was lost");
    require(same_bits(buckets.take(b).local(), convert<Replicate<dp>>(g).local()), "nothing was added");
    buckets.add(a, g);
    require(contains(error_of([&] { (void)buckets.take(a); }), "call finish()"), "of the step before");
    buckets.finish();
    Buckets empty(mesh, 40);
    empty.finish();
    require(empty.count() == 0, "nothing to sum");
  });
}

TEST_CASE("gradient buckets: the value at the time of add counts, and what was taken lives on") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 1}}) {
    on_grid(ranks, [](const Grid& mesh) {
      auto own = gradient<Vector>(mesh, {64}, 1);
      const auto other = gradient<Vector>(mesh, {64}, 2);
      const auto expected = convert<Replicate<dp>>(own);
      std::optional<VectorValue> taken, neighbour;
      {
        Buckets buckets(mesh, huge);
        const auto a = buckets.expect<VectorValue>({64}), b = buckets.expect<VectorValue>({64});
        buckets.add(a, own);
        own.mutable_local()[0] = 1e9F;  // too late to matter
        buckets.add(b, other);
        buckets.finish();
        taken = buckets.take(a);
        neighbour = buckets.take(b);
        for (int step = 0; step < 2; ++step) {  // the next steps leave what was taken alone
          buckets.add(a, other);
          buckets.add(b, other);
          buckets.finish();
        }
      }
      require(same_bits(taken->local(), expected.local()), "the sum of what was added");
      // Two views of one bucket: writing one leaves the other alone.
      const auto before = piece(*neighbour);
      std::fill(taken->mutable_local().begin(), taken->mutable_local().end(), 7.0F);
      require(piece(*neighbour) == before, "the neighbour in the bucket");
    });
  }
}

TEST_CASE("gradient buckets: a group of one changes nothing and sends nothing, however often") {
  on_grid({1, 2}, [](const Grid& mesh) {
    const auto own = gradient<Split>(mesh, {5, 3}, 1);
    const auto before = piece(own);
    Buckets buckets(mesh, 1000);
    const auto ticket = buckets.expect<SplitValue>({5, 3});
    const Traffic silent = traffic_of<dp>(mesh, [&] {
      for (int step = 0; step < 3; ++step) {
        buckets.add(ticket, own);
        buckets.finish();
        require(piece(buckets.take(ticket)) == before, "the same bits, not doubled");
        require(piece(own) == before, "the gradient itself too");
      }
    });
    require(silent == Traffic{}, "no traffic in a group of one");
  });
}

TEST_CASE("gradient buckets: memory is the gradients' own, once") {
  on_grid({2, 1}, [](const Grid& mesh) {
    Buckets buckets(mesh, 4000);
    std::vector<Buckets::Ticket<VectorValue>> tickets;
    for (int i = 0; i < 8; ++i) tickets.push_back(buckets.expect<VectorValue>({1000}));
    for (int step = 0; step < 3; ++step) {
      for (std::size_t i = 8; i-- > 0;) buckets.add(tickets[i], gradient<Vector>(mesh, {1000}, i));
      buckets.finish();
    }
    const Usage usage = mesh.memory().usage(Category::gradients);
    require(usage.current == 32000 && usage.peak == 32000, "eight buckets of 4000 bytes, summed in place");
  });
}
