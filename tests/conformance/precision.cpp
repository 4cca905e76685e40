// SPDX-License-Identifier: Apache-2.0
// Sums of floats against fp64: the bound that all_reduce states, on every way between ranks and with every algorithm,
// the same bits on all ranks, and the bits of the definition wherever one rank combines all contributions at once.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "../support/run.hpp"
#include "../support/sanitized.hpp"
#include "factors.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/reduce.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/collective/scan.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/schedule/catalogue.hpp"
#include "meshwise/schedule/verify.hpp"

namespace {

using namespace meshwise;

constexpr int most = 8;               ///< ranks
constexpr std::size_t period = 509;   ///< values repeat, with a prime period
constexpr std::size_t families = 10;  ///< of values, see `contribution`

/// How elements of T round.
template <class T>
struct Format;
template <>
struct Format<bf16> {
  static constexpr int digits = 8, least = -133;
  static constexpr double largest = 0x1.fep127;
  static bf16 nan(std::uint64_t payload) {
    return bf16::from_bits(static_cast<std::uint16_t>(0x7fc0 | (payload & 0x803f)));
  }
};
template <>
struct Format<fp16> {
  static constexpr int digits = 11, least = -24;
  static constexpr double largest = 65504;
  static fp16 nan(std::uint64_t payload) {
    return fp16::from_bits(static_cast<std::uint16_t>(0x7e00 | (payload & 0x81ff)));
  }
};
template <>
struct Format<float> {
  static constexpr int digits = 24, least = -149;
  static constexpr double largest = std::numeric_limits<float>::max();
  static float nan(std::uint64_t payload) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(0x7fc00000 | (payload & 0x803fffff)));
  }
};

template <>
struct Format<f8e5m2> {
  static constexpr int digits = 3, least = -16;
  static constexpr double largest = 57344;
  static f8e5m2 nan(std::uint64_t payload) {
    return f8e5m2::from_bits(static_cast<std::uint8_t>(0x7e | (payload & 0x81)));
  }
};
template <>
struct Format<f8e4m3> {
  static constexpr int digits = 4, least = -9;
  static constexpr double largest = 448;  // and nothing infinite: what is larger is NaN
  static f8e4m3 nan(std::uint64_t payload) {
    return f8e4m3::from_bits(static_cast<std::uint8_t>(0x7f | (payload & 0x80)));
  }
};

double wide(float value) { return static_cast<double>(value); }

/// The contribution of a rank to entry i: one family of values after another.
template <class T>
T contribution(int rank, int ranks, std::size_t i) {
  using F = Format<T>;
  const std::uint64_t r = conformance::mixed(7, static_cast<std::uint64_t>(rank), i);
  const std::uint64_t common = conformance::mixed(8, 99, i);
  const auto chosen = static_cast<int>(common % static_cast<std::uint64_t>(ranks));
  const double unit = std::ldexp(static_cast<double>(r >> 11), -52) - 1;  // of [-1, 1)
  const double sign = (r & 1) != 0 ? -1 : 1;
  const double top = std::ldexp(1.0, std::ilogb(F::largest));
  switch (i % families) {
    case 0: return T(unit);
    case 1:  // large ones cancel: the last rank takes the first one's back
      if (rank == 0 || rank == ranks - 1) {
        const double large = std::ldexp(1 + static_cast<double>(common % 64) / 64, 9);
        return T(ranks == 1 ? unit : rank == 0 ? large : -large);
      }
      return T(unit);
    case 2: return T(rank == chosen ? std::ldexp(1.0, F::digits) : 1.0);  // one that swallows the others one by one
    case 3: return T(sign * std::ldexp(static_cast<double>(r / 2 % 8), F::least));
    case 4: return T(rank % 2 == 0 ? top : 1.5 * unit);  // too much for T, where there are many
    case 5: return T(top * (rank == 0 ? 1 : rank == 1 ? 0.9 : rank == 2 ? -1 : unit / 16));  // and back again
    case 6:
      if (rank == chosen || common % 3 == 0) return F::nan(r);
      return T(unit);
    case 7:
      if (rank == chosen) return T(common % 2 == 0 ? std::numeric_limits<float>::infinity() : unit);
      if (rank == (chosen + 1) % ranks) return T(-std::numeric_limits<float>::infinity());
      return T(unit);
    case 8: return T(common % 4 != 0 ? -0.0F : rank == chosen ? 0.0F : -0.0F);
    default: return T(1 + std::ldexp(static_cast<double>(r % 3), -F::digits + 1));  // ties
  }
}

