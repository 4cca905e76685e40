// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/tensor/contract.hpp"
#include "meshwise/tensor/detail/places.hpp"
#include "meshwise/tensor/rename.hpp"

namespace meshwise::detail {

/// Whether a list begins with the entries of another one.
template <class... Long>
consteval bool begins_like(list<>, list<Long...>) {
  return true;
}
template <class S, class... Short>
consteval bool begins_like(list<S, Short...>, list<>) {
  return false;
}
template <class S, class... Short, class L, class... Long>
consteval bool begins_like(list<S, Short...>, list<L, Long...>) {
  return std::is_same_v<S, L> && begins_like(list<Short...>{}, list<Long...>{});
}

/// What is wrong with heads H that share heads S, by the operands that have them: a list of one refusal, or nothing.
template <class H, class S, class A, class B>
consteval auto heads_meet_shared() {
  using LA = typename A::layout;
  using LB = typename B::layout;
  using da = dims_of<typename A::dims>;
  using db = dims_of<typename B::dims>;
  using entries = shard_entries<LA, H>;
  using shared = shard_entries<LB, S>;
  using missing_h = refused<because::dim_not_in_the_tensor<H>, try_<name_a_dim_of_this_tensor>, typename A::dims>;
  using missing_s = refused<because::dim_not_in_the_tensor<S>, try_<name_a_dim_of_this_tensor>, typename B::dims>;
  using both_in_a = refused<because::dim_repeated<S>, try_<rename_one_of_them_with_key>, typename A::dims>;
  using both_in_b = refused<because::dim_repeated<H>, try_<rename_one_of_them_with_key>, typename B::dims>;
  using apart = refused<because::heads_are_placed_apart_from_what_they_share<H, S>,
                        try_<place_second<S, entries, shared>>, LA, LB>;
  return join<refuse_if<!contains<H, da>, missing_h>, refuse_if<!contains<S, db>, missing_s>,
              refuse_if<contains<S, da>, both_in_a>, refuse_if<contains<H, db>, both_in_b>,
              refuse_if<!begins_like(shared{}, entries{}), apart>>{};
}

/// The layout L with the shard of dim Old, if there is one, replaced by other placements.
template <class L, class Old, class New>
using with_shard = typename decltype(canonical_from<grid_of<L>>(placements_except<L, list<Old>>{} + New{}))::is;

template <class D, class Entries>
using shard_list = std::conditional_t<Entries::size == 0, list<>, list<shard_over<D, Entries>>>;

/// The verdict on a product of a, which has heads H, and b, which has the heads S that they share, to Result: that of a
/// product in which b has H, placed as a places it.
template <class H, class S, class A, class B, class Result>
consteval auto shared_verdict() {
  using refusals = decltype(heads_meet_shared<H, S, A, B>());
  if constexpr (refusals::size != 0) {
    return type<front<refusals>>{};
  } else if constexpr (!contains<H, Result> || contains<S, Result>) {
    return type<
        refused<because::dim_not_in_the_tensor<H>, try_<keep_it_in_the_result_or_sum_it_first>, dims_from<Result>>>{};
  } else {
    using layout = with_shard<typename B::layout, S, shard_list<H, shard_entries<typename A::layout, H>>>;
    if constexpr (!AnyLayout<layout>) {
      return result_refused<typename A::layout, typename B::layout, layout>{};
    } else {
      using dims = dims_from<decltype(renamed_dims<S, H>(dims_of<typename B::dims>{}))>;
      return einsum_verdict<A, Tensor<typename B::element, dims, layout, typename B::space>, Result>();
    }
  }
}
template <class H, class S, class A, class B, class ResultDims>
using shared_of = typename decltype(shared_verdict<H, S, operand<A>, operand<B>, dims_of<ResultDims>>())::is;

/// The axes of heads that do not shard what they share.
template <class... Entries, class Shared>
consteval auto axes_besides(list<Entries...>, Shared) {
  return without_known<Shared>(list<axis_of<Entries>...>{});
}

/// The verdict on the gradient at Value, which has the heads S shared by the heads H of a and b.
template <class H, class S, class A, class B, class Value>
consteval auto shared_gradient_verdict() {
  using refusals = decltype(heads_meet_shared<H, S, A, Value>());
  if constexpr (refusals::size != 0) {
    return type<front<refusals>>{};
  } else {
    using each = decltype(renamed_dims<S, H>(dims_of<typename Value::dims>{}));
    using verdict = typename decltype(einsum_verdict<A, B, each>())::is;
    if constexpr (!is_accepted<verdict>) {
      return type<verdict>{};
    } else {
      using T = typename verdict::is;
      using L = typename T::layout;
      using shared = shard_entries<typename Value::layout, S>;
      using rest = decltype(axes_besides(shard_entries<L, H>{}, shard_axes<typename Value::layout, S>{}));
      using layout = with_shard<L, H, join<shard_list<S, shared>, decltype(partials_over(rest{}))>>;
      return type<accepted<Tensor<typename T::element, typename Value::dims, layout, typename T::space>>>{};
    }
  }
}
template <class H, class S, class A, class B, class Value>
using shared_gradient_of =
    typename decltype(shared_gradient_verdict<H, S, operand<A>, operand<B>, operand<Value>>())::is;

/// Local heads that share local heads: `shared` of them from shared_begin on, and for each of them `heads` neighbours.
struct HeadBlock {
  std::size_t begin, heads, shared_begin, shared;
};

/// Which local heads share what, as few blocks. Errors: a number of heads that is no multiple, or a share that lies on
/// another rank.
template <class H, class S, class A, class B>
List<HeadBlock> head_blocks(const char* verb, const A& a, const B& b) {
  const std::size_t heads = a.extents()[dim_index<H, A>], shared = b.extents()[dim_index<S, B>];
  const auto& mesh = a.mesh();
  if (shared == 0 ? heads != 0 : heads % shared != 0) {
    fail(verb, "a multiple of " + name_of<S>() + " = " + std::to_string(shared) + " for " + name_of<H>(),
         name_of<H>() + " = " + std::to_string(heads), "each of the shared heads belongs to equally many others",
         mesh.world().rank());
  }
  const std::size_t group = shared == 0 ? 1 : heads / shared;
  const std::size_t parts = part_of(mesh, shard_axes<typename B::layout, S>{}).parts;
  const auto apart = [&](const std::string& found) {
    fail(verb, name_of<S>() + " cut between whole groups of " + std::to_string(group) + " heads", found,
         "shard it over fewer ranks and the heads over one more axis, or choose a mesh whose axes divide it",
         mesh.world().rank());
  };
  constexpr bool plain = std::is_same_v<shard_axes<typename B::layout, S>, shard_entries<typename B::layout, S>>;
  if (plain && group > 1 && shared % parts != 0) {
    apart(name_of<S>() + " = " + std::to_string(shared) + " over " + std::to_string(parts) + " ranks");
  }
  const Positions mine = a.template positions<H>();
  const LocalPlaces theirs(b.template positions<S>());
  List<HeadBlock> blocks;
  for (std::size_t h = 0; h < mine.size(); ++h) {
    const std::size_t at = theirs.of(mine.at(h) / group);
    if (at >= theirs.size()) apart("head " + std::to_string(mine.at(h)) + " apart from its share");
    if (!blocks.empty() && blocks.back().shared_begin == at) {
      ++blocks.back().heads;
    } else {
      blocks.push_back({h, 1, at, 1});
    }
  }
  // Whole groups of neighbouring shares are one block.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (kept != 0) {
      HeadBlock& last = blocks[kept - 1];
      if (last.heads == blocks[i].heads && last.shared_begin + last.shared == blocks[i].shared_begin) {
        ++last.shared;
        continue;
      }
    }
    blocks[kept++] = blocks[i];
  }
  blocks.resize(kept);
  return blocks;
}

