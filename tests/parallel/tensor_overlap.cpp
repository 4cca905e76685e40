// SPDX-License-Identifier: Apache-2.0
// The sums that input gradients owe are under way while weight gradients are computed: read off the timeline, over a
// network that completes everything late.
#include <doctest/doctest.h>

#include <cstring>

#include "block_support.hpp"
#include "meshwise/fabric/delaying/delayed.hpp"
#include "meshwise/trace/overlap.hpp"
#include "meshwise/trace/record.hpp"

namespace {

using namespace test;

thread_local Timeline* timeline_of_rank = nullptr;

/// The library's matrix product, in the timeline.
template <class T>
void recorded_product(const GemmCall<T>& call) {
  const Timeline::Span span(*timeline_of_rank, "product");
  plain_gemm()(call);
}
const Gemm recorded_gemm{&recorded_product<float>, &recorded_product<double>, "recorded"};

/// Runs program(mesh, timeline) on dp x tp ranks over a network that is 2 ms late, or never late.
template <class F>
void on_recorded_grid(Ranks ranks, double alpha, const F& program) {
  LaunchOptions options;
  options.deadline = 120;
  launch(ranks.data * ranks.tensor, options, [&](Communicator& plain) {
    Timeline timeline;
    timeline_of_rank = &timeline;
    Delays delays;
    delays.alpha = alpha;
    Communicator world = record(delayed(std::move(plain), delays), timeline);
    const Grid mesh(world, {ranks.data, ranks.tensor}, &recorded_gemm);
    program(mesh, timeline);
  });
}

struct Flight {
  std::string verb;
  int products = 0;  // that began and ended meanwhile
};

/// What was started along tp, in order.
std::vector<Flight> flights(const Timeline& timeline) {
  std::vector<Flight> result;
  for (const Timeline::Event& flight : timeline.events()) {
    if (flight.kind != Timeline::Kind::flight) continue;
    result.push_back({flight.name, 0});
    for (const Timeline::Event& span : timeline.events()) {
      if (span.kind != Timeline::Kind::span) continue;
      result.back().products += span.begin >= flight.begin && span.end <= flight.end ? 1 : 0;
    }
  }
  return result;
}
std::vector<std::string> calls(const Timeline& timeline) {
  std::vector<std::string> result;
  for (const Timeline::Event& event : timeline.events()) {
    if (event.kind == Timeline::Kind::call) result.push_back(event.name);
  }
  return result;
}

template <class T>
bool same_bits(const T& a, const T& b) {
  return a.local().size() == b.local().size() &&
         (a.local().empty() || std::memcmp(a.local().data(), b.local().data(), a.local().size_bytes()) == 0);
}

using Full = Tensor<float, Dims<batch, seq, hidden>, Layout<Grid, Shard<batch, dp>>>;
using Out = Tensor<float, Dims<batch, seq, ffn>, Layout<Grid, Shard<batch, dp>, Shard<ffn, tp>>>;
using Weight = Tensor<float, Dims<hidden, ffn>, Layout<Grid, Shard<ffn, tp>>>;

template <class To>
void check_linear(const Grid& mesh, Timeline& timeline, const BlockSizes& z, const char* verb) {
  const auto x = drawn<Full>(mesh, z, 1, 1);
  const auto dy = drawn<Out>(mesh, z, 2, 1);
  const auto w = drawn<Weight>(mesh, z, 3, 1);
  const auto serial = column_linear_backward(dy, x, w);
  const auto dx = convert<To>(serial.x);
  timeline.clear();
  const auto overlapped = column_linear_backward<To>(dy, x, w);
  static_assert(std::is_same_v<decltype(overlapped.x), std::remove_const_t<decltype(dx)>>);
  require(same_bits(overlapped.x, dx), "dx");
  require(same_bits(overlapped.weight, serial.weight), "dw");
  require(same_bits(overlapped.bias, serial.bias), "db");
  const auto started = flights(timeline);
  if (mesh.size<tp>() == 1) return require(started.empty(), "a rank alone sends nothing");
  std::string found;
  for (const Flight& f : started) found += f.verb + ", products " + std::to_string(f.products) + "; ";
  require(started.size() == 1 && started[0].verb == verb && started[0].products >= 1, "in flight for dw: " + found);
  require(calls(timeline).empty(), "and nothing else is sent");
}

template <Gathered G>
struct Form : BlockForm {
  static constexpr Gathered gathered = G;
};
template <Gathered G>
using Block = TransformerBlock<float, Grid, Form<G>>;

}  // namespace

