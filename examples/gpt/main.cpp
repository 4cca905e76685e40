// SPDX-License-Identifier: Apache-2.0
// A GPT that learns real text on several ranks: data, context, tensor and sequence parallelism as layout types, the
// stages of ZeRO, mixed precision and recomputation as types that a trainer is made of.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "check.hpp"
#include "meshwise/bootstrap/run.hpp"
#include "meshwise/bootstrap/shared_memory.hpp"
#include "meshwise/bootstrap/thread.hpp"
#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/trace/ledger.hpp"
#include "meshwise/trace/record.hpp"
#include "meshwise/trace/write_trace.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "sample.hpp"
#include "text.hpp"
#include "volumes.hpp"

#if defined(MESHWISE_EXAMPLE_BLAS)
#include "meshwise/blas/gemm.hpp"
#endif

namespace gpt {

/// The matrix products of this build: CBLAS with one thread per rank if it was found and knows this processor, else the
/// library's own.
inline const Gemm* matrix_products() {
#if defined(MESHWISE_EXAMPLE_BLAS)
  return &blas::best_gemm();
#else
  return &plain_gemm();
#endif
}

inline std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

inline Options with_text(Options options) {
  if (options.text.empty()) options.text = default_files();
  return options;
}
inline Sizes sizes_of(const Options& o) {
  return {to_size(o.vocab),    to_size(o.sequence), to_size(o.hidden), to_size(o.heads),
          to_size(o.head_dim), to_size(o.ffn),      to_size(o.layers)};
}
inline Training training_of(const Options& o) {
  Training t;
  t.adamw.learning_rate = o.learning_rate;
  t.adamw.weight_decay = o.weight_decay;
  t.steps = static_cast<std::uint64_t>(o.steps);
  t.warmup = static_cast<std::uint64_t>(o.warmup);
  t.clip = o.clip;
  t.dropout = o.dropout;
  t.seed = o.seed;
  t.precision = o.precision;
  t.recompute = o.recompute;
  t.zero = o.zero;
  t.bucket_bytes = to_size(o.bucket);
  t.prefetch = to_size(o.prefetch);
  return t;
}

/// Which matrix products these are, and why, for a person.
inline std::string name_of_products(const Gemm& gemm) {
#if defined(MESHWISE_EXAMPLE_BLAS)
  if (&gemm == &plain_gemm() && !blas::fits_this_processor()) {
    return std::string("the library's own kernels (OpenBLAS has only '") + blas::kernel_name() +
           "' for this processor)";
  }
#endif
  return &gemm == &plain_gemm() ? std::string("the library's own kernels") : std::string(gemm.name);
}

/// Everything that the ranks of a process know beforehand; read-only, and it stays where it is: the windows refer to the
/// text.
struct Job {
  explicit Job(const Options& given)
      : options(with_text(given)),
        text(Text::load(options.text)),
        windows(text, options.sequence, options.batch, options.seed),
        sizes(sizes_of(options)),
        training(training_of(options)) {
    text.require_vocabulary(options.vocab);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  Options options;
  Text text;
  Windows windows;
  Sizes sizes;
  Training training;
};

/// One rank's program.
class Program {
 public:
  /// timeline: of this rank, if a trace is wanted.
  Program(Communicator& world, const Job& job, Timeline* timeline)
      : job_(job),
        timeline_(timeline),
        mesh_(world, {job.options.dp, job.options.cp, job.options.tp}, matrix_products()),
        trainer_(make_trainer(mesh_, job.sizes, with_timeline(job.training, timeline))),
        speaks_(mesh_.is_first()) {}