/// What is known about the sum of the first contributions to one entry.
struct Sum64 {
  double sum = 0;  ///< of what is finite
  double magnitude = 0;
  bool nan = false, plus = false, minus = false;  ///< infinities
  std::uint32_t fold = 0;                         ///< the bits of the definition: one fold in fp32, rounded once
  std::uint32_t steps = 0;                        ///< those of a scan, which rounds every prefix
};

template <class T>
std::uint32_t bits_of(T value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

/// One addition as the kernels define it, NaN included.
float added(float a, float b) {
  const float sum = a + b;
  if (sum == sum) return sum;
  std::uint32_t bits = 0x7fc00000;
  if (a != a) bits |= std::bit_cast<std::uint32_t>(a);
  if (b != b) bits |= std::bit_cast<std::uint32_t>(b);
  return std::bit_cast<float>(bits);
}

/// All of one element type, compiled for each; what judges it is compiled once.
struct Kind {
  const char* name;
  std::size_t size;
  int digits;
  double largest;
  std::vector<std::vector<std::byte>> inputs;  ///< by rank: one period
  std::vector<std::vector<Sum64>> sums;        ///< by number of contributors and entry
  double (*value)(const std::byte* at);
  void (*call)(Communicator& communicator, Operation operation, void* in, void* out, std::size_t count, bool in_place,
               const CollectiveOptions& options);
};

constexpr int root = 0;

template <class T>
void call(Communicator& communicator, Operation operation, void* in, void* out, std::size_t count, bool in_place,
          const CollectiveOptions& options) {
  const std::span<T> from(static_cast<T*>(in), count), to(static_cast<T*>(out), count);
  const auto p = static_cast<std::size_t>(communicator.size()), r = static_cast<std::size_t>(communicator.rank());
  const std::size_t begin = count * r / p, end = count * (r + 1) / p;
  const std::span<const T> source(in_place ? to : from);
  switch (operation) {
    case Operation::all_reduce: return all_reduce(communicator, source, to, options);
    case Operation::reduce_scatter:
      if (in_place) {
        reduce_scatter(communicator, to, options);
        return;
      }
      return reduce_scatter(communicator, source, to.subspan(begin, end - begin), options);
    case Operation::reduce: return reduce(communicator, source, to, root, options);
    case Operation::inclusive_scan: return inclusive_scan(communicator, source, to, options);
    default: return exclusive_scan(communicator, source, to, options);
  }
}

template <class T>
Kind kind_of(const char* name, int ranks) {
  Kind kind{name,
            sizeof(T),
            Format<T>::digits,
            Format<T>::largest,
            {},
            {},
            [](const std::byte* at) {
              T value;
              std::memcpy(&value, at, sizeof(T));
              return wide(static_cast<float>(value));
            },
            call<T>};
  kind.sums.assign(1, std::vector<Sum64>(period));
  for (auto& one : kind.sums[0]) one.fold = one.steps = bits_of(T(0.0F));
  std::vector<float> folds(period), steps(period);
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::byte> table(period * sizeof(T));
    std::vector<Sum64> sums = kind.sums.back();
    for (std::size_t i = 0; i < period; ++i) {
      const T x = contribution<T>(rank, ranks, i);
      std::memcpy(table.data() + i * sizeof(T), &x, sizeof(T));
      const auto value = static_cast<float>(x);
      folds[i] = rank == 0 ? value : added(folds[i], value);
      steps[i] = rank == 0 ? value : static_cast<float>(T(added(steps[i], value)));
      Sum64& sum = sums[i];
      sum.fold = rank == 0 ? bits_of(x) : bits_of(T(folds[i]));
      sum.steps = rank == 0 ? bits_of(x) : bits_of(T(steps[i]));
      if (std::isnan(value)) sum.nan = true;
      if (std::isinf(value)) (value > 0 ? sum.plus : sum.minus) = true;
      if (!std::isfinite(value)) continue;
      sum.sum += wide(value);
      sum.magnitude += std::fabs(wide(value));
    }
    kind.inputs.push_back(std::move(table));
    kind.sums.push_back(std::move(sums));
  }
  return kind;
}

