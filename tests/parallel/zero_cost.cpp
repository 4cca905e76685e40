// SPDX-License-Identifier: Apache-2.0
// What the stages send and hold, by the ledger's meters, against the formulas: to the byte.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "meshwise/fabric/dry/launch.hpp"
#include "meshwise/parallel/zero.hpp"
#include "meshwise/trace/ledger.hpp"
#include "meshwise/train/mixed_precision.hpp"
#include "support.hpp"

namespace {

using namespace test;

using Element = bf16;
constexpr std::uint64_t bytes = sizeof(Element);
using Line = Tensor<Element, Dims<flat>, Layout<Grid>>;

struct Job {
  std::vector<std::size_t> sizes;  // elements of each unit
  int micro_batches = 1;
  ZeroOptions how = {};
};
struct None {
  template <class... Any>
  void operator()(const Any&...) const {}
};

/// Steps whose gradients are made up, so that all traffic is that of the stage.
template <class Stage, class Gradient, class Between = None, class Before = None>
void run(const Grid& mesh, const Job& job, int steps, const Between& between = {}, const Before& before = {}) {
  using Z = Zero<Stage, Element, Grid>;
  Z zero(mesh, job.how);
  std::vector<typename Z::template Ticket<Line>> tickets;
  for (const std::size_t n : job.sizes) {
    zero.begin_unit();
    tickets.push_back(zero.add(Line(mesh, {n})));
  }
  std::vector<MasterState<typename Z::Own>> states;  // 12 bytes for each parameter whose state this rank has
  for (std::size_t u = 0; u < zero.units(); ++u) states.emplace_back(zero.own(u));
  before(zero);
  for (int step = 0; step < steps; ++step) {
    for (int m = 0; m < job.micro_batches; ++m) {
      const auto quiet = zero.no_sync(m + 1 < job.micro_batches);
      for (std::size_t u = 0; u < zero.units(); ++u) zero.forward(u, None{});
      for (std::size_t u = zero.units(); u-- > 0;) {
        zero.backward(u, [&](const auto&, auto& g) { g.add(tickets[u], Gradient(mesh, {job.sizes[u]})); });
      }
      if (m == 0 && job.micro_batches > 1) between(zero);
    }
    zero.finish();
    zero.update([](std::size_t, auto& w, const auto&) { (void)w.mutable_local(); });
  }
  for (std::size_t u = 0; u < zero.units(); ++u) (void)zero.own(u);  // what the last update has started
}
using OverDp = Tensor<Element, Dims<flat>, Layout<Grid, Partial<dp>>>;
using OverBoth = Tensor<Element, Dims<flat>, Layout<Grid, Partial<dp>, Partial<tp>>>;

/// What a stage sends in one step, summed over all ranks, and how many collectives a rank takes part in.
template <class Stage, class Gradient, Axis... As>
void require_sent(const Grid& mesh, const Job& job, std::uint64_t volume, std::uint64_t calls,
                  const std::string& what) {
  const int steps = 2;
  const Traffic before = mesh.traffic<As...>();
  run<Stage, Gradient>(mesh, job, steps);
  const Traffic spent = mesh.traffic<As...>() - before;
  const std::uint64_t sent = sum_over_ranks(mesh, spent.volume);
  require(sent == steps * volume * bytes,
          what + ": " + std::to_string(sent) + " bytes instead of " + std::to_string(steps * volume * bytes));
  require(spent.calls == steps * calls,
          what + ": " + std::to_string(spent.calls) + " calls instead of " + std::to_string(steps * calls));
}

const std::vector<std::vector<std::size_t>> models{{64, 64, 64}, {7, 1, 100, 3}, {5}, {0, 3, 0}, {3000, 10, 2999}};

}  // namespace

