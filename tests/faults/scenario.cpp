// SPDX-License-Identifier: Apache-2.0
#include "scenario.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>

#include "meshwise/bootstrap/launch_processes.hpp"
#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/all_to_all.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/gather.hpp"
#include "meshwise/collective/reduce.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/collective/scan.hpp"
#include "meshwise/collective/scatter.hpp"
#include "meshwise/core/deadline.hpp"
#include "meshwise/fabric/memory/endpoint.hpp"
#include "meshwise/schedule/catalogue.hpp"
#include "meshwise/schedule/compile.hpp"
#include "meshwise/schedule/select.hpp"

namespace faults {

using namespace meshwise;

namespace {

constexpr double patience = 0.3;   ///< seconds that the ranks have for a call
constexpr double tolerance = 0.1;  ///< and how much later the error may come
constexpr std::uint64_t call_number = 2;

/// What one rank tells.
struct Seen {
  std::atomic<std::int32_t> pid;
  std::atomic<std::int32_t> points;
  std::atomic<bool> met;
  std::atomic<std::int64_t> met_at;  ///< nanoseconds
  std::atomic<bool> finished;        ///< with the calls, one way or another
  bool failed;
  Code code;
  bool names_victim;
  double seconds;  ///< from the victim's end, or the begin of the call, to the error
  char operation[64];
  char text[400];
};

/// What all tell, in memory that forks share.
class Board {
 public:
  explicit Board(int ranks) : ranks_(ranks) {
    void* const memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    seen_ = static_cast<Seen*>(memory);
  }
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board() { munmap(seen_, bytes()); }

  Seen& of(int rank) { return seen_[rank]; }

 private:
  std::size_t bytes() const { return sizeof(Seen) * static_cast<std::size_t>(ranks_); }

  int ranks_;
  Seen* seen_;
};

/// The victim's fate, as the engine's hook.
struct Trap {
  const Scenario& scenario;
  Seen& own;

  void at_point(std::uint64_t sequence) {
    if (sequence != call_number) return;
    const int here = own.points++;
    if (scenario.fate == Fate::none || here != scenario.point) return;
    own.met_at.store(monotonic_nanoseconds());
    own.met.store(true);
    switch (scenario.fate) {
      case Fate::killed: kill(getpid(), SIGKILL); break;
      case Fate::stopped: kill(getpid(), SIGSTOP); break;
      case Fate::exits: _exit(3);
      case Fate::throws: throw std::runtime_error("out of luck");
      case Fate::none: break;
    }
  }
};

/// The buffers of one rank, by the target's way.
class Buffers {
 public:
  Buffers(Communicator& world, const Target& target) {
    const auto ranks = static_cast<std::size_t>(target.ranks);
    // A multiple of the ranks' number, above and below what windows hold.
    // Where it is automatic: what goes through windows of its own kind, and what is read and written by request.
    const std::size_t automatic = target.ranks == 2 ? 300 : 2600;
    part = target.way == Way::windows                                               ? 3
           : target.way == Way::attached                                            ? 8200
           : target.way == Way::foreign && target.algorithm == Algorithm::automatic ? automatic
                                                                                    : 2600;
    whole = part * ranks;
    if (target.way == Way::memory) {
      heap_ = std::make_unique<Heap>(*world.endpoint().memory());
      storage_ = heap_->allocate(2 * whole * sizeof(std::int64_t));
      in = {reinterpret_cast<std::int64_t*>(storage_.data()), whole};
    } else {
      own_.resize(2 * whole);
      in = {own_.data(), whole};
    }
    out = {in.data() + whole, whole};
    for (std::size_t i = 0; i < whole; ++i) in[i] = world.rank() + static_cast<std::int64_t>(i);
  }

  std::size_t part = 0, whole = 0;
  std::span<std::int64_t> in, out;