/// One call on all ranks.
struct Trial {
  const Kind* kind;
  Operation operation;
  CollectiveOptions options;
  std::size_t count;
  bool in_place;
  int roundings;   ///< of a contribution, at most
  bool canonical;  ///< one rank combines all at once, or a scan every prefix
};

std::string text(const Trial& trial, int ranks) {
  return std::string(trial.kind->name) + " " + operation_name(trial.operation) + " " +
         algorithm_name(trial.options.algorithm) + " on " + std::to_string(ranks) + " ranks, " +
         std::to_string(trial.count) + " elements, " + std::to_string(trial.options.lanes) + " lanes" +
         (trial.in_place ? ", in place" : "") + (trial.options.reproducible ? ", reproducible" : "") +
         (trial.options.wire.set ? ", in f32" : "");
}

/// The bound that is documented at all_reduce, of the sum of `contributors` values.
struct Bound {
  double factor = 0;  ///< times the sum of the absolute values
  double room = 0;    ///< up to which no partial result becomes infinite
  double largest = 0;
  bool infinite = true;  ///< there are elements that are

  Bound(const Trial& trial, int contributors)
      : largest(trial.kind->largest), infinite(largest != Format<f8e4m3>::largest) {
    const bool wire = trial.options.wire.set;
    const double u = std::ldexp(1.0, -trial.kind->digits), v = 0x1p-24;
    const double stored = std::pow(1 + (wire ? v : u), trial.roundings) * (wire ? 1 + u : 1);
    // And units of fp64 for what it is compared with.
    factor = stored * std::pow(1 + v, contributors > 0 ? contributors - 1 : 0) - 1 + 0x1p-48;
    // Partial results are stored in the element type, or in fp32 where none are.
    const bool in_f32 = wire || trial.roundings <= 1;
    room = in_f32 ? static_cast<double>(std::numeric_limits<float>::max()) : largest;
  }

  bool holds(const Sum64& sum, double result) const {
    if (sum.nan || (sum.plus && sum.minus)) return std::isnan(result);
    const double bound = sum.magnitude * factor;
    if (sum.magnitude + bound > room) return true;  // some partial result may be infinite
    if (sum.plus || sum.minus) return std::isinf(result) && (result > 0) == sum.plus;
    if (!std::isfinite(result)) {
      return std::fabs(sum.sum) + bound > largest && (std::isnan(result) ? !infinite : (result > 0) == (sum.sum > 0));
    }
    return std::fabs(result - sum.sum) <= bound;
  }
};

/// What one rank has to say about one trial: "ok", with a hash of what all ranks must have alike, or what is wrong.
std::string judge(Communicator& communicator, const Trial& trial, std::byte* in, std::byte* out) {
  const Kind& kind = *trial.kind;
  const std::size_t bytes = trial.count * kind.size;
  const int rank = communicator.rank(), ranks = communicator.size();
  std::byte* const source = trial.in_place ? out : in;
  const auto& table = kind.inputs[static_cast<std::size_t>(rank)];
  for (std::size_t done = 0; done < bytes; done += table.size()) {
    std::memcpy(source + done, table.data(), std::min(table.size(), bytes - done));
  }
  if (!trial.in_place) std::memset(out, 0x5a, bytes);
  kind.call(communicator, trial.operation, in, out, trial.count, trial.in_place, trial.options);
  const auto p = static_cast<std::size_t>(ranks), r = static_cast<std::size_t>(rank);
  std::size_t begin = 0, end = trial.count;
  std::size_t at = 0;  // of element `begin`, in the output
  int contributors = ranks;
  switch (trial.operation) {
    case Operation::reduce_scatter:
      begin = trial.count * r / p;
      end = trial.count * (r + 1) / p;
      at = begin;
      break;
    case Operation::reduce:
      if (rank != root) return "ok";
      break;
    case Operation::inclusive_scan: contributors = rank + 1; break;
    case Operation::exclusive_scan: contributors = rank; break;
    default: break;
  }
  const bool scan = trial.operation == Operation::inclusive_scan || trial.operation == Operation::exclusive_scan;
  const bool exact = trial.canonical && !trial.options.wire.set;
  const auto& sums = kind.sums[static_cast<std::size_t>(contributors)];
  const Bound bound(trial, contributors);
  std::uint64_t hash = 0;
  for (std::size_t i = begin; i < end; ++i, ++at) {
    const Sum64& sum = sums[i % period];
    const double result = kind.value(out + at * kind.size);
    std::uint32_t bits = 0;
    std::memcpy(&bits, out + at * kind.size, kind.size);
    hash = (hash ^ bits) * 0x100000001b3U;
    const std::uint32_t wanted = scan ? sum.steps : sum.fold;
    if ((exact && bits != wanted) || (contributors > 0 && !bound.holds(sum, result))) {
      char line[160];
      std::snprintf(line, sizeof line,
                    "rank %d, element %zu: %.9g = 0x%x, by the definition 0x%x, by fp64 %.9g of %.9g", rank, i, result,
                    static_cast<unsigned>(bits), static_cast<unsigned>(wanted), sum.sum, sum.magnitude);
      return line;
    }
  }
  return trial.operation == Operation::all_reduce ? "ok " + std::to_string(hash) : "ok";
}