TEST_CASE("zero, bytes sent: 2(n-1)/n, 2(n-1)/n, (m+1)(n-1)/n and 3m(n-1)/n of all parameters, to the byte") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 1}, Ranks{3, 1}, Ranks{4, 1}, Ranks{5, 1}, Ranks{2, 2}}) {
    on_grid(ranks, [&](const Grid& mesh) {
      const auto n = static_cast<std::uint64_t>(mesh.size<dp>()), lines = static_cast<std::uint64_t>(mesh.size<tp>());
      for (const auto& sizes : models) {
        for (const int m : {1, 3}) {
          const auto k = static_cast<std::uint64_t>(m);
          const Job job{sizes, m, {}};
          const std::uint64_t all = (n - 1) * lines * std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
          const std::uint64_t last = (n - 1) * lines * sizes.back();
          const auto full = static_cast<std::uint64_t>(
              n == 1 ? 0 : std::count_if(sizes.begin(), sizes.end(), [](std::size_t size) { return size != 0; }));
          const std::uint64_t full_last = n == 1 || sizes.back() == 0 ? 0 : 1;
          require_sent<DataParallel<dp>, OverDp, dp>(mesh, job, 2 * all, full, "data parallel");
          require_sent<Zero1<dp>, OverDp, dp>(mesh, job, 2 * all, 2 * full, "stage 1");
          require_sent<Zero2<dp>, OverDp, dp>(mesh, job, (k + 1) * all, (k + 1) * full, "stage 2");
          require_sent<Zero3<dp>, OverDp, dp>(mesh, job, 3 * k * all, 3 * k * full, "stage 3");
          require_sent<Zero3<dp>, OverDp, dp>(mesh, {sizes, m, {1, true}}, k * (3 * all - last),
                                              k * (3 * full - full_last), "stage 3, the last unit kept");
          require_sent<Zero3<dp>, OverDp, dp>(mesh, {sizes, m, {0, false}}, 3 * k * all, 3 * k * full, "no prefetch");
          require_sent<Zero3<dp>, OverDp, dp>(mesh, {sizes, m, {9, false}}, 3 * k * all, 3 * k * full, "all ahead");
          require_sent<Zero3Unresharded<dp>, OverDp, dp>(mesh, job, 2 * k * all, 2 * k * full, "stage 3 unresharded");
        }
      }
    });
  }
}

TEST_CASE("zero, bytes sent over two axes: hybrid and secondary parts") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 2}, Ranks{3, 2}, Ranks{1, 3}, Ranks{2, 1}}) {
    on_grid(ranks, [&](const Grid& mesh) {
      const auto outer = static_cast<std::uint64_t>(mesh.size<dp>()),
                 inner = static_cast<std::uint64_t>(mesh.size<tp>());
      for (const auto& sizes : models) {
        const std::uint64_t all = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
        const auto full = static_cast<std::uint64_t>(
            std::count_if(sizes.begin(), sizes.end(), [](std::size_t size) { return size != 0; }));
        for (const std::uint64_t k : {1U, 2U}) {
          const Job job{sizes, static_cast<int>(k), {}};
          const auto if_many = [&](std::uint64_t group, std::uint64_t calls) { return group == 1 ? 0 : calls * full; };
          require_sent<HybridZero3<dp, tp>, OverBoth, tp>(mesh, job, 3 * k * (inner - 1) * all * outer,
                                                          if_many(inner, 3 * k), "hybrid, inside");
          // One all_reduce in the last micro-batch, of a part.
          require_sent<HybridZero3<dp, tp>, OverBoth, dp>(mesh, job, 2 * (outer - 1) * all, if_many(outer, 1),
                                                          "hybrid, across");
          if (inner > 1 && outer > 1) {  // else the joint group is one of the axes
            require_sent<SecondaryZero3<dp, tp>, OverBoth, dp, tp>(mesh, job, 2 * k * (outer * inner - 1) * all,
                                                                   2 * k * full, "secondary parts, all");
            require_sent<SecondaryZero3<dp, tp>, OverBoth, tp>(mesh, job, k * (inner - 1) * all * outer, k * full,
                                                               "secondary parts, inside");
            require_sent<SecondaryZero3<dp, tp>, OverBoth, dp>(mesh, job, 0, 0, "secondary parts, across");
          }
        }
      }
    });
  }
}

