// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/core/refused.hpp"

namespace meshwise {

// Why tensors are refused, and what to do instead: see `refused`.

/// Remedies, to be read as a sentence: `try_<convert_<Replicate<tp>>>`.
template <class... Placements>
struct convert_;
template <class... Placements>
struct convert_first_operand_;
template <class... Placements>
struct convert_second_operand_;
template <class... Placements>
struct convert_both_operands_;
template <class... Placements>
struct convert_bias_;
template <class Value>
struct backward_to_;
template <class Layout>
struct reshard_;
template <class Old, class New>
struct rename_;
/// Takes the Partial that is wanted in the end.
template <class Wanted>
struct generate_it_replicated_then_view_as_;
struct wrap_it_in_linear_if_it_is;
/// The distributed form of a verb that needs a whole dim.
template <class D>
struct distributed_arg_max_;
template <class D>
struct distributed_top_k_;
struct sum_and_divide_with_the_rounding_you_want;
struct use_convert_if_communication_is_meant;
struct start_its_steps_one_by_one;
struct use_convert;
struct use_positions;
struct use_inside;
struct use_attend;
struct use_AdamWState;
struct use_options_for;
struct cut_it_into_contiguous_parts;
struct use_ring_attention;
struct convert_or_rename_to_cut_them_alike;
struct take_a_piece_of_each_tensor_and_an_int;
struct return_nothing_or_a_tensor_like_the_piece;
struct pass_the_counts_of_its_parts;
struct rename_one_of_them_with_key;
struct list_each_axis_once;
struct list_all_axes_of_a_dim_in_one_Shard;
struct list_the_counted_axis_first_in_its_Shard;
struct reduce_one_of_them_first;
struct merge_axes_that_are_always_used_together;
struct use_it_as_it_is;
struct leave_its_gradient_out;
struct move_the_minor_axes_first;
struct reshard_to_the_layout_wanted;
struct move_the_other_axes_of_its_dim_first;
struct take_the_mesh_with_this_axis_added;
struct bring_both_to_one_mesh;
struct use_indices_of_an_integer_type;
struct use_a_floating_point_element;
struct take_one_element_and_return_one;
struct take_two_elements_and_return_one;
struct take_an_Index_and_return_an_element;
struct take_a_sample_and_an_Index_and_return_an_element;
struct capture_by_reference_instead_of_mutable;
struct merge_dims_that_are_always_used_together;
struct name_an_axis_of_this_mesh;
struct name_another_axis_or_leave_it_out;
struct name_a_dim_of_this_tensor;
struct name_a_dim_of_both_operands;
struct name_each_dim_once;
struct choose_a_dim_that_the_tensor_lacks;
struct keep_it_in_the_result_or_sum_it_first;
struct put_it_first_in_the_dims;
struct put_it_last_in_the_dims;
struct put_the_operand_with_more_dims_first;
struct give_both_the_same_dims_in_the_same_order;
struct give_one_extent_for_each_dim;
struct give_the_indices_the_other_dims;
struct give_the_parameters_the_last_dim_only;
struct give_the_gradient_the_dims_of_the_value;
struct convert_the_gradient_yourself_to_Partial_or_Replicate;

/// Reasons, to be read as a sentence: `because::axis_placed_twice<tp>`.
namespace because {
template <class A>
struct axis_not_in_the_mesh;
template <class A>
struct axis_placed_twice;
template <class D>
struct dim_repeated;
template <class D>
struct dim_not_in_the_tensor;
template <class D>
struct dim_in_neither_operand;
template <class D>
struct summed_dim_only_in_one_operand;
template <class A, class D>
struct axis_is_not_minor_most_in_its_dim;
template <class A>
struct axis_does_not_shard_its_dim_alone;
template <class A>
struct counted_axis_is_not_major_most;
struct mesh_has_more_than_8_axes;
template <class D>
struct dim_is_not_contiguous;
template <class D>
struct sizes_of_a_Counted_dim_are_unknown;
template <class A, class From, class To>
struct reduction_of_a_Partial_cannot_change;
template <class A>
struct nonlinear_function_of_Partial;
template <class A>
struct function_of_two_Partials_is_not_linear;
template <class A>
struct Partial_cannot_meet_Replicate;
template <class A>
struct Partials_have_different_reductions;
template <class D>
struct contraction_sharded_on_one_side;
template <class D>
struct dim_placed_differently_in_the_operands;
template <class D>
struct needs_the_whole_dim;
template <class Heads, class Shared>
struct heads_are_placed_apart_from_what_they_share;
template <class E>
struct mean_of_integers_is_not_an_integer;
template <class D>
struct dim_is_not_first;
template <class D>
struct dim_is_not_last;
template <class A>
struct Partial_cannot_be_generated;
template <class... Placements>
struct view_would_communicate;
template <class Named, class Actual>
struct conversion_is_not_the_one_named;
template <class... Placements>
struct conversion_is_not_one_collective_of_whole_runs;
template <class A>
struct a_claim_does_not_carry_out_the_sum_of_Partial;
struct a_claim_does_not_change_what_a_rank_holds;
template <class A>
struct axis_cuts_no_dim;
template <class A, class D>
struct axis_does_not_cut_the_dim;
template <class A>
struct axis_cuts_the_tensors_differently;
struct function_does_not_take_the_pieces;
struct function_does_not_take_the_elements;
struct function_does_not_take_the_index;
struct function_does_not_take_the_sample;
struct function_is_mutable;
template <class Result>
struct function_contributes_no_tensor;
template <class A>
struct gradient_arrives_sharded_where_the_value_is_replicated;
template <class A>
struct Partial_with_this_reduction_has_no_gradient;
template <class A>
struct gradient_still_owes_a_sum;
template <class A>
struct gradient_owes_no_sum;
template <class A>
struct value_is_not_replicated_over;
struct parameter_is_frozen;
struct parameter_is_not_flat;
template <class E>
struct element_is_its_own_master;
struct gradient_is_not_in_the_dual_of_the_value;
template <class E>
struct indices_are_not_integers;
template <class E>
struct function_of_real_numbers_on_integers;
struct tensor_has_more_than_12_dims;
struct layouts_differ;
struct dims_differ;
struct meshes_differ;
}  // namespace because

namespace detail {

/// A verdict that allows: the type that results.
template <class Result>
struct accepted {
  using is = Result;
};

template <class Verdict>
inline constexpr bool is_accepted = false;
template <class Result>
inline constexpr bool is_accepted<accepted<Result>> = true;

}  // namespace detail
}  // namespace meshwise