  /// Trains, reports and samples; whether the check passed (on the first rank).
  bool run() {
    const Options& o = job_.options;
    const bool processes = in_processes();
    if (speaks_) introduce(processes);
    std::unique_ptr<Timeline::Pause> pause;
    if (timeline_ != nullptr) {
      timeline_->clear();
      pause = std::make_unique<Timeline::Pause>(*timeline_);
    }
    std::optional<Check> check;
    if (o.check > 0) check.emplace(mesh_, job_.sizes, job_.training);
    std::array<Traffic, 3> in_steps{};
    std::vector<Traffic> together(group_traffic_of(mesh_).size());
    double held_out = evaluate();
    const double first_held_out = held_out;
    {
      Progress progress(speaks_ && !o.quiet ? stderr : nullptr, ProgressStyle::of(2), o.steps, o.batch * o.sequence);
      progress.evaluated(held_out);
      for (std::int64_t step = 0; step < o.steps; ++step) {
        const auto before = traffic_of(mesh_);
        const auto together_before = group_traffic_of(mesh_);
        const auto make = [&](const Grid& mesh) { return training_batch(mesh, step); };
        const auto micro_batches = make(mesh_);
        const bool traced = timeline_ != nullptr && step + 3 >= o.steps;
        if (traced) pause.reset();
        const bool evaluates = step + 1 == o.steps || (o.evaluate_every > 0 && (step + 1) % o.evaluate_every == 0);
        const StepResult result = trainer_->step(micro_batches);
        if (evaluates || step < o.check) trainer_->settle();  // what follows is not counted as part of steps
        if (traced) pause = std::make_unique<Timeline::Pause>(*timeline_);
        const auto after = traffic_of(mesh_);
        for (std::size_t a = 0; a < after.size(); ++a) in_steps[a] += after[a] - before[a];
        const auto together_after = group_traffic_of(mesh_);
        for (std::size_t i = 0; i < together.size(); ++i) together[i] += together_after[i] - together_before[i];
        if (step < o.check) check->after_step(*trainer_, result, make);
        progress.step(step + 1, result.loss);
        if (evaluates) {
          held_out = evaluate();
          progress.evaluated(held_out);
        }
      }
    }
    if (speaks_) {
      std::printf("held-out loss: %.4f nats per byte before, %.4f after %" PRId64 " steps\n\n", first_held_out,
                  held_out, o.steps);
    }
    report_ledger(in_steps, together);
    if (timeline_ != nullptr) {
      write_trace(mesh_, *timeline_, o.trace);
      if (speaks_) std::printf("timeline: %s, for https://ui.perfetto.dev\n\n", o.trace.c_str());
    }
    if (o.sample > 0) sample();
    return !check || report_check(*check);
  }

 private:
  static Training with_timeline(Training training, Timeline* timeline) {
    training.timeline = timeline;
    return training;
  }

  /// Tokens for any mesh, from `token(sequence, position)`. Labels are the tokens that follow, by global position.
  template <class F>
  Tokens tokens_of(const Grid& mesh, std::size_t sequences, const F& token) const {
    return generate<Tokens>(mesh, {sequences, job_.sizes.sequence}, [&](const Index<Tokens::dims>& i) {
      return token(static_cast<std::int64_t>(i.template position<batch>()),
                   static_cast<std::int64_t>(i.template position<seq>()));
    });
  }

  std::vector<Batch> training_batch(const Grid& mesh, std::int64_t step) const {
    const Windows& w = job_.windows;
    std::vector<Batch> all;
    for (std::int64_t m = 0, parts = job_.options.accumulate; m < parts; ++m) {
      const std::int64_t begin = w.batch() * m / parts, end = w.batch() * (m + 1) / parts;
      all.push_back(
          {tokens_of(mesh, to_size(end - begin), [&](auto b, auto p) { return w.token(step, begin + b, p); }),
           tokens_of(mesh, to_size(end - begin), [&](auto b, auto p) { return w.target(step, begin + b, p); })});
    }
    return all;
  }

  double evaluate() const {
    const Windows& w = job_.windows;
    const std::size_t n = to_size(w.batch());
    double sum = 0;
    for (std::int64_t b = 0; b < w.evaluation_batches(); ++b) {
      sum += trainer_->evaluate({tokens_of(mesh_, n, [&](auto s, auto p) { return w.held_out_token(b, s, p); }),
                                 tokens_of(mesh_, n, [&](auto s, auto p) { return w.held_out_target(b, s, p); })});
    }
    return sum / static_cast<double>(w.evaluation_batches());
  }

  /// Whether other ranks are in other processes. Collective.
  bool in_processes() const {
    const std::array<long, 1> own{static_cast<long>(getpid())};
    std::vector<long> all(static_cast<std::size_t>(mesh_.world().size()));
    all_gather(mesh_.world(), own, all);
    return std::any_of(all.begin(), all.end(), [&](long id) { return id != own[0]; });
  }

