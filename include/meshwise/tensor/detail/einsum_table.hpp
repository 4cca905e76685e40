// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "meshwise/core/error.hpp"
#include "meshwise/tensor/detail/einsum_plan.hpp"

namespace meshwise::detail {

/// The labels of a contraction A, B -> C, each with where it occurs and how every operand steps through it.
class EinsumTable {
 public:
  enum Where : unsigned { in_a = 1, in_b = 2, in_c = 4 };
  /// Labels of one kind.
  struct Group {
    EinsumAxis axes[EinsumPlan::capacity];
    int count = 0;
  };

  /// Errors: Error with invalid_argument for labels that do not fit together.
  EinsumTable(const Labels& a, const Labels& b, const Labels& c) {
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

  /// The product of the extents of the labels for which (where & mask) == value.
  std::ptrdiff_t volume(unsigned mask, unsigned value) const {
    std::ptrdiff_t size = 1;
    for (int i = 0; i < count_; ++i) {
      if ((entries_[i].where & mask) == value) size *= entries_[i].axis.extent;
    }
    return size;
  }

  /// The same table with dense copies of the packed operands, whose labels go to the plan.
  EinsumTable packed(unsigned operands, EinsumPlan& plan) const {
    EinsumTable table = *this;
    plan.packed = operands;
    if ((operands & pack_a) != 0) {
      table.pack(&EinsumAxis::a, &EinsumAxis::c, &EinsumAxis::b, in_a, in_a | in_b, plan.dense_a);
    }
    if ((operands & pack_b) != 0) {
      table.pack(&EinsumAxis::b, &EinsumAxis::a, &EinsumAxis::c, in_b, in_b | in_c, plan.dense_b);
    }
    if ((operands & pack_c) != 0) {
      table.pack(&EinsumAxis::c, &EinsumAxis::a, &EinsumAxis::b, in_c, in_b | in_c, plan.dense_c);
    }
    return table;
  }

  /// The labels of one kind, merged where every operand steps through two of them as through one.
  Group group(unsigned where) const {
    Group group;
    for (int i = 0; i < count_; ++i) {
      if (entries_[i].where == where && entries_[i].axis.extent != 1) group.axes[group.count++] = entries_[i].axis;
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

 private:
  struct Entry {
    int name = 0;
    unsigned where = 0;
    EinsumAxis axis;
  };
  using Stride = std::ptrdiff_t EinsumAxis::*;

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

  /// Gives the entries the strides of dense copies. The labels that a matrix dimension may be made of lie together, in
  /// the order of the other operand that has them, so that they merge if that operand lets them.
  void pack(Stride own, Stride outer_order, Stride inner_order, unsigned bit, unsigned inner_kind, Labels& dense) {
    int order[EinsumPlan::capacity];
    int size = 0;
    for (int i = 0; i < count_; ++i) {
      if ((entries_[i].where & bit) != 0) order[size++] = i;
    }
    const auto rank = [&](int i) {
      return entries_[i].where == (in_a | in_b | in_c) ? 0 : entries_[i].where == inner_kind ? 2 : 1;
    };
    const auto distance = [&](int i) {
      const std::ptrdiff_t stride = entries_[i].axis.*(rank(i) == 2 ? inner_order : outer_order);
      return stride < 0 ? -stride : stride;
    };
    sort_few(order, size,
             [&](int x, int y) { return rank(x) != rank(y) ? rank(x) < rank(y) : distance(x) > distance(y); });
    std::ptrdiff_t stride = 1;
    for (int at = size - 1; at >= 0; --at) {
      EinsumAxis& axis = entries_[order[at]].axis;
      axis.*own = stride;
      stride *= axis.extent;
    }
    for (int at = 0; at < size; ++at) {
      const Entry& entry = entries_[order[at]];
      dense.add(entry.name, entry.axis.extent, entry.axis.*own);
    }
  }

  Entry entries_[3 * max_labels];
  int count_ = 0;
};

}  // namespace meshwise::detail
