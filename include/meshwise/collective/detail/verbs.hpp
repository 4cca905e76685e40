// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <utility>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/collective/detail/arguments.hpp"
#include "meshwise/collective/detail/request.hpp"
#include "meshwise/collective/detail/task.hpp"
#include "meshwise/collective/pending.hpp"
#include "meshwise/collective/prepared.hpp"
#include "meshwise/core/detail/shared.hpp"

namespace meshwise::detail {

// The three verbs of every collective. Rule describes it in a Request:
//   Rule::describe(request, input, output, more...)   two buffers
//   Rule::within(request, data, more...)              one buffer that is both
// `more` are the arguments after the buffers, options included.

/// Blocking, on the stack and the communicator's workspace.
template <class Rule, class In, class Out, class... More>
void run_between_buffers(const char* verb, Communicator& communicator, const In& in, Out& out, const More&... more) {
  Request request(communicator.endpoint(verb), communicator.workspace(), verb);
  Rule::describe(request, reading(in), writing(out), more...);
  request.run();
}
template <class Rule, class Data, class... More>
std::span<item_t<Data>> run_within(const char* verb, Communicator& communicator, Data& data, const More&... more) {
  Request request(communicator.endpoint(verb), communicator.workspace(), verb);
  Rule::within(request, writing(data), more...);
  request.run();
  return {static_cast<item_t<Data>*>(request.own.output), request.own.output_count};
}

template <class Rule, class In, class Out, class... More>
Shared<OutputTask<held_t<Out>>> task_between(const char* verb, Communicator& communicator, In&& in, Out&& out,
                                             const More&... more) {
  using Result = TransferTask<held_t<In>, held_t<Out>>;
  Shared<Result> task(new Result(communicator.endpoint(verb), verb, std::forward<In>(in), std::forward<Out>(out)));
  Rule::describe(task->request, reading(task->in), writing(task->out), more...);
  return task;
}
template <class Rule, class Data, class... More>
Shared<OutputTask<held_t<Data>>> task_within(const char* verb, Communicator& communicator, Data&& data,
                                             const More&... more) {
  using Result = OutputTask<held_t<Data>>;
  Shared<Result> task(new Result(communicator.endpoint(verb), verb, std::forward<Data>(data)));
  Rule::within(task->request, writing(task->out), more...);
  return task;
}

template <class R>
constexpr Take<result_t<R>> taking() {
  if constexpr (std::is_lvalue_reference_v<R>) {
    return output_of<item_t<R>>;
  } else {
    return moved_output_of<std::remove_cvref_t<R>>;
  }
}

/// Non-blocking.
template <class Rule, class In, class Out, class... More>
Pending<result_t<Out>> start_between(const char* verb, Communicator& communicator, In&& in, Out&& out,
                                     const More&... more) {
  auto task = task_between<Rule, In, Out>(verb, communicator, std::forward<In>(in), std::forward<Out>(out), more...);
  task->start();
  return {std::move(task), taking<Out>()};
}
template <class Rule, class Data, class... More>
Pending<result_t<Data>> start_within(const char* verb, Communicator& communicator, Data&& data, const More&... more) {
  auto task = task_within<Rule, Data>(verb, communicator, std::forward<Data>(data), more...);
  task->start();
  return {std::move(task), taking<Data>()};
}

/// Persistent.
template <class Rule, class In, class Out, class... More>
Prepared<std::span<item_t<Out>>> prepare_between(const char* verb, Communicator& communicator, In&& in, Out&& out,
                                                 const More&... more) {
  return {task_between<Rule, In, Out>(verb, communicator, std::forward<In>(in), std::forward<Out>(out), more...),
          output_of<item_t<Out>>};
}
template <class Rule, class Data, class... More>
Prepared<std::span<item_t<Data>>> prepare_within(const char* verb, Communicator& communicator, Data&& data,
                                                 const More&... more) {
  return {task_within<Rule, Data>(verb, communicator, std::forward<Data>(data), more...), output_of<item_t<Data>>};
}

}  // namespace meshwise::detail
