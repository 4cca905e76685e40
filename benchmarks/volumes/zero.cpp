// SPDX-License-Identifier: Apache-2.0
// Data parallelism: what gradient buckets and the stages of ZeRO send and hold.
#include "meshwise/parallel/zero.hpp"

#include <cstdio>

#include "measure.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/fabric/dry/launch.hpp"
#include "meshwise/train/mixed_precision.hpp"

namespace volumes {

namespace {

using namespace meshwise;

// One grid for all: {4, 1} is data parallelism over one axis, {2, 2} over nodes of two.
using Grid = Mesh<dp, tp>;
using Element = bf16;
constexpr std::uint64_t bytes = sizeof(Element);
using Parameter = Tensor<Element, Dims<flat>, Layout<Grid>>;
using OverDp = Tensor<Element, Dims<flat>, Layout<Grid, Partial<dp>>>;
using OverBoth = Tensor<Element, Dims<flat>, Layout<Grid, Partial<dp>, Partial<tp>>>;
constexpr std::array<int, 2> line{ranks, 1}, nodes{2, 2};

/// A trainer of a model whose gradients are made up, so that all traffic and memory is that of the stage.
template <class Stage, class Gradient>
class Trainer {
  using Z = Zero<Stage, Element, Grid>;

 public:
  Trainer(const Grid& mesh, std::vector<std::size_t> units, const ZeroOptions& options = {})
      : mesh_(mesh), sizes_(std::move(units)), zero_(mesh, options) {
    for (const std::size_t n : sizes_) {
      zero_.begin_unit();
      tickets_.push_back(zero_.add(Parameter(mesh, {n})));
    }
    for (std::size_t u = 0; u < zero_.units(); ++u) states_.emplace_back(zero_.own(u));
  }

  void micro_batch(bool last) {
    const auto quiet = zero_.no_sync(!last);
    for (std::size_t u = 0; u < zero_.units(); ++u) zero_.forward(u, [](const auto&) {});
    for (std::size_t u = zero_.units(); u-- > 0;) {
      zero_.backward(u, [&](const auto&, auto& g) { g.add(tickets_[u], Gradient(mesh_, {sizes_[u]})); });
    }
  }
  void step(int micro_batches) {
    for (int m = 0; m < micro_batches; ++m) micro_batch(m + 1 == micro_batches);
    zero_.finish();
    ++steps_;
    zero_.update([&](std::size_t u, auto& w, const auto& g) { adamw_step(w, g, states_[u], steps_, {}); });
    for (std::size_t u = 0; u < zero_.units(); ++u) (void)zero_.own(u);  // what the update has started
  }
  void rest() { zero_.release(); }

