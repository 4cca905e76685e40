// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "meshwise/core/error.hpp"

namespace meshwise::detail {

/// The most labels an operand may have.
inline constexpr int max_labels = 8;

/// The labels of a strided local array: for each a name (any small integer), its extent and its stride in elements.
struct Labels {
  struct Label {
    int name = 0;
    std::ptrdiff_t extent = 0;
    std::ptrdiff_t stride = 0;
  };
  Label labels[max_labels];
  int count = 0;

  Labels& add(int name, std::ptrdiff_t extent, std::ptrdiff_t stride) {
    if (count == max_labels) {
      fail("contract", "at most " + std::to_string(max_labels) + " dims", "one more", "merge dims before contracting");
    }
    labels[count++] = {name, extent, stride};
    return *this;
  }
  const Label* begin() const { return labels; }
  const Label* end() const { return labels + count; }
};

/// A set of labels that behaves as one: an extent, and a stride in each operand (zero where it does not occur).
struct EinsumAxis {
  std::ptrdiff_t extent = 1;
  std::ptrdiff_t a = 0;
  std::ptrdiff_t b = 0;
  std::ptrdiff_t c = 0;
};

/// Operands that are copied into dense workspace, as a set of bits.
enum EinsumPack : unsigned { pack_none = 0, pack_a = 1, pack_b = 2, pack_c = 4 };

/// How a contraction runs: `loops` around a matrix product, or around a multiply-add when `products` is false.
///
/// Loops over labels of C come first; the sums follow from `first_sum` on, innermost, so that they accumulate into a C
/// that is still in cache. Strides are those of the packed copy for a packed operand.
struct EinsumPlan {
  static constexpr int capacity = 2 * max_labels;
  EinsumAxis loops[capacity];
  int count = 0;
  int first_sum = 0;
  bool products = false;
  EinsumAxis m, n, k;
  bool transpose_a = false;  ///< A is stored k x m
  bool transpose_b = false;  ///< B is stored n x k
  bool transpose_c = false;  ///< C is stored n x m
  std::ptrdiff_t lda = 1;
  std::ptrdiff_t ldb = 1;
  std::ptrdiff_t ldc = 1;
  unsigned packed = pack_none;
  Labels dense_a, dense_b, dense_c;  ///< of the packed copies, outermost label first
  double cost = 0;                   ///< estimate, in nanoseconds
};

/// What things cost on one core, in nanoseconds: rough, they only rank a call against its arithmetic and a copy.
struct EinsumCosts {
  double multiply = 0.025;  ///< a multiply-add of a matrix product
  double touch = 0.1;       ///< an element that a matrix product reads or writes
  double start = 100;       ///< a matrix product, however small
  double pack = 1;          ///< an element of a strided copy
  double loop = 1;          ///< a multiply-add of the plain loops
};

/// Sorts a few values, keeping equal ones in order; nothing is allocated.
template <class T, class Before>
void sort_few(T* values, int count, Before before) {
  for (int i = 1; i < count; ++i) {
    const T value = values[i];
    int at = i;
    for (; at > 0 && before(value, values[at - 1]); --at) values[at] = values[at - 1];
    values[at] = value;
  }
}

/// Turns labels into a plan.
class EinsumPlanner {
 public:
  /// Errors: Error with invalid_argument for labels that do not fit together.
  EinsumPlanner(const Labels& a, const Labels& b, const Labels& c, const EinsumCosts& costs = {}) : costs_(costs) {
    enter(a, &EinsumAxis::a, in_a, "the left operand");
    enter(b, &EinsumAxis::b, in_b, "the right operand");
    enter(c, &EinsumAxis::c, in_c, "the result");
    for (int i = 0; i < count_; ++i) {
      const Entry& e = entries_[i];
      if (e.where == in_a || e.where == in_b || e.where == in_c) {
        fail("contract", "each dim in at least two of left, right and result",
             "dim " + std::to_string(e.name) + " in " +
                 (e.where == in_a   ? "left"
                  : e.where == in_b ? "right"
                                    : "result") +
                 " only",
             "sum or repeat it before contracting");
      }
      if ((e.where & in_c) != 0 && e.axis.extent > 1 && e.axis.c == 0) {
        fail("contract", "a result whose elements are distinct", "dim " + std::to_string(e.name) + " of stride 0",
             "contract into a fresh tensor");
      }
    }
  }

  /// The number of elements of C, and of products that each one sums.
  std::ptrdiff_t result_size() const { return volume(in_c, in_c); }
  std::ptrdiff_t sum_size() const { return volume(in_c, 0); }

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
  enum Where : unsigned { in_a = 1, in_b = 2, in_c = 4 };
  using Stride = std::ptrdiff_t EinsumAxis::*;
  struct Entry {
    int name = 0;
    unsigned where = 0;
    EinsumAxis axis;
  };
  struct Group {
    EinsumAxis axes[EinsumPlan::capacity];
    int count = 0;
  };

  void enter(const Labels& labels, Stride stride, unsigned bit, const char* operand) {
    for (const Labels::Label& label : labels) {
      if (label.extent < 0) {
        fail("contract", "extents >= 0", "extent " + std::to_string(label.extent) + " in " + operand,
             "check the shape");
      }
      int i = 0;
      while (i < count_ && entries_[i].name != label.name) ++i;
      if (i == count_) {
        entries_[count_++] = {label.name, 0, {label.extent, 0, 0, 0}};
      }
      Entry& entry = entries_[i];
      if ((entry.where & bit) != 0) {
        fail("contract", "each dim once in " + std::string(operand), "dim " + std::to_string(label.name) + " twice",
             "rename one of them");
      }
      if (entry.axis.extent != label.extent) {
        fail("contract", "extent " + std::to_string(entry.axis.extent) + " of dim " + std::to_string(label.name),
             std::to_string(label.extent) + " in " + operand, "the operands must agree on their common dims");
      }
      entry.where |= bit;
      entry.axis.*stride = label.stride;
    }
  }

