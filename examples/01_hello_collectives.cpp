// SPDX-License-Identifier: Apache-2.0
// Hello, collectives: every rank calls the same function with its own numbers, and each gets its share of the result.

#include <cstdint>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/all_to_all.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/collective/send_receive.hpp"
#include "meshwise/core/deadline.hpp"
#include "support/command_line.hpp"

namespace {

using meshwise::Communicator;
using Numbers = std::vector<int>;

// Rank r begins with the numbers 100 (r + 1), 100 (r + 1) + 1, ..., one for each rank.
int number(int rank, int i) { return 100 * (rank + 1) + i; }

std::string text(std::span<const int> numbers) {
  std::string line;
  for (const int n : numbers) line += ' ' + std::to_string(n);
  return '[' + line + " ]";
}

// Every rank compares what it got with expected(i); the first one shows it.
template <class Expected>
void report(const Communicator& world, const char* verb, std::span<const int> in, std::span<const int> out,
            const Expected& expected) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == expected(static_cast<int>(i))) continue;
    throw std::runtime_error(std::string(verb) + " is wrong on rank " + std::to_string(world.rank()) + ": " +
                             text(out));
  }
  if (world.rank() == 0) std::printf("%-15s rank 0: %s -> %s\n", verb, text(in).c_str(), text(out).c_str());
}

// The program of one rank. Ranks share nothing but what they send: they may be threads, or processes.
void hello(Communicator& world) {
  const int rank = world.rank(), size = world.size();
  Numbers mine(static_cast<std::size_t>(size)), all(mine.size()), one(1);
  for (int i = 0; i < size; ++i) mine[static_cast<std::size_t>(i)] = number(rank, i);
  const std::span<const int> first = std::span(mine).first(1);
  const int ranks_summed = size * (size - 1) / 2;
  const auto total = [&](int i) { return 100 * (ranks_summed + size) + size * i; };

  meshwise::all_reduce(world, mine, all);  // Sum, unless told otherwise: all_reduce<meshwise::Max>(...)
  report(world, "all_reduce", mine, all, total);

  meshwise::reduce_scatter(world, mine, one);  // the same sums, one to each rank
  report(world, "reduce_scatter", mine, one, [&](int) { return total(rank); });

  meshwise::all_gather(world, first, all);
  report(world, "all_gather", first, all, [](int i) { return number(i, 0); });

  meshwise::all_to_all(world, mine, all);
  report(world, "all_to_all", mine, all, [&](int i) { return number(i, rank); });

  all = mine;
  meshwise::broadcast(world, all, size - 1);  // from the last rank
  report(world, "broadcast", mine, all, [&](int i) { return number(size - 1, i); });

  // A token goes round; each rank adds its own number to it.
  Numbers token{0};
  if (rank > 0) meshwise::receive(world, token, rank - 1);
  token[0] += rank;
  meshwise::send(world, token, (rank + 1) % size);
  if (rank == 0) meshwise::receive(world, token, size - 1);
  meshwise::broadcast(world, token);
  report(world, "send, receive", Numbers{rank}, token, [&](int) { return ranks_summed; });

  // Ranks of one colour form a group of their own.
  Communicator group = world.split(rank % 2);
  Numbers sum{rank};
  meshwise::all_reduce(group, sum);
  const int n = group.size();
  report(world, "split", Numbers{rank}, sum, [&](int) { return n * (n - 1) + n * (rank % 2); });

  // Nobody leaves a barrier before the last one has come to it, by the clock that all ranks on this host share.
  std::vector<std::int64_t> last{meshwise::monotonic_nanoseconds()};
  meshwise::barrier(world);
  const std::int64_t left = meshwise::monotonic_nanoseconds();
  meshwise::all_reduce<meshwise::Max>(world, last);
  report(world, "barrier", Numbers{1}, Numbers{left >= last[0] ? 1 : 0}, [](int) { return 1; });

  meshwise::barrier(world);  // by now every rank has found its results right
  if (rank == 0) std::printf("%d ranks, every result as expected\n", size);
}

}  // namespace

int main(int count, char** arguments) {
  // Starts one thread per rank, or joins the processes that meshwise-run has started; an exception on any rank ends all.
  return examples::main(count, arguments, "Shows what each collective does.", hello);
}
