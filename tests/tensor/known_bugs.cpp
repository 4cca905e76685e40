// SPDX-License-Identifier: Apache-2.0
// Wrong results that programs with sharded tensors are known to produce: each one is the right value here, or does not
// compile. The numbers in the comments are what went wrong.
#include <doctest/doctest.h>

#include <cmath>

#include "meshwise/parallel/vocabulary.hpp"
#include "meshwise/tensor/accumulate.hpp"
#include "meshwise/tensor/arg_max.hpp"
#include "meshwise/tensor/backward.hpp"
#include "meshwise/tensor/contract.hpp"
#include "meshwise/tensor/inside.hpp"
#include "meshwise/tensor/layer_norm.hpp"
#include "meshwise/tensor/mean.hpp"
#include "meshwise/tensor/norm.hpp"
#include "meshwise/tensor/value.hpp"
#include "pieces.hpp"

namespace test {
namespace {

using namespace pieces;

template <class A, class B>
concept can_add = requires(const A& a, const B& b) {
  a + b;
};
template <class F, class A>
concept can_map = requires(const F& f, const A& a) {
  map(f, a);
};

// --- gradients -------------------------------------------------------------------------------------------------------

TEST_CASE("the gradient of a shared weight through a loss that is summed over ranks") {
  // w = 1, d = (0, 1), loss = sum of w^2 d. Some systems give each rank n times its own share: (0, 4).
  on_grid({2, 1}, [](const Rank& rank) {
    const auto w = holding<Number<>>(rank, {}, {1});
    const auto d = holding<Row<Shard<d0, dp>>>(rank, {2}, by<dp>(rank, {0}, {1}));
    const auto loss = sum<d0>(d * (w * w));
    static_assert(std::is_same_v<std::remove_const_t<decltype(loss)>, Number<Partial<dp>>>);
    const auto seed = gradient_seed(loss);
    const auto dw = sum<d0>(d * w * 2.0 * seed);
    static_assert(std::is_same_v<std::remove_const_t<decltype(dw)>, Number<Partial<dp>>>, "and says so");
    require_equal(local(dw), by<dp>(rank, {0}, {2}), "the share of each rank");
    require(value(convert<Replicate<dp>>(backward_to<decltype(w)>(dw))) == 2, "the gradient, on every rank");
  });
}

TEST_CASE("a replicated weight used on different data owes the sum, once") {
  // Rank gradients 3 and 5: 8 on both. Forgotten, replicas drift apart with (3, 5); paid twice it is 16.
  static_assert(!std::is_convertible_v<Row<Partial<dp>>, Row<>>, "an unpaid gradient is no gradient");
  static_assert(!std::is_assignable_v<Row<>&, Row<Partial<dp>>>);
  on_grid({2, 2}, [](const Rank& rank) {
    const auto x = holding<Doubles<Dims<batch, d0>, Shard<batch, dp>>>(rank, {2, 1}, by<dp>(rank, {3}, {5}));
    const auto dy = holding<Doubles<Dims<batch>, Shard<batch, dp>>>(rank, {2}, {1});
    const auto dw = contract<batch>(x, dy);
    static_assert(std::is_same_v<std::remove_const_t<decltype(dw)>, Row<Partial<dp>>>);
    require_equal(local(dw), by<dp>(rank, {3}, {5}), "parts");
    const Row<> paid = convert<Replicate<dp>>(dw);
    require_equal(local(paid), {8}, "paid");
    require_equal(local(convert<Replicate<dp>>(paid)), {8}, "asking again pays nothing");
  });
}

TEST_CASE("each rank's own gradient is what it asks for by leaving the axis, and nothing else") {
  // f = p x with x = 3 and 5: the gradient of the shared p is 8. Where it is made inside of an axis it is 3 or 5, and
  // nobody adds up behind its back; claimed as what it is, a part of the sum, it is 8.
  on_grid({2, 1}, [](const Rank& rank) {
    using Inner = Tensor<double, Dims<>, Layout<Mesh<tp>>>;
    const auto p = inside<dp>(holding<Number<>>(rank, {}, {2}));
    static_assert(same<decltype(p), Inner>);
    Inner x(rank.mesh.without<dp>(), {});
    x.mutable_local()[0] = rank.mesh.coordinate<dp>() == 0 ? 3 : 5;
    require(value(p * x) == (rank.mesh.coordinate<dp>() == 0 ? 6 : 10), "the loss of this rank");
    const auto dp_here = backward_to<Inner>(x * gradient_seed(p * x));
    require_equal(local(dp_here), by<dp>(rank, {3}, {5}), "its own");
    const auto owed = outside<Partial<dp>>(rank.mesh, dp_here);
    require(value(convert<Replicate<dp>>(owed)) == 8, "the sum");
  });
}

TEST_CASE("the gain of a norm between sequence-split activations owes its gradient over the tensor axis") {
  on_grid({1, 2}, [](const Rank& rank) {
    using X = Doubles<Dims<seq, hidden>, Shard<seq, tp>>;
    using Gain = Doubles<Dims<hidden>>;
    const auto x = rank.reals<X>({3, 4}, 1), dy = rank.reals<X>({3, 4}, 2);
    const auto gain = rank.reals<Gain>({4}, 3);
    const auto y = layer_norm(x, gain, gain);
    const auto g = layer_norm_backward(dy, x, y, gain).gain;
    static_assert(std::is_same_v<std::remove_const_t<decltype(g)>, Doubles<Dims<hidden>, Partial<tp>>>);
    using Whole = Doubles<Dims<seq, hidden>>;
    const auto all = rank.reals<Whole>({3, 4}, 1);
    const auto wanted = layer_norm_backward(rank.reals<Whole>({3, 4}, 2), all, layer_norm(all, gain, gain), gain).gain;
    require_close(local(convert<Replicate<tp>>(g)), local(wanted), 1e-14, "the gradient on one rank");
  });
}

TEST_CASE("a sum that leaves the typed world and comes back keeps its gradient") {
  // Parts 1 and 2, y = 3, L = y: the gradient of each part is 1 on its rank, not 1 on one of them and not 1/2.
  on_grid({1, 2}, [](const Rank& rank) {
    const auto parts = holding<Number<Partial<tp>>>(rank, {}, by<tp>(rank, {1}, {2}));
    const auto mine = inside<tp>(parts);  // what this rank holds, whatever it means
    const auto back = outside<Partial<tp>>(rank.mesh, mine);
    const auto y = convert<Replicate<tp>>(back);
    require(value(y) == 3, "the value");
    const auto dparts = backward_to<decltype(parts)>(gradient_seed(y));
    static_assert(std::is_same_v<std::remove_const_t<decltype(dparts)>, Number<>>, "the dual of a sum");
    require(value(dparts) == 1 && local(inside<tp>(dparts))[0] == 1, "of each part");
  });
}

TEST_CASE("the backward of a reduce-scatter is an all-gather, without a factor") {
  // y0 + 10 y1 of a sum split over two ranks: every part has the gradient (1, 10). Wrong: (0.5, 5).
  on_grid({1, 2}, [](const Rank& rank) {
    using Parts = Row<Partial<tp>>;
    const auto dy = holding<Row<Shard<d0, tp>>>(rank, {2}, by<tp>(rank, {1}, {10}));
    const auto dx = backward_to<Parts>(dy);
    static_assert(std::is_same_v<std::remove_const_t<decltype(dx)>, Row<>>);
    require_equal(local(dx), {1, 10}, "of every part");
  });
}

TEST_CASE("the backward of a gather does not add up what every rank computed alike") {
  // x = (1), (2) gathered to y = [1, 2]; y0 + y1. If all compute it, dx = 1; adding that up gives 2. If each computes
  // a part of it, the parts are added up.
  on_grid({1, 2}, [](const Rank& rank) {
    using X = Row<Shard<d0, tp>>;
    require_equal(local(backward_to<X>(holding<Row<>>(rank, {2}, {1, 1}))), {1}, "the same work");
    const auto shares = holding<Row<Partial<tp>>>(rank, {2}, by<tp>(rank, {1, 0}, {0, 1}));
    require_equal(local(backward_to<X>(shares)), {1}, "different work");
    require_equal(local(backward_to<X>(holding<Row<Partial<tp>>>(rank, {2}, {1, 1}))), {2}, "used on both");
  });
}

TEST_CASE("a loss over a split vocabulary, given logits that are whole") {
  // Logits 0 and 0, class 0: ln 2. A loss that takes whole logits for its part gives ln 4.
  on_grid({1, 2}, [](const Rank& rank) {
    const Tensor<std::int32_t, Dims<batch>, On<>> label(rank.mesh, {1});
    const auto loss_of = [&](const auto& logits) { return value(cross_entropy<vocab>(logits, label, 1.0).loss); };
    const double whole = loss_of(Doubles<Dims<batch, vocab>>(rank.mesh, {1, 2}));
    const double split = loss_of(Doubles<Dims<batch, vocab>, Shard<vocab, tp>>(rank.mesh, {1, 2}));
    require(std::fabs(whole - std::log(2.0)) < 1e-15 && whole == split, "ln 2 both ways");
  });
  // What insists on a part does not take the whole.
  static_assert(!std::is_convertible_v<Doubles<Dims<batch, vocab>>, Doubles<Dims<batch, vocab>, Shard<vocab, tp>>>);
}

TEST_CASE("the square of a mean: the loss decides whether a sum is owed, not a wrapper") {
  // c = mean(2 t, 4 t), L = c^2, t = 1: dt = 18 as parts 6 and 12. Averaging gradients gives 9.
  on_grid({2, 1}, [](const Rank& rank) {
    const auto x = holding<Row<Shard<d0, dp>>>(rank, {2}, by<dp>(rank, {2}, {4}));
    const auto t = holding<Number<>>(rank, {}, {1});
    const auto owed = mean<d0>(x * t);
    const auto c = convert<Replicate<dp>>(owed);
    require(value(c) == 3, "the mean");
    const auto dc = c * 2.0;                              // of L at c
    const auto downed = backward_to<decltype(owed)>(dc);  // Replicate: each rank's share enters c once
    const auto dt = sum<d0>(x * downed * 0.5);            // the mean of two elements
    static_assert(std::is_same_v<std::remove_const_t<decltype(dt)>, Number<Partial<dp>>>);
    require_equal(local(dt), by<dp>(rank, {6}, {12}), "parts");
    require(value(convert<Replicate<dp>>(dt)) == 18, "the gradient");
  });
}

TEST_CASE("buffer and layout change together: what is reduced is not reduced again") {
  // Parts 1 and 2 are 3. A buffer that was reduced while its type says that it was not gives 6 the next time.
  on_grid({1, 2}, [](const Rank& rank) {
    auto parts = holding<Number<Partial<tp>>>(rank, {}, by<tp>(rank, {1}, {2}));
    const auto kept = parts;
    const auto once = convert<Replicate<tp>>(parts);
    const auto again = convert<Replicate<tp>>(convert<Replicate<tp>>(std::move(parts)));  // in place, where it can be
    require(value(once) == 3 && value(again) == 3, "3 both times");
    require_equal(local(kept), by<tp>(rank, {1}, {2}), "the parts are still parts");
    require(value(convert<Replicate<tp>>(view_as<Partial<tp>>(once))) == 3, "there and back");
  });
}

TEST_CASE("a reduction of a part of a buffer arrives, and leaves its argument alone") {
  // Gradients 3 and 5: 8, also where they lie inside of another buffer; a reduction into a copy that is dropped gives
  // (3, 5), one into the argument destroys what the caller still holds.
  on_grid({2, 2}, [](const Rank& rank) {
    const std::vector<double> mine = by<dp>(rank, {3, 4, 30, 40}, {5, 6, 50, 60});
    const auto both = holding<Row<Partial<dp>>>(rank, {4}, mine);
    const auto part = view_as<Shard<d0, tp>>(both);  // a view into the middle of it
    require(part.offset() == (rank.mesh.coordinate<tp>() == 0 ? 0U : 2U), "shared");
    const std::vector<double> sum = by<tp>(rank, {8, 10}, {80, 100});
    require_equal(local(convert<Replicate<dp>>(part)), sum, "the sum");
    auto moved = part;
    require_equal(local(convert<Replicate<dp>>(std::move(moved))), sum, "of an rvalue that shares");
    require_equal(local(both), mine, "the argument");
  });
}

// --- Partial and operations ------------------------------------------------------------------------------------------

TEST_CASE("a number is added to a sum once, not once per rank") {
  // 0 + ... + 9 = 45 in parts; plus 10 is 55. Added by each of n ranks it is 45 + 10 n.
  static_assert(!can_add<Number<Partial<tp>>, Number<>> && !can_add<Number<>, Number<Partial<tp>>>);
  static_assert(!can_add<Number<Partial<tp>>, double> && !can_add<double, Number<Partial<tp>>>);
  for (const int n : {1, 2, 3, 4}) {
    on_grid({1, n}, [](const Rank& rank) {
      const auto x = rank.fill<Row<Shard<d0, tp>>>({10}, [](std::size_t i) { return static_cast<double>(i); });
      const auto total = sum<d0>(x);
      const auto ten = holding<Number<>>(rank, {}, {10});
      require(value(convert<Replicate<tp>>(total) + ten) == 55, "after the reduction");
      require(value(convert<Replicate<tp>>(total + view_as<Partial<tp>>(ten))) == 55, "before it");
      // The norm that gradients are clipped by, plus a little: the same.
      require(norm(x) == std::sqrt(285.0), "a norm owes nothing");
    });
  }
}

template <class A>
concept can_choose = requires(const A& a) {
  max<d0>(a);
  arg_max<d0>(a);
};
TEST_CASE("functions that are not linear do not see the parts of a sum") {
  // [1, 5] + [4, -3] = [5, 2]: the largest is 5; of the parts 9. 1.5 + 1.5 clamped to 2 is 2; of the parts 3.
  const auto clamp = [](double v) { return v < 2 ? v : 2.0; };
  static_assert(!can_map<decltype(clamp), Row<Partial<tp>>>, "nor in place: there is no way to say it");
  static_assert(!can_choose<Row<Partial<tp>>> && can_choose<Row<>>);
  on_grid({1, 2}, [clamp](const Rank& rank) {
    const auto x = holding<Row<Partial<tp>>>(rank, {2}, by<tp>(rank, {1, 5}, {4, -3}));
    require(value(max<d0>(convert<Replicate<tp>>(x))) == 5, "maximum");
    require_equal(local(arg_max<d0>(convert<Replicate<tp>>(x))), {0}, "and where it is");
    const auto y = holding<Row<Partial<tp>>>(rank, {1}, {1.5});
    require_equal(local(map(clamp, convert<Replicate<tp>>(y))), {2}, "clamped");
  });
}

TEST_CASE("a reduction is not mistaken for another one") {
  // Parts 2 and 4 of a sum are 6; read as an average 3. Maxima 7 and 9 of two parts are 9; added up 16.
  static_assert(!std::is_convertible_v<Number<Partial<tp>>, Number<Partial<tp, Max>>>);
  static_assert(!can_add<Number<Partial<tp>>, Number<Partial<tp, Max>>>);
  on_grid({1, 2}, [](const Rank& rank) {
    require(value(convert<Replicate<tp>>(holding<Number<Partial<tp>>>(rank, {}, by<tp>(rank, {2}, {4})))) == 6, "sum");
    const auto x = holding<Row<Shard<d0, tp>>>(rank, {4}, by<tp>(rank, {7, 1}, {2, 9}));
    const auto top = max<d0>(x);
    static_assert(std::is_same_v<std::remove_const_t<decltype(top)>, Number<Partial<tp, Max>>>);
    require(value(convert<Replicate<tp>>(top)) == 9, "maximum");
    require(value(convert<Replicate<tp>>(min<d0>(x))) == 1, "minimum");
  });
}

TEST_CASE("the index of the largest element of a dim in parts is global") {
  // [10, 5 | 3, 8]: index 0. Local indices 0 and 1 give 1 when they are added up or the later one is taken.
  on_grid({1, 2}, [](const Rank& rank) {
    const auto x = holding<Row<Shard<d0, tp>>>(rank, {4}, by<tp>(rank, {10, 5}, {3, 8}));
    require(value(distributed_arg_max<d0>(x)) == 0, "first part");
    const auto y = holding<Row<Shard<d0, tp>>>(rank, {4}, by<tp>(rank, {1, 5}, {3, 8}));
    require(value(distributed_arg_max<d0>(y)) == 3, "last part");
  });
}

template <class X>
concept can_read = requires(const X& x) {
  value(x);
};
TEST_CASE("the number read from a sum is the sum") {
  // Parts 3 and 4: 7. Read from one rank it is 3 or 4.
  static_assert(!can_read<Number<Partial<tp>>> && can_read<Number<>>);
  on_grid({1, 2}, [](const Rank& rank) {
    const auto x = holding<Number<Partial<tp>>>(rank, {}, by<tp>(rank, {3}, {4}));
    require(value(convert<Replicate<tp>>(x)) == 7, "7");
  });
}

TEST_CASE("a value becomes a sum without being divided, by coordinates and not by ranks") {
  // 1.0f in ten parts of 0.1f is 1.0000001f, and the integer 3 in two parts of 1 is 2. In the groups {0, 2} and {1, 3}
  // of four ranks there must be one that keeps the value: a test for rank 0 finds none in the second.
  on_grid({1, 10}, [](const Rank& rank) {
    using F = Tensor<float, Dims<>, On<>>;
    const auto one = holding<F>(rank, {}, {1});
    require(value(convert<Replicate<tp>>(view_as<Partial<tp>>(one))) == 1.0F, "exactly");
  });
  on_grid({2, 2}, [](const Rank& rank) {
    using I = Tensor<std::int32_t, Dims<>, On<>>;
    require(value(convert<Replicate<tp>>(view_as<Partial<tp>>(holding<I>(rank, {}, {3})))) == 3, "an integer");
    require(value(convert<Replicate<dp>>(view_as<Partial<dp>>(holding<I>(rank, {}, {5})))) == 5, "each group its own");
    const auto both = view_as<Partial<dp>, Partial<tp>>(holding<I>(rank, {}, {5}));
    require(value(convert<Replicate<dp>, Replicate<tp>>(both)) == 5, "both axes");
  });
}

}  // namespace
}  // namespace test
