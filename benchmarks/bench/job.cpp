// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "buffers.hpp"
#include "copy_limit.hpp"
#include "measure.hpp"
#include "meshwise/collective/barrier.hpp"
#include "round_trip.hpp"
#include "sizes.hpp"
#include "table.hpp"
#include "verify.hpp"

namespace harness {
namespace {

meshwise::Operation operation_of(Verb verb) {
  meshwise::Operation operation{};
  meshwise::parse(verb_name(verb), operation);
  return operation;
}

class Job {
 public:
  Job(meshwise::Communicator& world, const Options& options, bool processes, Board& board, Stage& stage)
      : world_(world), options_(options), board_(board), stage_(stage), table_(options) {
    like_.processes = processes;
    like_.ranks = world.size();
    like_.reproducible = options.reproducible;
    like_.lanes = options.lanes;
    if (options.warm) states_.push_back(options.rewrite ? State::rewritten : State::warm);
    if (options.cold) states_.push_back(State::cold);
    longest_ = options.most + 16 * static_cast<std::size_t>(world.size());
    if (options.registered) allocate(false);
    if (options.foreign) allocate(true);
    if (world.rank() == 0) limit_.emplace(stage.cores(), static_cast<std::size_t>(world.size()));
  }

  void run() {
    introduce();
    each_section([&] { all_ += extents().size() * buffers_.size() * states_.size(); });
    each_section([&] { section(); });
  }

 private:
  void allocate(bool foreign) {
    try {
      buffers_.push_back(std::make_unique<Buffers>(world_, foreign, longest_));
    } catch (const std::exception&) {
      throw std::runtime_error("there is no memory for two buffers of " + bytes_text(options_.most) +
                               " on each rank; lower --maxbytes or the number of ranks");
    }
  }

  bool speaks() const { return world_.rank() == 0; }

  void introduce() {
    constexpr std::size_t length = 160;
    char line[length] = {}, host[64] = {};
    gethostname(host, sizeof host - 1);
    std::snprintf(line, length, "Rank %2d Pid %6d on %s core %2d, %s", world_.rank(), static_cast<int>(getpid()), host,
                  sched_getcpu(), like_.processes ? "a process" : "a thread");
    // Through the times, which are memory that all ranks have.
    std::memcpy(stage_.times(world_.rank()), line, length);
    stage_.meet();
    std::vector<std::string> lines;
    for (int k = 0; speaks() && k < world_.size(); ++k) lines.emplace_back(reinterpret_cast<char*>(stage_.times(k)));
    if (speaks()) table_.ranks(lines);
    stage_.meet();
  }

  /// The extents of a sweep, each once.
  std::vector<Extent> extents() const {
    if (like_.verb == Verb::barrier) return {Extent{}};
    std::vector<Extent> result;
    for (const std::size_t size : sweep(options_.least, options_.most, options_.factor, options_.step)) {
      const Extent extent =
          extent_of(like_.verb, size, meshwise::element_size(like_.element), static_cast<std::size_t>(world_.size()));
      if (result.empty() || result.back().whole != extent.whole) result.push_back(extent);
    }
    return result;
  }

  /// Calls f for every operation, element, reduction and root, with `like_` set to it.
  template <class F>
  void each_section(const F& f) {
    for (const Verb verb : options_.verbs) {
      like_.verb = verb;
      for (const meshwise::ElementKind element : options_.elements) {
        like_.element = element;
        for (const Redop redop : options_.redops) {
          like_.redop = redop;
          const int roots = options_.root < 0 && has_root(verb) ? world_.size() : 1;
          for (int k = 0; k < roots; ++k) {
            like_.root = has_root(verb) ? (options_.root < 0 ? k : options_.root) : -1;
            f();
          }
          if (!combines(verb)) break;
        }
        if (verb == Verb::barrier) break;
      }
    }
  }

  void section() {
    if (speaks()) table_.section(like_);
    refused_.clear();
    for (const Extent& extent : extents()) {
      for (const std::unique_ptr<Buffers>& buffers : buffers_) {
        for (const State state : states_) {
          for (const meshwise::Algorithm algorithm : algorithms()) measure_point(extent, *buffers, state, algorithm);
          if (speaks()) ++done_;
        }
      }
    }
    if (speaks()) table_.end();
  }

  std::vector<meshwise::Algorithm> algorithms() const {
    if (!has_algorithms(like_.verb)) return {meshwise::Algorithm::automatic};
    return options_.algorithms;
  }