TEST_CASE("column linear: the sum of the input gradient is under way during the weight gradient, with the same bits") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{1, 2}, Ranks{2, 3}}) {
    CAPTURE(ranks.data);
    CAPTURE(ranks.tensor);
    CHECK_NOTHROW(on_recorded_grid(ranks, 2e-3, [](const Grid& mesh, Timeline& timeline) {
      const BlockSizes z{4, 9, 32, 3, 2, 50, 1};  // no product too small for the back end
      check_linear<Shard<seq, tp>>(mesh, timeline, z, "reduce_scatter");
      check_linear<Replicate<tp>>(mesh, timeline, z, "all_reduce");
    }));
  }
}

TEST_CASE("column linear: what was hidden is at least what the weight gradient took") {
  on_recorded_grid({1, 2}, 2e-3, [](const Grid& mesh, Timeline& timeline) {
    const BlockSizes z{2, 16, 32, 3, 2, 64, 1};
    const auto x = drawn<Full>(mesh, z, 1, 1);
    const auto dy = drawn<Out>(mesh, z, 2, 1);
    const auto w = drawn<Weight>(mesh, z, 3, 1);
    const auto serial = [&] { return convert<Shard<seq, tp>>(column_linear_backward(dy, x, w).x); };
    static_cast<void>(serial());
    timeline.clear();
    static_cast<void>(serial());
    require(overlap(timeline).hidden == 0, "the serial order hides nothing");
    timeline.clear();
    static_cast<void>(column_linear_backward<Shard<seq, tp>>(dy, x, w));
    const Timeline::Event* last = nullptr;
    for (const Timeline::Event& event : timeline.events()) {
      if (event.kind == Timeline::Kind::span) last = &event;
    }
    require(last != nullptr, "products");
    require(overlap(timeline).hidden * 1e9 >= 0.999 * static_cast<double>(last->end - last->begin), "hidden");
  });
}

TEST_CASE("transformer block: both sums of input gradients, and inputs gathered again, are under way during products") {
  for (const double alpha : {0.0, 2e-3}) {
    CHECK_NOTHROW(on_recorded_grid({1, 2}, alpha, [](const Grid& mesh, Timeline& timeline) {
      const BlockSizes z{2, 9, 32, 4, 8, 64, 1};
      const auto check = [&]<Gathered G>(detail::type<Form<G>>) {
        using B = Block<G>;
        const auto w = block_parameters<typename B::Parameters>(mesh, z);
        const auto x = block_input<B>(mesh, z), dy = block_upstream<B>(mesh, z);
        const auto saved = B::forward(w, x, {}).second;
        timeline.clear();
        static_cast<void>(B::backward(w, saved, dy, {}));
        std::vector<Flight> sums, gathers;
        for (const Flight& flight : flights(timeline)) {
          (flight.verb == "reduce_scatter" ? sums : gathers).push_back(flight);
        }
        require(sums.size() == 2, "two sums are started");
        require(sums[0].products >= 1, "one during the weight gradient of the MLP");
        require(sums[1].products >= 3, "one during those of queries, keys and values");
        require(gathers.size() == (G == Gathered::again ? 2 : 0), "inputs that are gathered again");
        for (const Flight& flight : gathers) require(flight.products >= 2, "during the backward of the layer after");
        const std::vector<std::string> blocking{"all_gather", "all_gather"};
        require(calls(timeline) == blocking, "what is waited for at once is needed at once");
      };
      check(detail::type<Form<Gathered::kept>>{});
      check(detail::type<Form<Gathered::again>>{});
    }));
  }
}