/// The labels of one block of a local piece, and where it begins. H is two labels: which share, and which of its heads.
template <class All, class H, class S, class T>
std::ptrdiff_t labels_of_block(const T& x, const HeadBlock& block, Labels& labels) {
  constexpr int share = All::size, head = All::size + 1;
  std::ptrdiff_t begin = 0;
  std::size_t i = 0;
  [&]<class... Ds>(list<Ds...>) {
    [[maybe_unused]] const auto one = [&]<class D>(type<D>) {
      const auto stride = static_cast<std::ptrdiff_t>(larger<std::size_t>(elements_after(x, i), 1));
      if constexpr (std::is_same_v<D, H>) {
        const auto heads = static_cast<std::ptrdiff_t>(block.heads);
        labels.add(share, static_cast<std::ptrdiff_t>(block.shared), heads * stride).add(head, heads, stride);
        begin += static_cast<std::ptrdiff_t>(block.begin) * stride;
      } else if constexpr (std::is_same_v<D, S>) {
        labels.add(share, static_cast<std::ptrdiff_t>(block.shared), stride);
        begin += static_cast<std::ptrdiff_t>(block.shared_begin) * stride;
      } else {
        labels.add(index_of<D, All>, static_cast<std::ptrdiff_t>(x.ranges()[i].size), stride);
      }
      ++i;
    };
    (one(type<Ds>{}), ...);
  }(dims_of<typename T::dims>{});
  return begin;
}

/// result = a b, or += beta result, block by block.
template <class H, class S, class Result, class A, class B>
void multiply_blocks(const List<HeadBlock>& blocks, const A& a, const B& b, Result& result,
                     accumulate_t<typename Result::element> beta) {
  using E = typename Result::element;
  using all = decltype(distinct(join<dims_of<typename A::dims>, dims_of<typename B::dims>>{}));
  const Gemm* gemm = a.mesh().gemm();
  E* const out = written(result);
  for (const HeadBlock& block : blocks) {
    Labels la, lb, lc;
    const E* const left = a.local().data() + labels_of_block<all, H, S>(a, block, la);
    const E* const right = b.local().data() + labels_of_block<all, H, S>(b, block, lb);
    E* const to = out + labels_of_block<all, H, S>(result, block, lc);
    einsum<E>(gemm != nullptr ? *gemm : plain_gemm(), accumulate_t<E>(1), left, la, right, lb, beta, to, lc);
  }
}

}  // namespace meshwise::detail