enum class Means { memory, foreign, messages };

/// All trials of a number of ranks, on a way between them.
std::vector<Trial> trials(const std::vector<Kind>& kinds, int ranks, Means means, std::size_t capacity) {
  std::vector<Trial> result;
  const Catalogue catalogue{Topology::flat(ranks)};
  std::size_t turn = static_cast<std::size_t>(ranks);
  for (const Kind& kind : kinds) {
    for (const Operation operation : {Operation::all_reduce, Operation::reduce_scatter, Operation::reduce,
                                      Operation::inclusive_scan, Operation::exclusive_scan}) {
      const auto add = [&](const CollectiveOptions& options, int roundings, bool canonical, bool in_place) {
        // Fewer elements than ranks, ragged blocks, few enough for a rendezvous, and more.
        for (const std::size_t count : {std::size_t{3}, std::size_t{517}, std::size_t{5003}, capacity}) {
          const bool named = options.algorithm != Algorithm::automatic;
          if (named && count == capacity) continue;
          if (++turn % (building::sanitized ? 8 : named ? 2 : 1) != 0) continue;
          result.push_back(Trial{&kind, operation, options, count, in_place, roundings, canonical});
        }
      };
      const bool scan = operation == Operation::inclusive_scan || operation == Operation::exclusive_scan;
      CollectiveOptions options;
      // By messages the cheapest algorithm is taken, and none is worse than a chain of all ranks.
      const bool once = means != Means::messages || ranks < 3;
      add(options, scan ? ranks : once ? 1 : ranks, means != Means::messages || ranks == 1, turn++ % 2 == 0);
      options.reproducible = true;
      add(options, scan ? ranks : 1, true, turn++ % 2 == 0);
      options.reproducible = false;
      if (kind.size < 4) {
        options.wire = ElementKind::f32;
        add(options, ranks, false, turn++ % 2 == 0);
        options.wire = {};
      }
      for (int k = 1; k + 1 < algorithm_count; ++k) {
        options.algorithm = static_cast<Algorithm>(k);
        const AnyGenerator generator = catalogue.find(options.algorithm);
        Shape shape{operation, ranks, 0, true};
        bool in_place = turn++ % 2 == 0;
        shape.in_place = in_place || operation == Operation::reduce;
        if (!generator.empty() && !generator.supports(shape)) shape.in_place = in_place = false;
        if (generator.empty() || !generator.supports(shape)) continue;
        const Verdict verdict = verify(generator, shape);
        REQUIRE((verdict.ok() && verdict.identical_on_all_ranks));
        options.lanes = turn % 3 == 0 ? 3 : 0;
        add(options, verdict.roundings, verdict.canonical, in_place);
      }
    }
  }
  return result;
}