  void introduce(bool processes) const {
    const Options& o = job_.options;
    const ParameterCounts n = count_parameters(job_.sizes);
    std::printf("GPT: %s parameters, %" PRId64 " layers, hidden %" PRId64 ", %" PRId64 " heads, %s\n",
                abbreviated(static_cast<double>(n.split + n.whole)).c_str(), o.layers, o.hidden, o.heads,
                o.precision == Precision::f64   ? "f64"
                : o.precision == Precision::f32 ? "f32"
                                                : "bf16 with a master in f32");
    std::printf("mesh: %d ranks = dp %d x cp %d x tp %d (%s), matrix products by %s\n", o.ranks, o.dp, o.cp, o.tp,
                processes ? "processes" : "threads", name_of_products(*mesh_.gemm()).c_str());
    constexpr const char* stages[] = {"split nothing", "split the optimizer's state",
                                      "split optimizer state and gradients",
                                      "split optimizer state, gradients and parameters"};
    constexpr const char* again[] = {"nothing", "scores", "everything"};
    std::printf("ZeRO stage %d: ranks %s; blocks recompute %s\n", o.zero, stages[o.zero],
                again[static_cast<int>(o.recompute)]);
    std::printf("text: %s bytes, a tenth held out; %" PRId64 " sequences of %" PRId64 " bytes per step",
                grouped(static_cast<std::int64_t>(job_.text.size())).c_str(), o.batch, o.sequence);
    if (o.accumulate > 1) std::printf(", in %" PRId64 " micro-batches", o.accumulate);
    std::printf("\n\n");
    std::fflush(stdout);
  }

  void report_ledger(const std::array<Traffic, 3>& in_steps, const std::vector<Traffic>& together_in_steps) {
    const auto now = traffic_of(mesh_);
    std::vector<Traffic> together = group_traffic_of(mesh_);
    for (std::size_t i = 0; i < together.size(); ++i) together[i] = together[i] - together_in_steps[i];
    Ledger ledger = collect_ledger(mesh_, {now[0] - in_steps[0], now[1] - in_steps[1], now[2] - in_steps[2]}, together);
    // What goes over both axes at once stands behind what goes over one.
    ledger.axes.insert(ledger.axes.end(), ledger.groups.begin(), ledger.groups.end());
    const std::uint64_t steps = job_.training.steps;
    if (!speaks_ || steps == 0) return;
    using A = Column::Align;
    Table traffic({{"axis"},
                   {"per step, over all ranks"},
                   {"formula"},
                   {"by formula", "bytes", A::right},
                   {"volume", "bytes", A::right},
                   {"moved", "bytes", A::right},
                   {"calls", "", A::right},
                   {"messages", "", A::right}});
    const Options& o = job_.options;
    const auto volumes =
        step_volumes(job_.sizes, to_size(o.batch), to_size(o.accumulate), {o.dp, o.cp, o.tp}, job_.training);
    for (const auto& axis : ledger.axes) {
      std::uint64_t total = 0;
      for (const Volume& v : volumes) {
        if (v.axis != axis.name) continue;
        traffic.row({v.axis, v.what, v.formula, grouped(static_cast<std::int64_t>(v.bytes))});
        total += v.bytes;
      }
      const auto per_step = [&](std::uint64_t n) {
        return n % steps == 0 ? grouped(static_cast<std::int64_t>(n / steps))
                              : detail::print("%.1f", static_cast<double>(n) / static_cast<double>(steps));
      };
      traffic.row({axis.name, total * steps == axis.traffic.volume ? "total: as the formulas say" : "total: DIFFERS",
                   "", grouped(static_cast<std::int64_t>(total)), per_step(axis.traffic.volume),
                   per_step(axis.traffic.moved), per_step(axis.traffic.calls), per_step(axis.traffic.messages)});
      traffic.rule();
    }
    traffic.print();
    std::printf("%s\n", volume_legend);
    Table memory({{"memory"},
                  {"now", "MiB, all ranks", A::right},
                  {"peak", "MiB, all ranks", A::right},
                  {"peak", "MiB, largest rank", A::right}});
    const auto mib = [](std::uint64_t bytes) { return detail::print("%.2f", static_cast<double>(bytes) / (1 << 20)); };
    for (const auto& m : ledger.memory) {
      if (m.peak != 0) memory.row({category_name(m.category), mib(m.current), mib(m.peak), mib(m.largest_peak)});
    }
    std::printf("\n");
    memory.print();
    std::printf("\n");
    std::fflush(stdout);
  }