  /// The product of the extents of the labels for which (where & mask) == value.
  std::ptrdiff_t volume(unsigned mask, unsigned value) const {
    std::ptrdiff_t size = 1;
    for (int i = 0; i < count_; ++i) {
      if ((entries_[i].where & mask) == value) size *= entries_[i].axis.extent;
    }
    return size;
  }

  double copy_cost(unsigned packed) const {
    double elements = 0;
    if ((packed & pack_a) != 0) elements += double(volume(in_a, in_a));
    if ((packed & pack_b) != 0) elements += double(volume(in_b, in_b));
    if ((packed & pack_c) != 0) elements += double(volume(in_c, in_c));
    return costs_.pack * elements;
  }

  double call_cost(std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k) const {
    const double rows = double(m), columns = double(n), depth = double(k);
    return costs_.start + costs_.multiply * rows * columns * depth +
           costs_.touch * (rows * depth + depth * columns + 2 * rows * columns);
  }

  /// Gives the entries the strides of dense copies. The labels that a matrix dimension may be made of lie together, in
  /// the order of the other operand that has them, so that they merge if that operand lets them.
  static void pack(Entry* entries, int count, Stride own, Stride outer_order, Stride inner_order, unsigned bit,
                   unsigned inner_kind, Labels& dense) {
    int order[EinsumPlan::capacity];
    int size = 0;
    for (int i = 0; i < count; ++i) {
      if ((entries[i].where & bit) != 0) order[size++] = i;
    }
    const auto rank = [&](int i) {
      return entries[i].where == (in_a | in_b | in_c) ? 0 : entries[i].where == inner_kind ? 2 : 1;
    };
    const auto distance = [&](int i) {
      const std::ptrdiff_t stride = entries[i].axis.*(rank(i) == 2 ? inner_order : outer_order);
      return stride < 0 ? -stride : stride;
    };
    sort_few(order, size,
             [&](int x, int y) { return rank(x) != rank(y) ? rank(x) < rank(y) : distance(x) > distance(y); });
    std::ptrdiff_t stride = 1;
    for (int at = size - 1; at >= 0; --at) {
      EinsumAxis& axis = entries[order[at]].axis;
      axis.*own = stride;
      stride *= axis.extent;
    }
    for (int at = 0; at < size; ++at) {
      const Entry& entry = entries[order[at]];
      dense.add(entry.name, entry.axis.extent, entry.axis.*own);
    }
  }

  void pack_all(unsigned packed, Entry* entries, EinsumPlan& plan) const {
    for (int i = 0; i < count_; ++i) entries[i] = entries_[i];
    plan.packed = packed;
    if ((packed & pack_a) != 0) {
      pack(entries, count_, &EinsumAxis::a, &EinsumAxis::c, &EinsumAxis::b, in_a, in_a | in_b, plan.dense_a);
    }
    if ((packed & pack_b) != 0) {
      pack(entries, count_, &EinsumAxis::b, &EinsumAxis::a, &EinsumAxis::c, in_b, in_b | in_c, plan.dense_b);
    }
    if ((packed & pack_c) != 0) {
      pack(entries, count_, &EinsumAxis::c, &EinsumAxis::a, &EinsumAxis::b, in_c, in_b | in_c, plan.dense_c);
    }
  }

  /// The labels of one kind, merged where every operand steps through two of them as through one.
  Group group(const Entry* entries, unsigned where) const {
    Group group;
    for (int i = 0; i < count_; ++i) {
      if (entries[i].where == where && entries[i].axis.extent != 1) group.axes[group.count++] = entries[i].axis;
    }
    for (bool merged = true; merged;) {
      merged = false;
      for (int outer = 0; outer < group.count && !merged; ++outer) {
        for (int inner = 0; inner < group.count && !merged; ++inner) {
          EinsumAxis& x = group.axes[outer];
          const EinsumAxis& y = group.axes[inner];
          if (outer == inner || x.a != y.extent * y.a || x.b != y.extent * y.b || x.c != y.extent * y.c) continue;
          x = {x.extent * y.extent, y.a, y.b, y.c};
          --group.count;
          for (int i = inner; i < group.count; ++i) group.axes[i] = group.axes[i + 1];
          merged = true;
        }
      }
    }
    return group;
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
    Entry entries[EinsumPlan::capacity];
    pack_all(packed, entries, plan);
    append(plan, group(entries, in_a | in_b | in_c), -1);
    append(plan, group(entries, in_a | in_c), -1);
    append(plan, group(entries, in_b | in_c), -1);
    plan.first_sum = plan.count;
    append(plan, group(entries, in_a | in_b), -1);
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
    Entry entries[EinsumPlan::capacity];
    pack_all(packed, entries, base);
    const Group batch = group(entries, in_a | in_b | in_c);
    const Group rows = group(entries, in_a | in_c);
    const Group columns = group(entries, in_b | in_c);
    const Group depths = group(entries, in_a | in_b);
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
  Entry entries_[3 * max_labels];
  int count_ = 0;
};

}  // namespace meshwise::detail
