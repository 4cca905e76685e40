// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/detail/run_plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "../../support/launch.hpp"
#include "../../support/sanitized.hpp"
#include "../support.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/core/reduce.hpp"
#include "meshwise/layout/detail/plan_between.hpp"
#include "meshwise/layout/plan_volume.hpp"
#include "meshwise/trace/ledger.hpp"

// The laws of conversions for every pair of layouts of two axes and two dims, by values: what takes seconds to compile
// as types takes none here. What the types add is in reshard.cpp and convert.cpp.
namespace test {
namespace {

using Cube = Mesh<dp, cp, tp>;
constexpr int axes = 3;
using Sizes = std::array<int, axes>;

std::string text(const LayoutValue& layout) {
  std::string result;
  for (int d = 0; d < layout.dims; ++d) {
    for (int i = 0; i < layout.split[d]; ++i) {
      const int a = layout.order[d][i];
      result += "d" + std::to_string(d) + ":" + split_rule_name(layout.rule[a]) + "(" + std::to_string(a) + ") ";
    }
  }
  for (int a = 0; a < axes; ++a) {
    if (layout.is(a, PlacementKind::partial)) result += "P(" + std::to_string(a) + ") ";
  }
  return "[" + result + "]";
}

/// How one axis may be placed: not, owing a sum, or sharding a dim by a rule.
struct Place {
  PlacementKind kind = PlacementKind::replicate;
  int dim = 0;
  SplitRule rule = SplitRule::contiguous;
};
LayoutValue layout_of(const Place& first, const Place& second, bool second_is_major) {
  LayoutValue layout;
  layout.axes = axes;
  layout.dims = 2;
  for (int turn = 0; turn < 2; ++turn) {
    const bool is_first = (turn == 0) != second_is_major;
    const Place& place = is_first ? first : second;
    const int a = is_first ? 0 : 2;
    if (place.kind == PlacementKind::partial) layout.owe(a, ReductionKind::sum);
    if (place.kind == PlacementKind::shard) layout.shard(a, place.dim, place.rule);
  }
  return layout;
}

LayoutValue dual_of(const LayoutValue& layout) {
  LayoutValue dual = layout;
  for (int a = 0; a < layout.axes; ++a) {
    if (layout.is(a, PlacementKind::shard)) continue;
    dual.replicate(a);
    if (layout.is(a, PlacementKind::replicate)) dual.owe(a, ReductionKind::sum);
  }
  return dual;
}

/// All layouts that cut contiguously, every `stride`-th of the others, some with counts, and the duals of all.
std::vector<LayoutValue> layouts(std::size_t stride) {
  std::vector<Place> places{{}, {PlacementKind::partial, 0, SplitRule::contiguous}};
  for (int d = 0; d < 2; ++d) {
    for (const SplitRule rule : {SplitRule::contiguous, SplitRule::zigzag, SplitRule::striped, SplitRule::chunked}) {
      places.push_back({PlacementKind::shard, d, rule});
    }
  }
  std::vector<LayoutValue> result;
  std::size_t turn = 0;
  for (const Place& first : places) {
    for (const Place& second : places) {
      const bool both = first.kind == PlacementKind::shard && second.kind == first.kind && first.dim == second.dim;
      for (int order = 0; order < (both ? 2 : 1); ++order) {
        const bool plain = first.rule == SplitRule::contiguous && second.rule == SplitRule::contiguous;
        if (plain || turn++ % stride == 0) result.push_back(layout_of(first, second, order == 1));
      }
    }
  }
  const Place counted{PlacementKind::shard, 0, SplitRule::counted}, across{PlacementKind::shard, 1, SplitRule::counted};
  result.push_back(layout_of(counted, {}, false));
  result.push_back(layout_of({}, counted, false));
  result.push_back(layout_of(counted, {PlacementKind::shard, 0, SplitRule::zigzag}, false));
  result.push_back(layout_of({}, across, false));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const LayoutValue dual = dual_of(result[i]);
    if (std::find(result.begin(), result.end(), dual) == result.end()) result.push_back(dual);
  }
  return result;
}

/// Layouts of three axes and three dims, drawn; with their duals.
std::vector<LayoutValue> drawn_layouts(std::size_t number) {
  Draw draw(11);
  std::vector<LayoutValue> result;
  while (result.size() < 2 * number) {
    LayoutValue layout;
    layout.axes = axes;
    layout.dims = 3;
    std::array<int, axes> order{0, 1, 2};
    for (std::size_t i = 0; i < axes; ++i) std::swap(order[i], order[i + draw.below(axes - i)]);
    for (const int a : order) {
      const std::size_t kind = draw.below(7);
      if (kind == 5) layout.owe(a, ReductionKind::sum);
      if (kind >= 5) continue;
      const SplitRule other = draw.below(2) == 0 ? SplitRule::zigzag : SplitRule::striped;
      layout.shard(a, static_cast<int>(draw.below(3)), kind == 0 ? other : SplitRule::contiguous);
    }
    result.push_back(layout);
    result.push_back(dual_of(layout));
  }
  return result;
}

/// What all ranks of a test know.
struct Setting {
  Sizes grid;
  std::vector<std::size_t> extents;
  bool anew = false;  ///< what is Counted has other counts