  bool report_check(const Check& check) const {
    if (!check.is_first()) return true;
    if (job_.options.ranks == 1) {
      std::printf("check: nothing to compare, this is one rank\n");
      return true;
    }
    const Differences& d = check.worst();
    std::printf("check against one rank, after each of %" PRId64 " steps, largest relative differences:\n", d.steps);
    std::printf("  loss %.1e (limit %.0e), gradient norm %.1e (limit %.0e), parameters %.1e (limit %.0e): %s\n", d.loss,
                d.loss_limit, d.gradient_norm, d.gradient_limit, d.parameters, d.parameter_limit,
                d.passed() ? "passed" : "FAILED");
    return d.passed();
  }

  void sample() const {
    const Options& o = job_.options;
    std::string context = o.prompt.empty() ? std::string("\n") : o.prompt;
    const std::size_t begin = context.size();
    for (std::int64_t i = 0; i < o.sample; ++i) {
      const std::size_t used = std::min(context.size(), job_.sizes.sequence);
      const auto tokens = tokens_of(mesh_, 1, [&](auto, std::int64_t p) {
        const auto at = context.size() - used + to_size(p);
        return to_size(p) < used ? static_cast<int>(static_cast<unsigned char>(context[at])) : 0;
      });
      const auto logits = trainer_->next_logits(tokens, used - 1);
      context.push_back(
          static_cast<char>(next_byte(std::span<const double>(logits), o.temperature, o.top_k,
                                      stream_seed(o.seed, 0x73616d706c65u), static_cast<std::uint64_t>(i))));
    }
    if (speaks_) std::printf("sample:\n%s\n\n", printable(context.substr(begin)).c_str());
  }

  const Job& job_;
  Timeline* timeline_;
  Grid mesh_;
  std::unique_ptr<Trainer> trainer_;
  bool speaks_;
};

/// Whether everything that was printed could be written.
inline bool all_written() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

constexpr const char* not_written = "the output could not be written";

/// Refuses a file that cannot be written before anything is trained.
inline void require_writable(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) throw UsageError("--trace '" + path + "': " + std::strerror(errno) + "; choose another file");
  std::fclose(file);
}

/// What every rank does. Ranks may be processes: whatever ends the run with an error is thrown on one of them.
inline void run_rank(Communicator& world, const Job& job, Timeline* timeline) {
  if (timeline != nullptr) world = record(std::move(world), *timeline);
  const bool passed = Program(world, job, timeline).run();
  barrier(world);  // all that is left is rank 0's verdict
  if (world.rank() != 0) return;
  if (!all_written()) throw std::runtime_error(not_written);
  if (!passed) throw std::runtime_error("the check has failed: this is not what one rank computes");
}

inline int run(const Options& options) {
  if (!options.trace.empty()) require_writable(options.trace);
  const Job job(options);
  matrix_products();  // before there are ranks: the library's own threads end
  RunOptions running;
  running.deadline = job.options.deadline;
  running.ranks = job.options.ranks;
  const bool traces = !job.options.trace.empty();
  std::deque<Timeline> timelines(traces ? to_size(running.ranks) : 0);  // outlive the communicators that they record
  return meshwise::run<fabrics<shared_memory, thread>>(running, [&](Communicator& world) {
    run_rank(world, job, traces ? &timelines[to_size(world.rank())] : nullptr);
  });
}

}  // namespace gpt

int main(int count, char** arguments) {
  bool speaks = true;  // of the processes that a launcher has started, the first one
  const auto refuse = [&](int code, const char* why) {
    if (speaks) std::fprintf(stderr, "gpt: %s\n", why);
    return code;
  };
  try {
    speaks = meshwise::shared_memory::rank() <= 0;
    const gpt::Options options = gpt::parse_options(count, arguments, meshwise::shared_memory::size());
    if (!options.help) return gpt::run(options);
    if (speaks) std::fputs(gpt::help_text(arguments[0]).c_str(), stdout);
    return gpt::all_written() ? 0 : refuse(1, gpt::not_written);
  } catch (const gpt::UsageError& error) {
    return refuse(2, error.what());
  } catch (const std::exception& error) {
    return refuse(1, error.what());
  }
}