/// Memory that forks share, in which each rank writes what it has to say.
class Board {
 public:
  explicit Board(int ranks)
      : bytes_(room * static_cast<std::size_t>(ranks)),
        memory_(static_cast<char*>(
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    REQUIRE(memory_ != MAP_FAILED);
  }
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board() { munmap(memory_, bytes_); }

  void put(int rank, const std::string& said) {
    std::memcpy(memory_ + room * static_cast<std::size_t>(rank), said.data(), std::min(said.size(), room - 1));
  }
  std::vector<std::string> lines(int rank) const {
    std::vector<std::string> result(1);
    for (const char* at = memory_ + room * static_cast<std::size_t>(rank); *at != 0; ++at) {
      if (*at == '\n') {
        result.emplace_back();
      } else {
        result.back() += *at;
      }
    }
    result.pop_back();
    return result;
  }

 private:
  static constexpr std::size_t room = std::size_t{1} << 20;

  std::size_t bytes_;
  char* memory_;
};

/// shared: buffers that all ranks address, where there are such.
void run_trials(Communicator& communicator, const std::vector<Trial>& all, bool shared, Board& board) {
  std::size_t bytes = 64;
  for (const Trial& trial : all) bytes = std::max(bytes, trial.count * trial.kind->size + 64);
  const MemorySource* const source = communicator.endpoint().memory();
  Heap heap = source != nullptr && shared ? Heap(*source) : Heap();
  Storage in = heap.allocate(bytes), out = heap.allocate(bytes);
  // Elsewhere than at the beginning of a vector or a line.
  const std::size_t shift = 8 * static_cast<std::size_t>(communicator.rank() % 3);
  std::string said;
  for (const Trial& trial : all) {
    said += judge(communicator, trial, in.data() + shift, out.data() + shift) + "\n";
  }
  board.put(communicator.rank(), said);
}

void compare(const char* way, const std::vector<Trial>& all, int ranks, const Board& board) {
  const std::vector<std::string> first = board.lines(0);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<std::string> lines = board.lines(rank);
    REQUIRE(lines.size() == all.size());
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (lines[k].compare(0, 2, "ok") == 0 && lines[k] == first[k]) continue;
      const bool other = lines[k].compare(0, 2, "ok") == 0;
      const std::string found = other ? "rank " + std::to_string(rank) + " has other bits than rank 0" : lines[k];
      const std::string failure = std::string(way) + ": " + text(all[k], ranks) + ": " + found;
      FAIL_CHECK(failure);
      break;
    }
  }
}

template <class Launch>
void check(const char* name, Means means, bool shared, const Launch& launch) {
  for (int ranks = 1; ranks <= most; ranks += building::sanitized ? 3 : 1) {
    std::vector<Kind> kinds;
    kinds.push_back(kind_of<bf16>("bf16", ranks));
    kinds.push_back(kind_of<fp16>("fp16", ranks));
    kinds.push_back(kind_of<float>("f32", ranks));
    kinds.push_back(ranks % 2 == 0 ? kind_of<f8e5m2>("f8e5m2", ranks) : kind_of<f8e4m3>("f8e4m3", ranks));
    const std::vector<Trial> all = trials(kinds, ranks, means, 60013);
    Board board(ranks);
    LaunchOptions options;
    options.deadline = 60;
    options.messages = means == Means::messages;
    options.settings = Settings{};
    launch(ranks, options, [&](Communicator& communicator) { run_trials(communicator, all, shared, board); });
    compare(name, all, ranks, board);
  }
}

const auto threads = [](int ranks, const LaunchOptions& options, const auto& program) {
  launch(ranks, options, program);
};
const auto foreign_threads = [](int ranks, LaunchOptions options, const auto& program) {
  options.foreign = true;
  launch(ranks, options, program);
};
const auto processes = [](int ranks, const LaunchOptions& options, const auto& program) {
  launch_processes(ranks, options, program);
};

}  // namespace

TEST_CASE("sums are as exact as stated, and the same everywhere, between threads") {
  SUBCASE("by memory") { check("threads by memory", Means::memory, true, threads); }
  SUBCASE("with foreign buffers") { check("threads with foreign buffers", Means::foreign, false, foreign_threads); }
  SUBCASE("by messages") { check("threads by messages", Means::messages, true, threads); }
}

TEST_CASE("sums are as exact as stated, and the same everywhere, between processes") {
  SUBCASE("by memory") { check("processes by memory", Means::memory, true, processes); }
  SUBCASE("with private buffers") { check("processes with private buffers", Means::foreign, false, processes); }
  SUBCASE("by messages") { check("processes by messages", Means::messages, true, processes); }
}
