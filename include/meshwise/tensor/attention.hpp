// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/tensor/detail/shared_heads.hpp"

namespace meshwise {

/// A product in which many heads share few: the heads H of a, in equal groups of neighbours, each meet one head S of b.
///
/// Grouped-query attention, with `kv` for the heads of keys and values:
///
///     scores = shared_einsum<Dims<batch, heads, seq, key<seq>>, heads, kv>(q, k)
///     out    = shared_einsum<Dims<batch, seq, heads, head_dim>, heads, kv>(p, v)
///     dp     = shared_einsum<Dims<batch, heads, seq, key<seq>>, heads, kv>(dout, v)
///     dq     = shared_einsum<Dims<batch, seq, heads, head_dim>, heads, kv>(ds, k)
///     dk     = shared_gradient<heads, kv>(ds, q, k)
///     dv     = shared_gradient<heads, kv>(p, dout, v)
///
/// ResultDims: has H; other dims of both operands that it lacks are summed, as einsum does. Head h meets share h S / H,
/// without copies of b. The entries that shard S are the first ones that shard H: the same, so that every rank has its
/// groups; or fewer, `Shard<kv, to>` beside `Shard<heads, to, ti>` where there are more ranks than shares; or none.
/// Result: placed as a product of equals. Cost: local only; matrix products of the mesh's Gemm, one batch if the local
/// heads are whole groups, at most three otherwise; one allocation. Errors: as einsum; refused for heads placed apart
/// from what they share; a number of heads that is no multiple of S; ranks along the axes of S that do not divide it.
/// Source: Ainslie et al., "GQA", arXiv 2305.13245.
template <class ResultDims, Dim H, Dim S, AnyTensor A, AnyTensor B>
  requires detail::is_accepted<detail::shared_of<H, S, A, B, ResultDims>>
[[nodiscard]] auto shared_einsum(const A& a, const B& b) {
  using Result = typename detail::shared_of<H, S, A, B, ResultDims>::is;
  detail::check_operands("shared_einsum", a, b);
  const auto blocks = detail::head_blocks<H, S>("shared_einsum", a, b);
  Result result(a.mesh(), detail::extents_of_both<ResultDims>(a, b), detail::uninitialised{});
  detail::multiply_blocks<H, S>(blocks, a, b, result, 0);
  return result;
}
template <class ResultDims, Dim H, Dim S, AnyTensor A, AnyTensor B>
  requires(!detail::is_accepted<detail::shared_of<H, S, A, B, ResultDims>>)
[[nodiscard]] auto shared_einsum(const A& a, const B& b) -> detail::shared_of<H, S, A, B, ResultDims>;

/// The gradient at `value`, whose heads S the heads H of a and b share: their product, added up over each group.
///
/// value: for its dims, extents and the placement of S. a, b: both have H, placed alike. Result: the dims of value, S
/// placed as value places it; `Partial` over the axes that shard H but not S, whose ranks have seen other heads of the
/// same groups, and over what einsum says. Cost: as shared_einsum, after zeroing the result. Errors: as shared_einsum.
template <Dim H, Dim S, AnyTensor A, AnyTensor B, AnyTensor Value>
  requires detail::is_accepted<detail::shared_gradient_of<H, S, A, B, Value>>
[[nodiscard]] auto shared_gradient(const A& a, const B& b, const Value& value) {
  detail::check_operands("shared_gradient", a, b);
  detail::check_operands("shared_gradient", a, value);
  detail::check_operands("shared_gradient", b, value);
  const auto blocks = detail::head_blocks<H, S>("shared_gradient", a, value);
  using Result = typename detail::shared_gradient_of<H, S, A, B, Value>::is;
  using Each = detail::dims_from<decltype(detail::renamed_dims<S, H>(detail::dims_of<typename Value::dims>{}))>;
  Extents<typename Value::dims> extents = detail::extents_of_both<Each>(a, b);
  extents[detail::dim_index<S, Value>] = value.extents()[detail::dim_index<S, Value>];
  Result result(value.mesh(), extents);
  detail::multiply_blocks<H, S>(blocks, a, b, result, 1);
  return result;
}
template <Dim H, Dim S, AnyTensor A, AnyTensor B, AnyTensor Value>
  requires(!detail::is_accepted<detail::shared_gradient_of<H, S, A, B, Value>>)
[[nodiscard]] auto shared_gradient(const A& a, const B& b, const Value& value)
    -> detail::shared_gradient_of<H, S, A, B, Value>;

}  // namespace meshwise
