// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "meshwise/tensor/detail/einsum_table.hpp"

namespace meshwise::detail {

/// Turns labels into a plan.
class EinsumPlanner {
  using Table = EinsumTable;

 public:
  /// Errors: Error with invalid_argument for labels that do not fit together.
  EinsumPlanner(const Labels& a, const Labels& b, const Labels& c, const EinsumCosts& costs = {})
      : costs_(costs), table_(a, b, c) {}

  /// The number of elements of C, and of products that each one sums.
  std::ptrdiff_t result_size() const { return table_.volume(Table::in_c, Table::in_c); }
  std::ptrdiff_t sum_size() const { return table_.volume(Table::in_c, 0); }

  /// The cheapest plan that packs at least the operands in `forced`; `products` allows matrix products.
  EinsumPlan plan(unsigned forced, bool products) const {
    EinsumPlan best = loops_only(forced);
    if (!products || result_size() == 0 || sum_size() == 0) return best;
    // The first candidate packs no more than it must; another one is worth a look only if it can win.
    const double bound = call_cost(1, 1, 1) + costs_.multiply * double(result_size()) * double(sum_size());
    for (unsigned more = 0; more < 8; ++more) {
      if ((more & forced) != 0) continue;
      const double copies = copy_cost(more);
      if (more != 0 && best.cost <= bound + copies) continue;
      improve(best, more | forced, copies);
    }
    return best;
  }

 private:
  using Group = Table::Group;
  static constexpr unsigned in_all = Table::in_a | Table::in_b | Table::in_c;
  static constexpr unsigned in_rows = Table::in_a | Table::in_c;
  static constexpr unsigned in_columns = Table::in_b | Table::in_c;
  static constexpr unsigned in_sums = Table::in_a | Table::in_b;

  double copy_cost(unsigned packed) const {
    double elements = 0;
    if ((packed & pack_a) != 0) elements += double(table_.volume(Table::in_a, Table::in_a));
    if ((packed & pack_b) != 0) elements += double(table_.volume(Table::in_b, Table::in_b));
    if ((packed & pack_c) != 0) elements += double(table_.volume(Table::in_c, Table::in_c));
    return costs_.pack * elements;
  }

  double call_cost(std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k) const {
    const double rows = double(m), columns = double(n), depth = double(k);
    return costs_.start + costs_.multiply * rows * columns * depth +
           costs_.touch * (rows * depth + depth * columns + 2 * rows * columns);
  }

  static void append(EinsumPlan& plan, const Group& group, int except) {
    for (int i = 0; i < group.count; ++i) {
      if (i != except) plan.loops[plan.count++] = group.axes[i];
    }
  }

  static void sort_loops(EinsumPlan& plan) {
    const auto size = [](std::ptrdiff_t stride) { return stride < 0 ? -stride : stride; };
    sort_few(plan.loops, plan.first_sum,
             [&](const EinsumAxis& x, const EinsumAxis& y) { return size(x.c) > size(y.c); });
    sort_few(plan.loops + plan.first_sum, plan.count - plan.first_sum,
             [&](const EinsumAxis& x, const EinsumAxis& y) { return size(x.a) > size(y.a); });
  }

  EinsumPlan loops_only(unsigned packed) const {
    EinsumPlan plan;
    const Table table = table_.packed(packed, plan);
    append(plan, table.group(in_all), -1);
    append(plan, table.group(in_rows), -1);
    append(plan, table.group(in_columns), -1);
    plan.first_sum = plan.count;
    append(plan, table.group(in_sums), -1);
    sort_loops(plan);
    plan.cost = costs_.loop * double(result_size()) * double(sum_size());
    return plan;
  }

  /// Whether `unit` x `lead` is a row-major matrix with rows along `unit`; if so, its leading dimension.
  static bool matrix(std::ptrdiff_t unit, std::ptrdiff_t unit_stride, std::ptrdiff_t lead, std::ptrdiff_t lead_stride,
                     std::ptrdiff_t& leading) {
    if (unit != 1 && unit_stride != 1) return false;
    if (lead != 1 && lead_stride < unit) return false;
    leading = lead == 1 ? unit : lead_stride;
    return leading >= 1;
  }

  static bool place(EinsumPlan& p) {
    const auto either = [](bool straight, bool turned, bool& transpose) {
      transpose = !straight;
      return straight || turned;
    };
    const EinsumAxis &m = p.m, &n = p.n, &k = p.k;
    std::ptrdiff_t a[2] = {1, 1}, b[2] = {1, 1}, c[2] = {1, 1};
    if (!either(matrix(k.extent, k.a, m.extent, m.a, a[0]), matrix(m.extent, m.a, k.extent, k.a, a[1]),
                p.transpose_a) ||
        !either(matrix(n.extent, n.b, k.extent, k.b, b[0]), matrix(k.extent, k.b, n.extent, n.b, b[1]),
                p.transpose_b) ||
        !either(matrix(n.extent, n.c, m.extent, m.c, c[0]), matrix(m.extent, m.c, n.extent, n.c, c[1]),
                p.transpose_c)) {
      return false;
    }
    p.lda = a[p.transpose_a ? 1 : 0];
    p.ldb = b[p.transpose_b ? 1 : 0];
    p.ldc = c[p.transpose_c ? 1 : 0];
    return true;
  }

  /// Replaces `best` by the cheapest plan with these operands packed, if that is cheaper.
  void improve(EinsumPlan& best, unsigned packed, double copies) const {
    EinsumPlan base;
    const Table table = table_.packed(packed, base);
    const Group batch = table.group(in_all);
    const Group rows = table.group(in_rows);
    const Group columns = table.group(in_columns);
    const Group depths = table.group(in_sums);
    const double work = double(result_size()) * double(sum_size());
    int chosen[3] = {-1, -1, -1};
    bool found = false;
    EinsumPlan trial;
    // -1 leaves a dimension of the product at one and its labels to the loops.
    for (int m = -1; m < rows.count; ++m) {
      for (int n = -1; n < columns.count; ++n) {
        for (int k = -1; k < depths.count; ++k) {
          trial.m = m < 0 ? EinsumAxis{} : rows.axes[m];
          trial.n = n < 0 ? EinsumAxis{} : columns.axes[n];
          trial.k = k < 0 ? EinsumAxis{} : depths.axes[k];
          if (!place(trial)) continue;
          const double each = double(trial.m.extent) * double(trial.n.extent) * double(trial.k.extent);
          const double cost = copies + work / each * call_cost(trial.m.extent, trial.n.extent, trial.k.extent);
          if (cost >= best.cost) continue;
          best.cost = cost;
          chosen[0] = m;
          chosen[1] = n;
          chosen[2] = k;
          found = true;
        }
      }
    }
    if (!found) return;
    base.cost = best.cost;
    base.products = true;
    base.m = chosen[0] < 0 ? EinsumAxis{} : rows.axes[chosen[0]];
    base.n = chosen[1] < 0 ? EinsumAxis{} : columns.axes[chosen[1]];
    base.k = chosen[2] < 0 ? EinsumAxis{} : depths.axes[chosen[2]];
    place(base);
    append(base, batch, -1);
    append(base, rows, chosen[0]);
    append(base, columns, chosen[1]);
    base.first_sum = base.count;
    append(base, depths, chosen[2]);
    sort_loops(base);
    best = base;
  }

  EinsumCosts costs_;
  Table table_;
};

}  // namespace meshwise::detail