 private:
  std::unique_ptr<Heap> heap_;
  Storage storage_;
  std::vector<std::int64_t> own_;
};

void perform(Communicator& world, const Target& target, Buffers& b) {
  CollectiveOptions options;
  options.algorithm = target.algorithm;
  // As steps_of counts; and lanes only repeat the same steps, two ranks show that of all.
  if (target.way == Way::memory || target.ranks > 2) options.lanes = 1;
  const std::size_t part = b.part;
  switch (target.operation) {
    case Operation::all_reduce: all_reduce(world, b.in, b.out, options); break;
    case Operation::reduce_scatter: reduce_scatter(world, b.in, b.out.first(part), options); break;
    case Operation::all_gather: all_gather(world, b.in.first(part), b.out, options); break;
    case Operation::broadcast: broadcast(world, b.in, 0, options); break;
    case Operation::reduce: reduce(world, b.in, b.out, 0, options); break;
    case Operation::gather: gather(world, b.in.first(part), b.out, 0, options); break;
    case Operation::scatter: scatter(world, b.in, b.out.first(part), 0, options); break;
    case Operation::all_to_all: all_to_all(world, b.in, b.out, options); break;
    case Operation::inclusive_scan: inclusive_scan(world, b.in, b.out, options); break;
    case Operation::exclusive_scan: exclusive_scan(world, b.in, b.out, options); break;
    case Operation::exchange: break;
  }
}

void copy_text(char* to, std::size_t room, const std::string& from) {
  const std::size_t bytes = from.size() < room ? from.size() : room - 1;
  std::memcpy(to, from.data(), bytes);
  to[bytes] = 0;
}

/// The others have seen the end of it: the victim goes on.
void wake(Board& board, const Scenario& scenario) {
  for (int rank = 0; rank < scenario.target.ranks; ++rank) {
    if (rank != scenario.victim && !board.of(rank).finished.load()) return;
  }
  kill(board.of(scenario.victim).pid.load(), SIGCONT);
}

void take_part(Communicator& world, const Scenario& scenario, Board& board) {
  Seen& own = board.of(world.rank());
  own.pid.store(getpid());
  Buffers buffers(world, scenario.target);
  Trap trap{scenario, own};
  auto& endpoint = dynamic_cast<detail::MemoryEndpoint&>(world.endpoint());
  if (world.rank() == scenario.victim) {
    endpoint.job().hook() = {
        [](void* context, std::uint64_t sequence, std::uint64_t) { static_cast<Trap*>(context)->at_point(sequence); },
        &trap};
  }
  std::int64_t start = monotonic_nanoseconds();
  try {
    barrier(world);  // a slow rank may hear of it in here already
    start = monotonic_nanoseconds();
    perform(world, scenario.target, buffers);
    // An error comes no later than with the next call in which this rank hears of the victim.
    barrier(world);
  } catch (const Error& error) {
    const std::int64_t now = monotonic_nanoseconds(), fate = board.of(scenario.victim).met_at.load();
    own.seconds = static_cast<double>(now - (fate > start ? fate : start)) * 1e-9;
    own.failed = true;
    own.code = error.code();
    const std::string text = error.what(), victim = "rank " + std::to_string(scenario.victim);
    for (std::size_t at = text.find(victim); at != std::string::npos && !own.names_victim;
         at = text.find(victim, at + 1)) {
      const std::size_t end = at + victim.size();
      own.names_victim = end == text.size() || text[end] < '0' || text[end] > '9';
    }
    copy_text(own.operation, sizeof(own.operation), error.report().operation);
    copy_text(own.text, sizeof(own.text), text);
    if (scenario.fate == Fate::throws && world.rank() == scenario.victim) throw;
  } catch (...) {
    own.finished.store(true);
    throw;
  }
  own.finished.store(true);
  if (scenario.fate == Fate::stopped && world.rank() != scenario.victim) wake(board, scenario);
}

/// What is wrong with what a rank tells.
std::string fault_of(const Scenario& scenario, int rank, const Seen& seen, bool& late) {
  const std::string who = "rank " + std::to_string(rank) + ": ";
  const bool victim = rank == scenario.victim;
  if (victim && (scenario.fate == Fate::killed || scenario.fate == Fate::exits || scenario.fate == Fate::throws))
    return {};
  if (!seen.finished.load()) return who + "did not come to an end";
  if (!seen.failed) return who + "no error";
  if (victim) return {};  // stopped: it was late itself
  const std::string text = who + seen.text;
  if (!seen.names_victim) return text + " [does not name the victim]";
  const std::string operation = seen.operation;
  if (operation != operation_name(scenario.target.operation) && operation != "barrier") {
    return text + " [names the operation " + operation + "]";
  }
  const Code expected = scenario.fate == Fate::stopped  ? Code::timed_out
                        : scenario.fate == Fate::throws ? Code::aborted
                                                        : Code::peer_left;
  // Who hears of the end of a rank from the rank's own report has another code for it.
  const bool heard = seen.code == Code::aborted || (scenario.fate == Fate::throws && seen.code == Code::peer_left);
  if (seen.code != expected && !heard) return text + " [has the code " + code_name(seen.code) + "]";
  if (seen.seconds > patience + tolerance) {
    late = true;
    return text + " [after " + std::to_string(seen.seconds) + " s]";
  }
  return {};
}

}  // namespace

const char* name_of(Fate fate) {
  constexpr const char* names[] = {"none", "killed", "exits", "throws", "stopped"};
  return names[static_cast<int>(fate)];
}

const char* name_of(Way way) {
  constexpr const char* names[] = {"memory", "foreign", "messages", "windows", "attached"};
  return names[static_cast<int>(way)];
}

std::string Target::text() const {
  return std::string(operation_name(operation)) + " " + algorithm_name(algorithm) + " " + name_of(way) + " " +
         std::to_string(ranks);
}

std::string Scenario::text() const {
  return target.text() + " ranks: rank " + std::to_string(victim) + " " + name_of(fate) + " at point " +
         std::to_string(point);
}

std::vector<Target> targets(int ranks) {
  std::vector<Target> result;
  const Catalogue catalogue(Topology::flat(ranks));
  for (int o = 0; o < operation_count; ++o) {
    const auto operation = static_cast<Operation>(o);
    if (operation == Operation::exchange) continue;
    for (const Way way : {Way::memory, Way::foreign, Way::messages}) {
      for (int a = 0; a < algorithm_count; ++a) {
        const auto algorithm = static_cast<Algorithm>(a);
        const AnyGenerator generator = catalogue.find(algorithm);
        if (generator.empty() || !generator.supports(Shape{operation, ranks, 0, rooted(operation)})) continue;
        result.push_back({operation, algorithm, way, ranks});
      }
    }
    result.push_back({operation, Algorithm::automatic, Way::foreign, ranks});
    result.push_back({operation, Algorithm::automatic, Way::windows, ranks});
    result.push_back({operation, Algorithm::automatic, Way::attached, ranks});
  }
  return result;
}

int steps_of(const Target& target, int rank) {
  const Catalogue catalogue(Topology::flat(target.ranks));
  const Shape shape{target.operation, target.ranks, 0, rooted(target.operation)};
  return static_cast<int>(compile(catalogue.find(target.algorithm), shape, rank).steps.size());
}

std::string play(const Scenario& scenario, bool& met, int& points, bool& late) {
  Board board(scenario.target.ranks);
  LaunchOptions options;
  options.deadline = patience;
  options.messages = scenario.target.way == Way::messages;
  ProcessOptions processes;
  processes.deadline = 20;
  processes.grace = 5;
  std::string trouble;
  try {
    launch_processes(
        scenario.target.ranks, options, [&](Communicator& world) { take_part(world, scenario, board); }, processes);
  } catch (const Error& error) {
    trouble = error.what();
  }
  met = board.of(scenario.victim).met.load();
  points = board.of(scenario.victim).points.load();
  late = false;
  if (!met) return trouble;
  for (int rank = 0; rank < scenario.target.ranks; ++rank) {
    std::string fault = fault_of(scenario, rank, board.of(rank), late);
    if (!fault.empty()) return fault;
  }
  const bool ends = scenario.fate != Fate::stopped;
  if (ends && trouble.find("rank " + std::to_string(scenario.victim)) == std::string::npos) {
    return "the launch said \"" + trouble + "\"";
  }
  if (!ends && !trouble.empty()) return trouble;
  return {};
}

}  // namespace faults