  /// Which algorithm such a call takes; empty if the wanted one cannot do it. All ranks find the same.
  std::string algorithm_for(const Work& work) {
    if (!has_algorithms(work.verb)) return "-";
    try {
      const std::string text =
          world_.explain(operation_of(work.verb), work.bytes(), work.options, work.in_place && !has_root(work.verb));
      const std::size_t begin = text.rfind("chosen: "), end = text.find(',', begin);
      return begin == std::string::npos ? "-" : text.substr(begin + 8, end - begin - 8);
    } catch (const meshwise::Error& error) {
      if (speaks() && !options_.all_algorithms &&
          std::find(refused_.begin(), refused_.end(), work.options.algorithm) == refused_.end()) {
        refused_.push_back(work.options.algorithm);
        table_.note("left out: " + error.report().found + "; " + error.report().expected + " is needed");
      }
      return "";
    }
  }

  Work work_for(const Point& point, const Extent& extent, const Buffers& buffers, bool in_place) const {
    Work work;
    work.verb = point.verb;
    work.element = point.element;
    work.redop = point.redop;
    work.root = std::max(0, point.root);
    work.rank = world_.rank();
    work.ranks = world_.size();
    work.in_place = in_place;
    work.extent = extent;
    work.out = buffers.out();
    work.in = in_place ? work.out : buffers.in();
    work.ragged = point.ragged;
    work.options.algorithm = point.algorithm;
    work.options.lanes = point.lanes;
    work.options.reproducible = point.reproducible;
    if (point.verb == Verb::all_to_all_v) {
      for (int peer = 0; peer < work.ranks; ++peer) {
        work.sent.push_back(block_between(work.rank, peer, extent.count, work.ranks, point.ragged));
        work.received.push_back(block_between(peer, work.rank, extent.count, work.ranks, point.ragged));
      }
      work.extent.whole = 0;
      for (const std::size_t count : work.sent) work.extent.whole += count;
    }
    return work;
  }

  void measure_point(const Extent& extent, const Buffers& buffers, State state, meshwise::Algorithm algorithm) {
    Point point = like_;
    point.foreign = buffers.foreign();
    point.cold = state == State::cold;
    point.rewrite = state == State::rewritten;
    point.ragged = options_.ragged && like_.verb == Verb::all_to_all_v;
    point.algorithm = algorithm;
    point.count = extent.count;
    // A form that the operation does not have is replaced by the one that it has.
    const bool out = has_out_of_place(point.verb) && (options_.out_of_place || !has_in_place(point.verb));
    const bool in = has_in_place(point.verb) && (options_.in_place || !has_out_of_place(point.verb));
    std::vector<Work> works;
    std::vector<Timing*> timings;
    for (const bool in_place : {false, true}) {
      if (!(in_place ? in : out)) continue;
      Work work = work_for(point, extent, buffers, in_place);
      const std::string chosen = algorithm_for(work);
      if (chosen.empty()) continue;
      if (chosen != "-" && algorithm == meshwise::Algorithm::automatic) {
        std::snprintf(point.chosen, sizeof point.chosen, "%s", chosen.c_str());
      }
      works.push_back(std::move(work));
      timings.push_back(in_place ? &point.in_place : &point.out_of_place);
    }
    if (works.empty()) return;
    point.size = works.front().bytes();
    if (speaks()) table_.progress(point, done_, all_);
    const double moved = least_bytes(point.verb, static_cast<double>(point.size), point.ranks, works[0].in_place);
    stage_.alone([&] {
      point.round_trip_before = round_trip(stage_.cores());
      if (moved > 0) point.limit = limit_->rate(moved).best();
    });
    for (std::size_t k = 0; k < works.size(); ++k) *timings[k] = measure(stage_, world_, works[k], options_, state);
    stage_.alone([&] {
      point.round_trip_after = round_trip(stage_.cores());
      table_.row(point);
      board_.add(point);
    });
  }

  meshwise::Communicator& world_;
  const Options& options_;
  Board& board_;
  Stage& stage_;
  Table table_;
  Point like_;
  std::vector<State> states_;
  std::size_t longest_ = 0;
  std::vector<std::unique_ptr<Buffers>> buffers_;
  std::optional<CopyLimit> limit_;
  std::vector<meshwise::Algorithm> refused_;
  std::size_t done_ = 0, all_ = 0;
};

}  // namespace

void run_job(meshwise::Communicator& world, const Options& options, bool processes, Board& board) {
  Stage stage(world, std::max(times_needed(options), std::size_t{64}));
  try {
    if (options.bind) stage.bind();
    Job(world, options, processes, board, stage).run();
    stage.meet();
  } catch (const Stopped&) {
    meshwise::barrier(world);  // throws what the first one has thrown
    throw;
  } catch (...) {
    stage.give_up();
    throw;
  }
}

}  // namespace harness