  /// The same with other counts: those after a conversion.
  Setting afterwards() const { return {grid, extents, !anew}; }

  std::size_t dims() const { return extents.size(); }
  std::size_t size() const {
    std::size_t n = 1;
    for (const std::size_t e : extents) n *= e;
    return n;
  }

  /// The extents of a layout: with counts where it counts, uneven and with empty parts, in one of two ways.
  std::vector<Extent> of(const LayoutValue& layout) const {
    std::vector<Extent> result(extents.begin(), extents.end());
    for (int d = 0; d < layout.dims; ++d) {
      if (!detail::is_counted(layout, d)) continue;
      const auto parts = static_cast<std::size_t>(grid[static_cast<std::size_t>(layout.order[d][0])]);
      std::vector<std::size_t> counts(parts, 0);
      std::size_t left = extents[static_cast<std::size_t>(d)];
      for (std::size_t k = parts; k-- > 1;) {
        counts[k] = (k % 2 == 0) != anew ? 0 : left - left / (anew ? 2 : 3);
        left -= counts[k];
      }
      counts[0] = left;
      result[static_cast<std::size_t>(d)] = Extent::of_parts(counts);
    }
    return result;
  }
};

Reduce sum_kernel() { return reduce_kernel<double, Sum>(); }
void fill_zeros(std::byte* out, std::size_t n) { std::memset(out, 0, n * sizeof(double)); }

/// A change as the typed layer would ask for it.
struct Change {
  LayoutPlan plan;
  std::uint64_t signature;

  Change(const LayoutValue& from, const LayoutValue& to)
      : plan(detail::plan_between(from, to)), signature(detail::hash_of(detail::hash_of(0, from), to)) {}

  detail::ConversionKind kind() const {
    detail::ConversionKind kind{plan};
    kind.element = {ElementKind::f64, sizeof(double)};
    kind.reductions = {ReductionKind::sum, true, &sum_kernel, &fill_zeros};
    kind.signature = signature;
    kind.counted = detail::is_counted(plan.from) || detail::is_counted(plan.to);
    return kind;
  }
};

using Values = std::vector<double>;

struct Local {
  std::vector<Positions> held;
  std::vector<Range> ranges;
  std::vector<std::size_t> places;  // row-major in the whole, in local order

