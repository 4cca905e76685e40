// SPDX-License-Identifier: Apache-2.0
// What a block saves and what it computes again: the same bits in every way, and what the ways send.
#include <doctest/doctest.h>

#include <cstring>
#include <optional>
#include <utility>

#include "block_support.hpp"
#include "meshwise/parallel/block_form.hpp"

namespace {

using namespace test;

template <Recompute R, Gathered G = Gathered::kept, Masks M = Masks::replayed, bool sp = true>
struct Form : BlockForm {
  static constexpr bool sequence_parallel = sp;
  static constexpr Recompute recompute = R;
  static constexpr Gathered gathered = G;
  static constexpr Masks masks = M;
};
template <class E, class F = BlockForm>
using Block = TransformerBlock<E, Grid, F>;

template <class E>
bool same_bits(const std::vector<std::vector<E>>& a, const std::vector<std::vector<E>>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return false;
    if (!a[i].empty() && std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(E)) != 0) return false;
  }
  return true;
}

template <class B>
typename B::Drop drop_of(double p) {
  return {p, 11, 12, {p, 13}};
}

constexpr Recompute none = Recompute::none, selective = Recompute::selective, all = Recompute::full;
constexpr Gathered kept = Gathered::kept, again = Gathered::again;

template <class E, class Saving, class... Others>
void same_ways(const Grid& mesh, const BlockSizes& z, double p) {
  using B = Block<E, Saving>;
  const auto expected = block_pieces<B>(mesh, z, drop_of<B>(p));
  const auto check = [&]<class F>(F) {
    using Other = Block<E, F>;
    require(same_bits(block_pieces<Other>(mesh, z, drop_of<Other>(p)), expected), name_of<F>());
  };
  (check(Others{}), ...);
}
void all_ways_agree(Ranks ranks, const BlockSizes& z, double p) {
  on_grid(ranks, [&](const Grid& mesh) {
    same_ways<float, BlockForm, Form<none, kept, Masks::kept>, Form<none, again>, Form<none, again, Masks::kept>,
              Form<selective, kept, Masks::kept>, Form<selective, again>, Form<all>>(mesh, z, p);
    same_ways<float, Form<none, kept, Masks::kept, false>, Form<selective, kept, Masks::replayed, false>,
              Form<all, kept, Masks::replayed, false>>(mesh, z, p);
    same_ways<bf16, BlockForm, Form<selective, again, Masks::kept>, Form<all>>(mesh, z, p);
  });
}

/// Calls and elements that leave all ranks along tp in a forward and a backward.
struct Sent {
  std::uint64_t forward_calls, backward_calls, forward, backward;
  friend bool operator==(const Sent&, const Sent&) = default;
};
template <class F>
Sent sent(const Grid& mesh, const BlockSizes& z) {
  using B = Block<float, F>;
  const auto w = block_parameters<typename B::Parameters>(mesh, z);
  const auto x = block_input<B>(mesh, z), dy = block_upstream<B>(mesh, z);
  std::optional<std::pair<typename B::X, typename B::Saved>> result;
  const Traffic forward = traffic_of<tp>(mesh, [&] { result.emplace(B::forward(w, x, drop_of<B>(0.1))); });
  const Traffic backward =
      traffic_of<tp>(mesh, [&] { static_cast<void>(B::backward(w, result->second, dy, drop_of<B>(0.1))); });
  return {forward.calls, backward.calls, sum_over_ranks(mesh, forward.volume) / sizeof(float),
          sum_over_ranks(mesh, backward.volume) / sizeof(float)};
}

constexpr Ranks some_ranks[] = {{1, 1}, {2, 1}, {1, 2}, {2, 3}, {1, 4}};

}  // namespace

TEST_CASE("recompute: saving all, some or nothing but the input gives the same bits, with dropout and uneven splits") {
  for (const Ranks ranks : some_ranks) {
    for (const BlockSizes& z : {BlockSizes{}, BlockSizes{1, 1, 4, 1, 4, 3}, BlockSizes{0, 3, 4, 2, 2, 3}}) {
      for (const double p : {0.0, 0.3}) {
        CAPTURE(ranks.data);
        CAPTURE(ranks.tensor);
        CAPTURE(z.s);
        CAPTURE(p);
        CHECK_NOTHROW(all_ways_agree(ranks, z, p));
      }
    }
  }
}

TEST_CASE("recompute: what each way sends over the tensor axis, to the element") {
  for (const int t : {1, 2, 3, 4}) {
    CAPTURE(t);
    const auto check = [](const Grid& mesh) {
      const BlockSizes z;
      const auto n = static_cast<std::uint64_t>(mesh.size<tp>());
      // One gather or reduction of all ranks: (t-1)/t b s h elements each.
      const std::uint64_t once = (n - 1) * z.b * z.s * z.h, calls = n == 1 ? 0 : 1;
      const auto expect = [&](const Sent& found, std::uint64_t forward, std::uint64_t backward, const char* what) {
        require(found.forward == forward * once && found.backward == backward * once, what);
      };
      const Sent saving = sent<BlockForm>(mesh, z);
      require(saving == Sent{4 * calls, 4 * calls, 4 * once, 4 * once}, "8 (t-1)/t b s h, four calls each way");
      expect(sent<Form<selective>>(mesh, z), 4, 4, "the attention core is local");
      expect(sent<Form<none, again>>(mesh, z), 4, 6, "two inputs are gathered again");
      expect(sent<Form<selective, again>>(mesh, z), 4, 6, "and so beside selective");
      expect(sent<Form<all>>(mesh, z), 4, 7, "two gathers and one reduction are replayed, not the last one");
      const Sent alike = sent<Form<none, kept, Masks::replayed, false>>(mesh, z);
      require(alike == Sent{2 * calls, 2 * calls, 4 * once, 4 * once}, "without sequence parallelism four all-reduces");
      expect(sent<Form<all, kept, Masks::replayed, false>>(mesh, z), 4, 6, "of which full replays one");
    };
    CHECK_NOTHROW(on_grid({1, t}, check));
  }
}