 private:
  const Grid& mesh_;
  std::vector<std::size_t> sizes_;
  Z zero_;
  std::vector<typename Z::template Ticket<Parameter>> tickets_;
  std::vector<MasterState<typename Z::Own>> states_;
  std::uint64_t steps_ = 0;
};

/// Calls fill(model, pair) for every model.
template <class Fill>
Row row(std::string name, std::string formula, const Fill& fill) {
  Row result{std::move(name), std::move(formula), {}, {ranks, ranks}};
  for (std::size_t i = 0; i < model_count; ++i) fill(models[i], result.of[i]);
  return result;
}

/// Bytes of one step of a stage beside `formula(parameters, those of the last unit)` elements in all.
template <class Stage, class Gradient = OverDp, class Formula>
Row sends(std::string name, std::string text, std::array<int, 2> sizes, int micro_batches, const ZeroOptions& options,
          const Formula& formula) {
  return row(std::move(name), std::move(text), [&](const Model& model, Pair& pair) {
    pair.formula = bytes * formula(model.parameters(), std::uint64_t{model.units().back()});
    on_grid<Grid>(sizes, [&](const Grid& mesh) {
      Trainer<Stage, Gradient> trainer(mesh, model.units(), options);
      const Ledger ledger = ledger_of(mesh, [&] { trainer.step(micro_batches); });
      if (mesh.is_first()) pair.measured = sent(ledger);
    });
  });
}

Row buckets() {
  return row("data parallel, gradient buckets", "2(n-1)/n θ β", [](const Model& model, Pair& pair) {
    pair.formula = bytes * 2 * (ranks - 1) * model.parameters();
    on_grid<Grid>(line, [&](const Grid& mesh) {
      GradientBuckets<dp, Element, Grid> sums(mesh, std::size_t{1} << 16);
      std::vector<GradientBuckets<dp, Element, Grid>::Ticket<Parameter>> tickets;
      for (const std::size_t n : model.units()) tickets.push_back(sums.expect<Parameter>({n}));
      const Ledger ledger = ledger_of(mesh, [&] {
        for (std::size_t u = tickets.size(); u-- > 0;) sums.add(tickets[u], OverDp(mesh, tickets[u].extents));
        sums.finish();
      });
      if (mesh.is_first()) pair.measured = sent(ledger);
    });
  });
}

/// Bytes of parameters, gradients and the optimizer.
std::uint64_t states(const Ledger& ledger) {
  std::uint64_t all = 0;
  for (const Category c : {Category::parameters, Category::gradients, Category::optimizer}) {
    all += ledger.memory[static_cast<std::size_t>(c)].current;
  }
  return all;
}

/// Bytes that all ranks hold between micro-batches for parameters, gradients and the optimizer, per parameter and rank.
template <class Stage, class Gradient = OverDp>
Row holds(std::string name, std::string text, std::array<int, 2> sizes, std::uint64_t per_parameter) {
  Row result = row(std::move(name), std::move(text), [&](const Model& model, Pair& pair) {
    pair.formula = per_parameter * model.parameters();
    on_grid<Grid>(sizes, [&](const Grid& mesh) {
      Trainer<Stage, Gradient> trainer(mesh, model.units());
      trainer.step(1);
      trainer.micro_batch(false);
      trainer.rest();
      const Ledger ledger = collect_ledger(mesh);
      if (mesh.is_first()) pair.measured = states(ledger);
    });
  });
  for (std::size_t i = 0; i < model_count; ++i) {
    result.divisor[i] = static_cast<double>(ranks * models[i].parameters());
  }
  return result;
}

/// The most bytes of a category above those at rest, of the rank that has the most, beside `formula(units)`.
template <class Stage, class Formula>
Row peaks(std::string name, std::string text, Category category, const ZeroOptions& options, const Formula& formula) {
  Row result = row(std::move(name), std::move(text), [&](const Model& model, Pair& pair) {
    pair.formula = bytes * formula(model.units());
    on_grid<Grid>(line, [&](const Grid& mesh) {
      Trainer<Stage, OverDp> trainer(mesh, model.units(), options);
      trainer.micro_batch(false);
      trainer.rest();
      const std::uint64_t resting = mesh.memory().usage(category).current;
      std::array<std::uint64_t, 1> more{mesh.memory().usage(category).peak - resting};
      all_reduce<Max>(mesh.world(), more);
      if (mesh.is_first()) pair.measured = more[0];
    });
  });
  result.divisor[0] = result.divisor[1] = 1;
  return result;
}

/// One line of the dry run: the states between micro-batches, beside (whole n + split) parameters in all.
template <class Stage>
std::string dry_line(const char* name, const char* formula, const DryModel& model, std::uint64_t whole,
                     std::uint64_t split, int& wrong) {
  constexpr std::size_t many = 60;
  std::vector<std::size_t> units(many, model.parameters / many);
  units.back() += model.parameters % many;
  Pair pair{0, (whole * static_cast<std::uint64_t>(model.ranks) + split) * model.parameters};
  launch_dry(model.ranks, [&](Communicator& world) {
    const Grid mesh(world, {model.ranks, 1});
    Trainer<Stage, OverDp> trainer(mesh, units);
    trainer.step(1);
    trainer.micro_batch(false);
    trainer.rest();
    const Ledger all = collect_ledger(mesh);
    if (mesh.is_first()) pair.measured = states(all);
  });
  if (pair.measured != pair.formula) ++wrong;
  char text[200];
  std::snprintf(text, sizeof text, "| %s | %s | %.1f | %s |\n", name, formula,
                static_cast<double>(pair.measured) / model.ranks / 1e9, quotient(pair).c_str());
  return text;
}

/// The most elements of some units that follow each other.
std::uint64_t largest_run(const std::vector<std::size_t>& units, std::size_t length) {
  std::uint64_t most = 0;
  for (std::size_t i = 0; i + length <= units.size(); ++i) {
    std::uint64_t all = 0;
    for (std::size_t k = 0; k < length; ++k) all += units[i + k];
    most = all > most ? all : most;
  }
  return most;
}

}  // namespace

Table data_parallel() {
  constexpr std::uint64_t n = ranks, r = 2, s = 2;  // r nodes of s ranks
  const auto times = [](std::uint64_t factor) {
    return [factor](std::uint64_t all, std::uint64_t) { return factor * all; };
  };
  Table table{"Data parallelism", "bytes per step and rank", {}};
  table.rows.push_back(buckets());
  table.rows.push_back(
      sends<DataParallel<dp>>("data parallel, units", "2(n-1)/n θ β", line, 1, {}, times(2 * (n - 1))));
  table.rows.push_back(sends<DataParallel<dp>>("the same, m = 4", "2(n-1)/n θ β", line, 4, {}, times(2 * (n - 1))));
  table.rows.push_back(sends<Zero1<dp>>("ZeRO-1", "2(n-1)/n θ β", line, 1, {}, times(2 * (n - 1))));
  table.rows.push_back(sends<Zero1<dp>>("ZeRO-1, m = 4", "2(n-1)/n θ β", line, 4, {}, times(2 * (n - 1))));
  table.rows.push_back(sends<Zero2<dp>>("ZeRO-2", "2(n-1)/n θ β", line, 1, {}, times(2 * (n - 1))));
  table.rows.push_back(
      sends<Zero2<dp>>("ZeRO-2, m = 4", "(n-1)/n (m β_g + β_p) θ", line, 4, {}, times((4 + 1) * (n - 1))));
  table.rows.push_back(sends<Zero3<dp>>("ZeRO-3", "3(n-1)/n θ β", line, 1, {}, times(3 * (n - 1))));
  table.rows.push_back(
      sends<Zero3<dp>>("ZeRO-3, the last unit kept", "(n-1)/n (3 θ - last) β", line, 1, {1, true},
                       [](std::uint64_t all, std::uint64_t last) { return (n - 1) * (3 * all - last); }));
  table.rows.push_back(sends<Zero3<dp>>("ZeRO-3, m = 4", "3m(n-1)/n θ β", line, 4, {}, times(3 * 4 * (n - 1))));
  table.rows.push_back(
      sends<Zero3Unresharded<dp>>("ZeRO-3 not resharded", "2(n-1)/n θ β", line, 1, {}, times(2 * (n - 1))));
  table.rows.push_back(sends<HybridZero3<dp, tp>, OverBoth>("hybrid, r nodes of s = 2 ranks",
                                                            "3(s-1)/s θ β + 2(r-1)/r θ/s β", nodes, 1, {},
                                                            times(3 * (s - 1) * r + 2 * (r - 1))));
  table.rows.push_back(sends<HybridZero3<dp, tp>, OverBoth>("hybrid, m = 4", "3m(s-1)/s θ β + 2(r-1)/r θ/s β", nodes, 4,
                                                            {}, times(3 * 4 * (s - 1) * r + 2 * (r - 1))));
  table.rows.push_back(sends<SecondaryZero3<dp, tp>, OverBoth>("secondary shards", "2(n-1)/n θ β + (s-1)/s θ β", nodes,
                                                               1, {}, times(2 * (n - 1) + (s - 1) * r)));
  return table;
}

Table memory() {
  constexpr std::uint64_t n = ranks, r = 2;
  Table table{"Memory, AdamW in mixed precision", "bytes per parameter and rank; whole units in bytes", {}};
  table.rows.push_back(holds<DataParallel<dp>>("data parallel", "16", line, 16 * n));
  table.rows.push_back(holds<Zero1<dp>>("ZeRO-1", "4 + 12/n", line, 4 * n + 12));
  table.rows.push_back(holds<Zero2<dp>>("ZeRO-2", "2 + 14/n", line, 2 * n + 14));
  table.rows.push_back(holds<Zero3<dp>>("ZeRO-3", "16/n", line, 16));
  table.rows.push_back(holds<HybridZero3<dp, tp>, OverBoth>("hybrid, nodes of s = 2 ranks", "16/s", nodes, 16 * r));
  table.rows.push_back(holds<SecondaryZero3<dp, tp>, OverBoth>("secondary shards", "16/n", nodes, 16));
  table.rows.push_back(peaks<Zero3<dp>>("ZeRO-3, gathered at once", "2 units", Category::parameters, {},
                                        [](const auto& units) { return largest_run(units, 2); }));
  table.rows.push_back(peaks<Zero3<dp>>("the same, no prefetch", "1 unit", Category::parameters, {0, false},
                                        [](const auto& units) { return largest_run(units, 1); }));
  return table;
}

std::string dry_run(const DryModel& model, int& wrong) {
  return "A dry run of " + std::to_string(model.parameters) + " parameters in 60 units on " +
         std::to_string(model.ranks) + " ranks, nothing of it in memory: GB per rank\n\n" +
         "| | formula | measured | quotient |\n|---|---|---|---|\n" +
         dry_line<DataParallel<dp>>("data parallel", "16 θ", model, 16, 0, wrong) +
         dry_line<Zero1<dp>>("ZeRO-1", "(4 + 12/n) θ", model, 4, 12, wrong) +
         dry_line<Zero2<dp>>("ZeRO-2", "(2 + 14/n) θ", model, 2, 14, wrong) +
         dry_line<Zero3<dp>>("ZeRO-3", "16/n θ", model, 0, 16, wrong);
}

}  // namespace volumes