namespace {

struct Held {
  std::uint64_t parameters, gradients, optimizer;
};

/// What a stage holds between micro-batches, as bytes for 12 units of 240 parameters; and the peaks of a training. They
/// are bounds where what is on its way may arrive early; exact: that of parameters is reached.
template <class Stage, class Gradient, bool exact = false>
void require_held(Ranks ranks, const Held& expected, const Held& peaks, ZeroOptions how, const std::string& what) {
  on_grid(ranks, [&](const Grid& mesh) {
    const auto usage = [&](Category c) { return mesh.memory().usage(c); };
    const Job job{std::vector<std::size_t>(12, 240), 2, how};
    const auto text = [&](const char* name, std::uint64_t found, std::uint64_t right) {
      return what + ", " + name + ": " + std::to_string(found) + " bytes, not " + std::to_string(right);
    };
    run<Stage, Gradient>(
        mesh, job, 3,
        [&](auto& zero) {
          zero.release();
          const auto now = [&](const char* name, Category c, std::uint64_t right) {
            require(usage(c).current == right, text(name, usage(c).current, right));
          };
          now("parameters", Category::parameters, expected.parameters);
          now("gradients", Category::gradients, expected.gradients);
          now("optimizer", Category::optimizer, expected.optimizer);
        },
        [&](auto&) {
          require(usage(Category::parameters).peak == expected.parameters, what + ": more when it is made");
        });
    const auto most = [&](const char* name, Category c, std::uint64_t right) {
      require(usage(c).peak <= right, text(name, usage(c).peak, right));
    };
    most("peak of parameters", Category::parameters, peaks.parameters);
    require(!exact || usage(Category::parameters).peak == peaks.parameters, what + ": not as many whole units as said");
    most("peak of gradients", Category::gradients, peaks.gradients);
    most("peak of optimizer", Category::optimizer, peaks.optimizer);
  });
}

}  // namespace

TEST_CASE("zero, memory: 16, 4 + 12/n, 2 + 14/n and 16/n bytes per parameter, and two whole units at most") {
  constexpr std::uint64_t all = 12 * 240, unit = 240;
  for (const std::uint64_t n : {1U, 2U, 3U, 4U, 5U}) {
    CAPTURE(n);
    const Ranks ranks{static_cast<int>(n), 1};
    // Parts on their way: of new parameters to the others, of gradients from them.
    const std::uint64_t update = n == 1 ? 0 : 2 * all / n;
    require_held<DataParallel<dp>, OverDp>(ranks, {2 * all, 2 * all, 12 * all}, {2 * all, 2 * all, 12 * all}, {},
                                           "data parallel");
    require_held<Zero1<dp>, OverDp>(ranks, {2 * all, 2 * all, 12 * all / n},
                                    {2 * all + update, 2 * all + update, 12 * all / n}, {}, "stage 1");
    // Gradients: one unit is filled while another one is on its way.
    const std::uint64_t reducing = 2 * 2 * unit + 2 * unit / n;
    require_held<Zero2<dp>, OverDp>(ranks, {2 * all, 2 * all / n, 12 * all / n},
                                    {2 * all + update, 2 * all / n + reducing, 12 * all / n}, {}, "stage 2");
    for (const std::size_t prefetch : {0U, 1U, 3U}) {
      const std::uint64_t whole = n == 1 ? 0 : (1 + prefetch) * 2 * unit;
      for (const bool keep : {false, true}) {
        require_held<Zero3<dp>, OverDp, true>(ranks, {2 * all / n, 2 * all / n, 12 * all / n},
                                              {2 * all / n + whole, 2 * all / n + reducing, 12 * all / n},
                                              {prefetch, keep}, "stage 3, prefetch " + std::to_string(prefetch));
      }
    }
    require_held<Zero3Unresharded<dp>, OverDp>(
        ranks, {2 * all / n, 2 * all / n, 12 * all / n},
        {2 * all / n + (n == 1 ? 0 : 2 * all), 2 * all / n + reducing, 12 * all / n}, {}, "stage 3 unresharded");
  }
}

TEST_CASE("zero, memory over two axes: 16/n in a node of n, and 16/N with 2/n between forward and backward") {
  constexpr std::uint64_t all = 12 * 240, unit = 240;
  for (const Ranks ranks : {Ranks{2, 2}, Ranks{2, 3}}) {
    const auto n = static_cast<std::uint64_t>(ranks.tensor), total = static_cast<std::uint64_t>(ranks.data) * n;
    require_held<HybridZero3<dp, tp>, OverBoth, true>(
        ranks, {2 * all / n, 2 * all / n, 12 * all / n},
        {2 * all / n + 2 * 2 * unit, 2 * all / n + 2 * 2 * unit + 2 * unit / n, 12 * all / n}, {}, "hybrid");
    require_held<SecondaryZero3<dp, tp>, OverBoth>(
        ranks, {2 * all / total, 2 * all / total, 12 * all / total},
        {2 * all / total + 2 * all / n + 2 * 2 * unit, 2 * all / total + 2 * 2 * unit + 2 * unit / total,
         12 * all / total},
        {}, "secondary parts");
  }
}

