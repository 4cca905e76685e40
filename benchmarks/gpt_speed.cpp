// SPDX-License-Identifier: Apache-2.0
// How fast examples/gpt trains: on one rank beside plain C (plain_gpt.c) with the same matrix products, and on two
// ranks beside two programs of one rank. What is compared is alternated, so that a busy machine slows both.
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../examples/gpt/trainer.hpp"
#include "meshwise/blas/gemm.hpp"
#include "meshwise/fabric/thread/launch.hpp"
#include "plain_gpt.h"

namespace {

using namespace meshwise;

struct Failure {
  std::string what;
};

struct Options {
  int pairs = 15;
  bool check = false;  ///< compare the losses only
  bool two_ranks = true;
  double least_seconds = 0.25;  ///< of one turn
  std::vector<plain_gpt_sizes> sizes;
};

constexpr std::uint64_t seed = 1;
constexpr plain_gpt_adamw adamw{2e-3, 0.9, 0.95, 1e-8, 0.1, 1.0};

/// Half noise, half a rule that can be learnt: a function of the step and the position.
std::int32_t token(const plain_gpt_sizes& s, std::uint64_t step, std::size_t sequence, std::size_t position) {
  const std::uint64_t noise = random_bits(stream_seed(77, step), sequence * 100'000 + position);
  return static_cast<std::int32_t>((noise % 2 == 0 ? noise / 2 : sequence + 3 * position) % s.vocab);
}

/// Seconds that pass, and those that the calling thread computes: on a busy machine the latter tell more.
struct Clock {
  double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);

  static double now(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  double wall_since() const { return now(CLOCK_MONOTONIC) - wall; }
  double cpu_since() const { return now(CLOCK_THREAD_CPUTIME_ID) - cpu; }
};

/// Products that note how long they computed, per thread.
struct Noted {
  static inline thread_local double seconds = 0, operations = 0;

  static const Gemm*& real() {
    static const Gemm* chosen = &blas::best_gemm();
    return chosen;
  }
  static const Gemm& products() {
    static constexpr auto timed = []<class T>(const GemmCall<T>& call) {
      const double begin = Clock::now(CLOCK_THREAD_CPUTIME_ID);
      (*real())(call);
      seconds += Clock::now(CLOCK_THREAD_CPUTIME_ID) - begin;
      operations += 2.0 * static_cast<double>(call.m) * static_cast<double>(call.n) * static_cast<double>(call.k);
    };
    static constexpr Gemm table{[](const GemmCall<float>& call) { timed(call); },
                                [](const GemmCall<double>& call) { timed(call); }, "noted"};
    return table;
  }
};

/// The example's trainer on a mesh of dp ranks, each of which has s.batch sequences.
class Trained {
 public:
  Trained(Communicator& world, const plain_gpt_sizes& s, const Gemm& products)
      : s_(s),
        mesh_(world, {world.size(), 1, 1}, &products),
        trainer_(gpt::make_trainer(mesh_, sizes(s), training())) {}

  double step() {
    const std::size_t all = s_.batch * static_cast<std::size_t>(mesh_.size<dp>());
    const auto tokens = [&](std::size_t shift) {
      return generate<gpt::Tokens>(mesh_, {all, s_.sequence}, [&](const Index<gpt::Tokens::dims>& i) {
        return token(s_, step_, i.position<batch>(), i.position<seq>() + shift);
      });
    };
    const gpt::Batch given{tokens(0), tokens(1)};
    ++step_;
    return trainer_->step(given).loss;
  }

 private:
  static gpt::Sizes sizes(const plain_gpt_sizes& s) {
    return {s.vocab, s.sequence, s.hidden, s.heads, s.hidden / s.heads, s.ffn, s.layers};
  }
  static gpt::Training training() {
    gpt::Training t;
    t.adamw.learning_rate = adamw.learning_rate;
    t.adamw.beta1 = adamw.beta1;
    t.adamw.beta2 = adamw.beta2;
    t.adamw.epsilon = adamw.epsilon;
    t.adamw.weight_decay = adamw.weight_decay;
    t.clip = adamw.clip;
    t.steps = std::uint64_t{1} << 50;  // the cosine has hardly begun
    t.seed = seed;
    return t;
  }

  plain_gpt_sizes s_;
  gpt::Grid mesh_;
  std::unique_ptr<gpt::Trainer> trainer_;
  std::uint64_t step_ = 0;
};

/// The plain trainer, with the parameters that the example draws.
class Plain {
 public:
  explicit Plain(const plain_gpt_sizes& s) : s_(s), gpt_(plain_gpt_new(&s)) {
    if (gpt_ == nullptr) throw Failure{"no memory for the plain trainer"};
    const std::size_t h = s.hidden;
    const double residual = 0.02 / std::sqrt(2.0 * static_cast<double>(std::max<std::size_t>(s.layers, 1)));
    std::uint64_t stream = 0;  // the number of the parameter in the order of gpt::each
    // Columns [column, column + width) of a parameter with rows of `of` elements.
    const auto draw = [&](int kind, std::size_t layer, double deviation, std::size_t column, std::size_t width,
                          std::size_t of) {
      std::size_t size = 0;
      float* w = plain_gpt_parameter(gpt_, kind, layer, &size);
      const std::uint64_t own = stream_seed(seed, stream++);
      for (std::size_t i = 0; i < size / of * width; ++i) {
        w[i / width * of + column + i % width] = static_cast<float>(deviation * normal(own, i));
      }
    };
    const auto constant = [&](int kind, std::size_t layer, float value) {
      std::size_t size = 0;
      float* w = plain_gpt_parameter(gpt_, kind, layer, &size);
      std::fill(w, w + size, value);
      ++stream;
    };
    draw(PLAIN_GPT_EMBEDDING, 0, 0.02, 0, h, h);
    draw(PLAIN_GPT_POSITION, 0, 0.02, 0, h, h);
    for (std::size_t l = 0; l < s.layers; ++l) {
      constant(PLAIN_GPT_NORM1_GAIN, l, 1);
      constant(PLAIN_GPT_NORM1_BIAS, l, 0);
      for (std::size_t part = 0; part < 3; ++part) {
        draw(PLAIN_GPT_QKV_WEIGHT, l, 0.02, part * h, h, 3 * h);
        ++stream;  // its bias
      }
      draw(PLAIN_GPT_OUTPUT_WEIGHT, l, residual, 0, h, h);
      constant(PLAIN_GPT_OUTPUT_BIAS, l, 0);
      constant(PLAIN_GPT_NORM2_GAIN, l, 1);
      constant(PLAIN_GPT_NORM2_BIAS, l, 0);
      draw(PLAIN_GPT_UP_WEIGHT, l, 0.02, 0, s.ffn, s.ffn);
      constant(PLAIN_GPT_UP_BIAS, l, 0);
      draw(PLAIN_GPT_DOWN_WEIGHT, l, residual, 0, h, h);
      constant(PLAIN_GPT_DOWN_BIAS, l, 0);
    }
    constant(PLAIN_GPT_FINAL_GAIN, 0, 1);
    constant(PLAIN_GPT_FINAL_BIAS, 0, 0);
  }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;
  ~Plain() { plain_gpt_free(gpt_); }

  double step() {
    std::vector<std::int32_t> tokens, targets;
    for (std::size_t b = 0; b < s_.batch; ++b) {
      for (std::size_t p = 0; p < s_.sequence; ++p) {
        tokens.push_back(token(s_, step_, b, p));
        targets.push_back(token(s_, step_, b, p + 1));
      }
    }
    ++step_;
    return plain_gpt_step(gpt_, tokens.data(), targets.data(), step_, &adamw);
  }

  std::vector<plain_gpt_product> products() const {
    std::size_t count = 0;
    const plain_gpt_product* first = plain_gpt_products(gpt_, &count);
    return {first, first + count};
  }

 private:
  plain_gpt_sizes s_;
  plain_gpt* gpt_;
  std::uint64_t step_ = 0;
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double operations_of(const plain_gpt_product& p) {
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
}

/// The middle time of a product alone, on matrices that it has just used.
double alone(const plain_gpt_product& p) {
  const auto elements = [](int rows, int leading) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(leading);
  };
  const std::vector<float> a(elements(p.transpose_a != 0 ? p.k : p.m, p.lda), 0.5F);
  const std::vector<float> b(elements(p.transpose_b != 0 ? p.n : p.k, p.ldb), 0.25F);
  std::vector<float> c(elements(p.m, p.ldc));
  std::vector<double> times;
  const Clock all;
  while (times.size() < 5 || (times.size() < 200 && all.wall_since() < 0.1)) {
    std::fill(c.begin(), c.end(), 0.0F);
    const Clock one;
    plain_gpt_multiply(&p, a.data(), b.data(), c.data());
    times.push_back(one.cpu_since());
  }
  return median(std::move(times));
}

void check_losses(Communicator& world, const plain_gpt_sizes& s, int steps) {
  Trained here(world, s, blas::best_gemm());
  Plain there(s);
  double worst = 0;
  for (int i = 0; i < steps; ++i) {
    const double mine = here.step(), other = there.step();
    worst = std::max(worst, std::abs(mine - other) / other);
    if (i == 0 || i + 1 == steps) std::printf("  step %2d: loss %.7f, plain C %.7f\n", i + 1, mine, other);
  }
  const double limit = 2e-4;  // of f32, after steps that let it grow
  if (!(worst <= limit)) throw Failure{"the two train differently: losses differ by up to " + std::to_string(worst)};
  std::printf("  the largest relative difference is %.1e (limit %.0e)\n", worst, limit);
}

/// Both trainers by turns on one thread.
void one_rank(Communicator& world, const plain_gpt_sizes& s, const Options& options) {
  Trained trained(world, s, Noted::products());
  Plain plain(s);
  const double tokens = static_cast<double>(s.batch * s.sequence);
  trained.step();
  plain.step();
  const Clock one;
  plain.step();
  const int steps = std::max(1, static_cast<int>(options.least_seconds / one.wall_since()));
  std::vector<double> wall_ratio, cpu_ratio, trained_wall, plain_wall;
  Noted::seconds = Noted::operations = 0;
  const std::vector<plain_gpt_product> before = plain.products();
  double trained_seconds = 0, plain_seconds = 0;
  for (int pair = 0; pair < options.pairs; ++pair) {
    const Clock a;
    for (int i = 0; i < steps; ++i) trained.step();
    const double wall_a = a.wall_since(), cpu_a = a.cpu_since();
    const Clock b;
    for (int i = 0; i < steps; ++i) plain.step();
    const double wall_b = b.wall_since(), cpu_b = b.cpu_since();
    wall_ratio.push_back(wall_a / wall_b);
    cpu_ratio.push_back(cpu_a / cpu_b);
    trained_wall.push_back(wall_a);
    plain_wall.push_back(wall_b);
    trained_seconds += cpu_a;
    plain_seconds += cpu_b;
  }
  std::vector<plain_gpt_product> products = plain.products();
  double operations = 0, in_products = 0, products_alone = 0;
  for (std::size_t i = 0; i < products.size(); ++i) {
    plain_gpt_product& p = products[i];
    p.calls -= before[i].calls;
    p.seconds -= before[i].seconds;
    operations += operations_of(p) * static_cast<double>(p.calls);
    in_products += p.seconds;
    products_alone += alone(p) * static_cast<double>(p.calls);
  }
  const plain_gpt_product square{0, 0, 0, 1024, 1024, 1024, 1024, 1024, 1024, 1, 0};
  const auto rate = [&](const std::vector<double>& walls) { return tokens * steps / median(walls); };
  std::printf("                     tokens/s   in products   GFLOP/s in products\n");
  std::printf("  examples/gpt   %12.0f %12.0f %% %21.1f\n", rate(trained_wall), 100 * Noted::seconds / trained_seconds,
              Noted::operations / Noted::seconds * 1e-9);
  std::printf("  plain C        %12.0f %12.0f %% %21.1f\n", rate(plain_wall), 100 * in_products / plain_seconds,
              operations / in_products * 1e-9);
  std::printf("  the products of plain C, each alone: %.1f GFLOP/s, of which it reaches %.0f %%; 1024 x 1024: %.1f\n",
              operations / products_alone * 1e-9, 100 * products_alone / in_products,
              operations_of(square) / alone(square) * 1e-9);
  std::printf("  time of examples/gpt / plain C, median of %d pairs: wall %.2f, CPU %.2f (limit 1.3)\n", options.pairs,
              median(wall_ratio), median(cpu_ratio));
}

/// A process whose ranks each take `steps` steps when their pipe says so.
class Workers {
 public:
  struct Turn {
    double wall = 0, cpu = 0;
  };

  Workers(int ranks, const plain_gpt_sizes& s) : ranks_(static_cast<std::size_t>(ranks)) {
    for (Rank& rank : ranks_) {
      if (pipe(rank.orders) != 0 || pipe(rank.results) != 0) throw Failure{"no pipe"};
    }
    process_ = fork();
    if (process_ < 0) throw Failure{"no process"};
    if (process_ > 0) return;
    launch(ranks, [&](Communicator& world) {
      const Rank& rank = ranks_[static_cast<std::size_t>(world.rank())];
      Trained trained(world, s, *Noted::real());
      for (int steps = 0; read(rank.orders[0], &steps, sizeof steps) == sizeof steps && steps > 0;) {
        const Clock clock;
        for (int i = 0; i < steps; ++i) trained.step();
        const Turn turn{clock.wall_since(), clock.cpu_since()};
        if (write(rank.results[1], &turn, sizeof turn) != sizeof turn) return;
      }
    });
    std::_Exit(0);
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() {
    order(0);
    waitpid(process_, nullptr, 0);
    for (Rank& rank : ranks_) {
      for (const int file : {rank.orders[0], rank.orders[1], rank.results[0], rank.results[1]}) close(file);
    }
  }

  void order(int steps) {
    for (const Rank& rank : ranks_) {
      if (write(rank.orders[1], &steps, sizeof steps) != sizeof steps) return;
    }
  }
  /// The longest wall and the sum of the CPU seconds.
  Turn result() {
    Turn all;
    for (const Rank& rank : ranks_) {
      Turn turn;
      if (read(rank.results[0], &turn, sizeof turn) != sizeof turn) throw Failure{"a worker has ended"};
      all.wall = std::max(all.wall, turn.wall);
      all.cpu += turn.cpu;
    }
    return all;
  }

 private:
  struct Rank {
    int orders[2], results[2];
  };
  std::vector<Rank> ranks_;
  pid_t process_ = 0;
};

void two_ranks(const plain_gpt_sizes& s, const Options& options) {
  const double tokens = static_cast<double>(s.batch * s.sequence);
  Workers together(2, s), first(1, s), second(1, s);
  together.order(1);
  together.result();
  first.order(1);
  first.result();
  second.order(1);
  second.result();
  first.order(1);
  const int steps = std::max(1, static_cast<int>(options.least_seconds / first.result().wall));
  std::vector<double> wall_ratio, cpu_ratio, both, apart;
  for (int pair = 0; pair < options.pairs; ++pair) {
    together.order(steps);
    const Workers::Turn two = together.result();
    first.order(steps);
    second.order(steps);
    const Workers::Turn one = first.result(), other = second.result();
    const double rate = 2 * tokens * steps / two.wall;
    const double rates = tokens * steps * (1 / one.wall + 1 / other.wall);
    both.push_back(rate);
    apart.push_back(rates);
    wall_ratio.push_back(rate / rates);
    cpu_ratio.push_back((one.cpu + other.cpu) / two.cpu);
  }
  std::printf("  two ranks (dp 2): %.0f tokens/s; two programs of one rank: %.0f\n", median(both), median(apart));
  std::printf("  tokens/s of two ranks / of two programs, median of %d pairs: wall %.2f, CPU %.2f (limit 0.9)\n",
              options.pairs, median(wall_ratio), median(cpu_ratio));
}

/// Runs something in a process of its own, so that this one stays without threads.
void apart(const std::function<void()>& run) {
  std::fflush(stdout);
  const pid_t process = fork();
  if (process < 0) throw Failure{"no process"};
  if (process == 0) {
    int code = 0;
    try {
      run();
    } catch (const Failure& failure) {
      std::fprintf(stderr, "gpt_speed: %s\n", failure.what.c_str());
      code = 1;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "gpt_speed: %s\n", error.what());
      code = 1;
    }
    std::fflush(stdout);
    std::_Exit(code);
  }
  int status = 0;
  waitpid(process, &status, 0);
  if (status != 0) throw Failure{"that went wrong"};
}

int run(const Options& options) {
  if (!options.check) {
    const std::string kernels = blas::kernel_name();
    std::printf("matrix products: plain C by CBLAS%s, examples/gpt by %s\n\n",
                kernels.empty() ? "" : (" (kernels for " + kernels + ")").c_str(), Noted::real()->name);
  }
  for (const plain_gpt_sizes& s : options.sizes) {
    std::printf(
        "hidden %zu, %zu heads, %zu layers, ffn %zu, sequence %zu, vocab %zu, %zu sequences per rank and step\n",
        s.hidden, s.heads, s.layers, s.ffn, s.sequence, s.vocab, s.batch);
    apart([&] {
      launch(1, [&](Communicator& world) {
        check_losses(world, s, options.check ? 10 : 3);
        if (!options.check) one_rank(world, s, options);
      });
    });
    if (!options.check && options.two_ranks) apart([&] { two_ranks(s, options); });
    std::printf("\n");
  }
  return 0;
}

/// A release of OpenBLAS that is older than the processor takes slow kernels; told so in time, it takes better ones. It
/// reads the environment when it is loaded: the program begins anew.
void choose_kernels(char** arguments) {
#if defined(__x86_64__)
  if (blas::fits_this_processor() || std::getenv("OPENBLAS_CORETYPE") != nullptr) return;
  setenv("OPENBLAS_CORETYPE", __builtin_cpu_supports("avx512f") ? "SkylakeX" : "Haswell", 1);
  execv("/proc/self/exe", arguments);
#else
  static_cast<void>(arguments);
#endif
}

}  // namespace

int main(int count, char** arguments) {
  choose_kernels(arguments);
  Options options;
  plain_gpt_sizes own{256, 128, 128, 4, 0, 4, 12};
  bool given = false;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    const auto value = [&] {
      const long n = i + 1 < count ? std::strtol(arguments[++i], nullptr, 10) : 0;
      if (n < 1) {
        std::fprintf(stderr, "gpt_speed: %s needs a number of at least 1\n", name.c_str());
        std::exit(2);
      }
      return static_cast<std::size_t>(n);
    };
    const std::pair<const char*, std::size_t*> sizes[] = {
        {"--vocab", &own.vocab}, {"--sequence", &own.sequence}, {"--hidden", &own.hidden}, {"--heads", &own.heads},
        {"--ffn", &own.ffn},     {"--layers", &own.layers},     {"--batch", &own.batch}};
    const auto* const size =
        std::find_if(std::begin(sizes), std::end(sizes), [&](const auto& s) { return name == s.first; });
    if (size != std::end(sizes)) {
      *size->second = value();
      given = true;
    } else if (name == "--pairs") {
      options.pairs = static_cast<int>(value());
    } else if (name == "--check") {
      options.check = true;
    } else if (name == "--one-rank") {
      options.two_ranks = false;
    } else if (name == "--own-products") {
      Noted::real() = &plain_gemm();
    } else {
      std::printf(
          "usage: gpt_speed [--check] [--pairs N] [--one-rank] [--own-products] [--vocab N] [--sequence N] [--hidden "
          "N]\n"
          "                 [--heads N] [--ffn N] [--layers N] [--batch N]\n"
          "Trains the model of examples/gpt and the same model in plain C by turns, and compares how long they take;\n"
          "then two ranks beside two programs of one rank. --check: compares the losses only. --own-products: the\n"
          "example multiplies with plain_gemm() instead of the BLAS that plain C has.\n");
      if (name == "--help") return 0;
      std::fprintf(stderr, "gpt_speed: unknown option %s\n", name.c_str());
      return 2;
    }
  }
  if (own.ffn == 0) own.ffn = 4 * own.hidden;
  if (own.hidden % own.heads != 0) {
    std::fprintf(stderr, "gpt_speed: --hidden %zu is no multiple of --heads %zu\n", own.hidden, own.heads);
    return 2;
  }
  if (given) {
    options.sizes = {own};
  } else if (options.check) {
    options.sizes = {{61, 24, 32, 4, 96, 2, 3}};
  } else {
    options.sizes = {own, {256, 128, 384, 6, 1536, 4, 8}};
  }
  try {
    return run(options);
  } catch (const Failure&) {
    return 1;  // the process that failed has said why
  }
}