  Local(const Setting& setting, const LayoutValue& layout, const detail::Seat& seat) : places{0} {
    const std::vector<Extent> extents = setting.of(layout);
    for (int d = 0; d < layout.dims; ++d) {
      const Extent& extent = extents[static_cast<std::size_t>(d)];
      held.push_back(detail::positions_of(layout, d, extent, seat));
      ranges.push_back(detail::range_of(layout, d, layout.split[d], extent, seat));
      require(ranges.back().size == held.back().size(), "sizes of ranges and positions");
      const bool empty = held.back().empty();
      require(!detail::is_contiguous(layout, d) || empty || held.back().range() == ranges.back(), "ranges");
      std::vector<std::size_t> deeper;
      for (const std::size_t before : places) {
        for (const Progression& p : held.back().progressions()) {
          for (std::size_t i = 0; i < p.count; ++i) deeper.push_back(before * extent + p.at(i));
        }
      }
      places = std::move(deeper);
    }
  }
};

/// A tensor that denotes value(global index): where sums are owed coordinate 0 holds more and the others less.
template <class F>
Values piece_of(const Setting& setting, const LayoutValue& layout, const detail::Seat& seat, const F& value) {
  double parts = 1, part = 0;
  for (int a = 0; a < axes; ++a) {
    if (!layout.is(a, PlacementKind::partial)) continue;
    parts *= static_cast<double>(seat.parts(a));
    part = part * static_cast<double>(seat.parts(a)) + static_cast<double>(seat.part(a));
  }
  Values result;
  for (const std::size_t at : Local(setting, layout, seat).places) {
    const double away = static_cast<double>(at % 5 + 1);
    result.push_back(part == 0 ? value(at) + (parts - 1) * away : -away);
  }
  return result;
}

/// setting: before; see Setting::afterwards.
Values converted(const Cube& mesh, const Setting& setting, const Change& change, const Values& x, bool ours) {
  const LayoutPlan& steps = change.plan;
  const detail::Seat seat(mesh.view());
  const Setting later = setting.afterwards();
  const std::vector<Extent> before = setting.of(steps.from), after = later.of(steps.to);
  const detail::ConversionKind kind = change.kind();
  const detail::Conversion conversion{kind, mesh.view(), before.data(), after.data()};
  Storage storage = mesh.memory().allocate(x.size() * sizeof(double));
  if (!x.empty()) std::memcpy(storage.data(), x.data(), x.size() * sizeof(double));
  const Storage shared = ours ? Storage() : storage;
  std::size_t offset = 0;
  const Local from(setting, steps.from, seat), to(later, steps.to, seat);
  detail::PlanRunner(conversion, from.ranges.data(), {storage, offset, ours}).run();
  const auto* data = reinterpret_cast<const double*>(storage.data()) + offset;
  if (!ours && !x.empty()) {
    require(std::memcmp(shared.data(), x.data(), x.size() * sizeof(double)) == 0, "the argument has changed");
  }
  return {data, data + to.places.size()};
}

double dot(const Values& a, const Values& b) {
  require(a.size() == b.size(), "the pieces of duals are of one size");
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// What a rank shows to the others.
struct Shown {
  Values y, back, real;
  double forward = 0, backward = 0, scale = 0;
  std::uint64_t volume = 0;
};

/// Every pair on one grid, or of each layout every `stride`-th partner.
class Pairs {
 public:
  Pairs(const std::vector<LayoutValue>& all, std::vector<std::vector<std::size_t>> extents)
      : all_(all), extents_(std::move(extents)) {
    for (const LayoutValue& from : all) {
      for (const LayoutValue& to : all) changes_.emplace_back(from, to);
    }
  }

  void run(Sizes grid, std::size_t stride) {
    grid_ = grid;
    const int ranks = grid[0] * grid[1] * grid[2];
    shown_.assign(static_cast<std::size_t>(2 * ranks), Shown{});
    launch(ranks, [this, stride](Communicator& world) {
      const Cube mesh(world, grid_);
      std::size_t turn = 0;
      for (std::size_t i = 0; i < all_.size(); ++i) {
        for (std::size_t j = i % stride; j < all_.size(); j += stride) check(mesh, i, j, turn++);
      }
    });
  }

 private:
  const Change& change(std::size_t i, std::size_t j) const { return changes_[i * all_.size() + j]; }
  std::size_t dual(std::size_t i) const {
    return static_cast<std::size_t>(std::find(all_.begin(), all_.end(), dual_of(all_[i])) - all_.begin());
  }
  // Two in turn: nobody comes to one again before everybody has left it for the other one.
  Shown& shown(std::size_t turn, int rank) { return shown_[2 * static_cast<std::size_t>(rank) + turn % 2]; }

  /// What the mesh has communicated, over whatever axes.
  static std::uint64_t volume(const Cube& mesh) {
    std::uint64_t sum = 0;
    for (const Traffic& t : traffic_of(mesh)) sum += t.volume;
    for (const Traffic& t : group_traffic_of(mesh)) sum += t.volume;
    return sum;
  }

  void check(const Cube& mesh, std::size_t i, std::size_t j, std::size_t turn) {
    const LayoutValue &from = all_[i], &to = all_[j];
    require(change(i, j).plan.possible, "a plan");
    const Setting setting{grid_, extents_[(i + 3 * j) % extents_.size()]};
    const Setting later = setting.afterwards();
    const detail::Seat seat(mesh.view());
    std::string what = text(from) + " -> " + text(to) + " on";
    for (const int n : grid_) what += " " + std::to_string(n);
    for (const std::size_t e : setting.extents) what += ", " + std::to_string(e);
    const auto whole = [](std::size_t at) { return integer(at, 3); };
    const auto fraction = [](std::size_t at) { return real(at, 5); };

    Shown& mine = shown(turn, mesh.world().rank());
    const Values x = piece_of(setting, from, seat, whole);
    const std::uint64_t before = volume(mesh);
    mine.y = converted(mesh, setting, change(i, j), x, turn % 2 == 0);
    mine.volume = volume(mesh) - before;
    const bool returns = full() || (i + j) % 4 == 0;
    if (returns) mine.back = converted(mesh, later, change(j, i), mine.y, turn % 2 != 0);
    const Values g = piece_of(later, all_[dual(j)], seat, [](std::size_t at) { return real(at, 7); });
    mine.forward = dot(mine.y, g);
    mine.backward = dot(x, converted(mesh, later, change(dual(j), dual(i)), g, true));
    mine.scale = std::sqrt(dot(x, x) * dot(g, g)) + std::sqrt(dot(mine.y, mine.y) * dot(g, g));
    // Only sums of fractions can differ between replicas.
    bool owes = false;
    for (int a = 0; a < axes; ++a) owes = owes || from.is(a, PlacementKind::partial);
    const Values u = piece_of(setting, from, seat, fraction);
    if (owes) mine.real = converted(mesh, setting, change(i, j), u, false);
    barrier(mesh.world());

    // Values: what the group denotes, at the places of this rank; integers, so exactly.
    denotes(mine.y, &Shown::y, later, to, seat, turn, whole, what);
    if (returns) denotes(mine.back, &Shown::back, setting, from, seat, turn, whole, what + " and back");
    if (returns && !owes) require(mine.back == x, what + " and back, bits");
    if (owes) replicas_equal(mine.real, &Shown::real, to, seat, turn, what);
    replicas_equal(mine.y, &Shown::y, to, seat, turn, what);

    if (mesh.world().rank() != 0) return;
    double forward = 0, backward = 0, scale = 1;
    std::uint64_t received = 0;
    for (int rank = 0; rank < mesh.world().size(); ++rank) {
      const Shown& other = shown(turn, rank);
      forward += other.forward;
      backward += other.backward;
      scale += other.scale;
      received += other.volume;
    }
    require(std::fabs(forward - backward) <= 1e-12 * scale, what + ": <f(x), g> is not <x, f*(g)>");
    const std::uint64_t planned = planned_volume(setting, change(i, j).plan);
    require(received == planned,
            what + ": volume " + std::to_string(received) + ", planned " + std::to_string(planned));
  }

  /// Calls f(rank) for the ranks that differ from a seat only along axes that `layout` places so.
  template <class F>
  void each_along(PlacementKind kind, const LayoutValue& layout, const detail::Seat& seat, const F& f) const {
    for (int rank = 0; rank < grid_[0] * grid_[1] * grid_[2]; ++rank) {
      const Sizes at{rank / (grid_[1] * grid_[2]), rank / grid_[2] % grid_[1], rank % grid_[2]};
      bool with = true;
      for (int a = 0; a < axes; ++a) {
        const auto k = static_cast<std::size_t>(a);
        with = with && (at[k] == seat.coordinate[k] || layout.is(a, kind));
      }
      if (with) f(rank);
    }
  }

  template <class F>
  void denotes(const Values& own, Values Shown::*member, const Setting& setting, const LayoutValue& layout,
               const detail::Seat& seat, std::size_t turn, const F& value, const std::string& what) {
    Values sum(own.size(), 0.0);
    each_along(PlacementKind::partial, layout, seat, [&](int rank) {
      const Values& summand = shown(turn, rank).*member;
      require(summand.size() == sum.size(), what + ": sizes");
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += summand[i];
    });
    const Local local(setting, layout, seat);
    require(sum.size() == local.places.size(), what + ": size");
    for (std::size_t i = 0; i < sum.size(); ++i) require(sum[i] == value(local.places[i]), what + ": value");
  }

  void replicas_equal(const Values& own, Values Shown::*member, const LayoutValue& layout, const detail::Seat& seat,
                      std::size_t turn, const std::string& what) {
    each_along(PlacementKind::replicate, layout, seat, [&](int rank) {
      const Values& other = shown(turn, rank).*member;
      require(other.size() == own.size() &&
                  (own.empty() || std::memcmp(other.data(), own.data(), own.size() * sizeof(double)) == 0),
              what + ": replicas differ");
    });
  }

  static std::uint64_t planned_volume(const Setting& setting, const LayoutPlan& steps) {
    const std::vector<Extent> before = setting.of(steps.from), after = setting.afterwards().of(steps.to);
    std::vector<DimCounts> counts;
    for (std::size_t d = 0; d < before.size(); ++d) counts.push_back({before[d].counts(), after[d].counts()});
    return plan_volume(steps, setting.grid, setting.extents, sizeof(double), counts);
  }

  const std::vector<LayoutValue>& all_;
  Sizes grid_{};
  std::vector<std::vector<std::size_t>> extents_;
  std::vector<Change> changes_;
  std::vector<Shown> shown_;
};

constexpr std::size_t thinned = building::sanitized ? 7 : 1;

TEST_CASE("every pair of layouts of two axes: values, there and back, volume, the adjoint, equal replicas") {
  const std::vector<LayoutValue> all = layouts(full() ? 1 : 4);
  REQUIRE(all.size() >= 44);
  Pairs pairs(all, {{7, 5}, {12, 8}, {3, 2}, {13, 1}, {0, 4}, {9, 10}});
  // Every pair on 2 x 2; elsewhere others in turn, unless all are wanted.
  for (const Sizes& grid :
       {Sizes{2, 1, 2}, {1, 1, 1}, {1, 1, 2}, {2, 1, 1}, {1, 1, 3}, {2, 1, 3}, {3, 1, 2}, {2, 1, 4}, {3, 1, 4}}) {
    const int ranks = grid[0] * grid[2];
    const std::size_t some = ranks <= 3 ? 3 : ranks <= 4 ? 1 : ranks <= 6 ? 9 : 23;
    pairs.run(grid, full() ? 1 : thinned * some);
  }
}

TEST_CASE("three axes and three dims, drawn") {
  const std::vector<LayoutValue> all = drawn_layouts(full() ? 60 : 12);
  Pairs pairs(all, {{4, 5, 6}, {7, 2, 3}, {0, 3, 4}, {8, 8, 4}});
  for (const Sizes& grid : {Sizes{2, 2, 2}, {2, 3, 1}, {1, 2, 3}, {2, 3, 2}}) {
    pairs.run(grid, full() ? 1 : thinned * (grid[0] * grid[1] * grid[2] <= 6 ? 3 : 7));
  }
}

}  // namespace
}  // namespace test