namespace {

/// What a rank has sent, and held between micro-batches and at the most, in a training of two steps.
struct Costs {
  Traffic traffic;
  std::vector<std::size_t> bytes;
  bool operator==(const Costs& other) const {
    return traffic.calls == other.traffic.calls && traffic.volume == other.traffic.volume && bytes == other.bytes;
  }
};

template <class Stage>
Costs costs_of(const Grid& mesh, const Job& job) {
  Costs costs;
  const Traffic before = mesh.traffic<dp>();
  const auto note = [&](std::size_t n) { costs.bytes.push_back(n); };
  run<Stage, OverDp>(
      mesh, job, 2,
      [&](auto& zero) {
        zero.release();
        for (const Category c : {Category::parameters, Category::gradients, Category::optimizer}) {
          note(mesh.memory().usage(c).current);
        }
      },
      [&](auto&) { note(mesh.memory().total().current); });
  note(mesh.memory().usage(Category::optimizer).peak);
  // Units are gathered one by one; what is on its way after an update may arrive early.
  if (std::is_same_v<Stage, Zero3<dp>>) note(mesh.memory().usage(Category::parameters).peak);
  note(mesh.memory().total().current);
  costs.traffic = mesh.traffic<dp>() - before;
  return costs;
}

template <class Stage>
void require_the_same_dry() {
  for (const int n : {1, 2, 3, 5}) {
    for (const auto& sizes : models) {
      const Job job{sizes, 2, {}};
      std::vector<Costs> real(static_cast<std::size_t>(n));
      on_grid({n, 1}, [&](const Grid& mesh) {
        real[static_cast<std::size_t>(mesh.coordinate<dp>())] = costs_of<Stage>(mesh, job);
      });
      launch_dry(n, [&](Communicator& world) {
        const Grid mesh(world, {n, 1});
        const Costs costs = costs_of<Stage>(mesh, job);
        require(costs == real[static_cast<std::size_t>(world.rank())], "other costs without data");
        require(costs.traffic.moved == 0, "data has moved");
      });
    }
  }
}

}  // namespace

TEST_CASE("zero, dry: a run without data sends and holds what one with data does, to the byte") {
  require_the_same_dry<DataParallel<dp>>();
  require_the_same_dry<Zero1<dp>>();
  require_the_same_dry<Zero2<dp>>();
  require_the_same_dry<Zero3<dp>>();
}

TEST_CASE("zero, dry: 7.5e9 parameters on 64 ranks take 120, 31.4, 16.6 and 1.9 GB, of which nothing is touched") {
  const auto held = [&]<class Stage>(detail::type<Stage>) {
    double bytes_held = 0;
    launch_dry(64, [&](Communicator& world) {
      const Grid mesh(world, {64, 1});
      run<Stage, OverDp>(mesh, {std::vector<std::size_t>(6, 1'250'000'000), 2, {}}, 1, [&](auto& zero) {
        zero.release();
        double all = 0;
        for (const Category c : {Category::parameters, Category::gradients, Category::optimizer}) {
          all += static_cast<double>(mesh.memory().usage(c).current);
        }
        if (mesh.is_first()) bytes_held = all;
      });
    });
    return bytes_held / 7.5e9;
  };
  CHECK(held(detail::type<DataParallel<dp>>{}) == 16);
  CHECK(held(detail::type<Zero1<dp>>{}) == 4 + 12.0 / 64);
  CHECK(std::abs(held(detail::type<Zero2<dp>>{}) - (2 + 14.0 / 64)) < 1e-7);  // parts of 19531250 or one more
  CHECK(std::abs(held(detail::type<Zero3<dp>>{}) - 16.0 / 64) < 1e-7);
}
