// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/core/element.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/reduction.hpp"

namespace test {

using namespace meshwise;

inline constexpr std::array<std::size_t, 10> sizes{0, 1, 2, 3, 5, 7, 8, 64, 1000, 65537};
/// How ranks are started: what the tests need of LaunchOptions, whose header they need not compile each.
struct Setup {
  bool messages = false;
  double deadline = 600;
  const char* name = "";
  bool progress_thread = false;
};

/// Runs a program on every rank of a group of threads. In support.cpp, once for all tests of the room.
void run_ranks(int ranks, const Setup& setup, void (*program)(const void* context, Communicator& communicator),
               const void* context);

template <class F>
void launch(int ranks, const Setup& setup, const F& program) {
  run_ranks(
      ranks, setup,
      [](const void* context, Communicator& communicator) { (*static_cast<const F*>(context))(communicator); },
      &program);
}
template <class F>
void launch(int ranks, const F& program) {
  launch(ranks, Setup{}, program);
}

/// The same on processes that are forked off.
void run_forks(int ranks, const Setup& setup, void (*program)(const void* context, Communicator& communicator),
               const void* context);

template <class F>
void launch_forks(int ranks, const Setup& setup, const F& program) {
  run_forks(
      ranks, setup,
      [](const void* context, Communicator& communicator) { (*static_cast<const F*>(context))(communicator); },
      &program);
}

inline constexpr Algorithm algorithms[] = {Algorithm::direct, Algorithm::ring};
inline constexpr bool both[] = {false, true};

/// Whether the long products are wanted.
inline bool full() {
  const char* value = std::getenv("MESHWISE_FULL");
  return value != nullptr && std::string_view(value) == "1";
}

/// Fails a rank, and through launch the test.
inline void require(bool good, const std::string& what) {
  if (!good) throw std::runtime_error(what);
}

/// Numbers from a seed, the same on every rank.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()(std::uint64_t below) {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return (z ^ (z >> 31)) % below;
  }

 private:
  std::uint64_t state_;
};

/// Inputs repeat with a prime period, so that a table holds all expected values and a shifted block shows.
inline constexpr std::size_t period = 61;

/// Element i of a rank's input: small, so that every reduction over nine ranks is exact in every element type, in any
/// order. Products are of 1 and 2.
template <class T, class Op>
T value(int rank, std::size_t i) {
  const auto mixed = static_cast<int>((i % period * 7 + static_cast<std::size_t>(rank) * 13) % 11);
  if constexpr (std::is_same_v<Op, Product>) return static_cast<T>(1 + mixed % 2);
  return static_cast<T>(mixed);
}

/// The expected reduction over `ranks` of one period, by plain loops.
template <class T, class Op>
std::vector<T> expected(int ranks) {
  std::vector<T> result;
  for (std::size_t i = 0; i < period; ++i) {
    accumulate_t<T> sum = value<T, Op>(0, i);
    for (int rank = 1; rank < ranks; ++rank) {
      sum = Op::apply(sum, static_cast<accumulate_t<T>>(value<T, Op>(rank, i)));
    }
    result.push_back(static_cast<T>(sum));
  }
  return result;
}

/// Memory between canaries.
template <class T>
class Guarded {
 public:
  explicit Guarded(std::size_t count) : bytes_(2 * margin + count * sizeof(T), mark), count_(count) {}

  std::span<T> span() { return {reinterpret_cast<T*>(bytes_.data() + margin), count_}; }
  T* data() { return span().data(); }

  void check(const char* what) const {
    bool untouched = true;
    for (std::size_t i = 0; i < margin; ++i) {
      untouched = untouched && bytes_[i] == mark && bytes_[bytes_.size() - 1 - i] == mark;
    }
    require(untouched, std::string("written outside: ") + what);
  }

 private:
  static constexpr std::size_t margin = 128;
  static constexpr std::byte mark{0xa5};
  std::vector<std::byte> bytes_;
  std::size_t count_;
};

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// Where part k of n of `count` elements begins, by the definition.
inline std::size_t begin_of(std::size_t count, int ranks, int k) {
  return count * static_cast<std::size_t>(k) / static_cast<std::size_t>(ranks);
}

/// Runs a program on both executors.
template <class F>
void on_both(int ranks, F program) {
  for (const bool messages : both) {
    Setup setup;
    setup.messages = messages;
    launch(ranks, setup, program);
  }
}

/// The Error that each rank of a program gets; empty text for ranks that get none.
struct Outcome {
  std::vector<std::string> text;
  std::vector<Code> code;
};

template <class F>
Outcome outcome(int ranks, const Setup& options, F program) {
  Outcome result;
  result.text.resize(static_cast<std::size_t>(ranks));
  result.code.resize(static_cast<std::size_t>(ranks));
  launch(ranks, options, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    try {
      program(communicator);
    } catch (const Error& error) {
      result.text[rank] = error.what();
      result.code[rank] = error.code();
    }
  });
  return result;
}

inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Fails unless `call` throws an Error for bad arguments whose text has `word` in it.
template <class F>
void refuse(const F& call, const char* word) {
  try {
    call();
  } catch (const Error& error) {
    require(error.code() == Code::invalid_argument && contains(error.what(), word),
            std::string("not \"") + word + "\" but: " + error.what());
    return;
  }
  require(false, std::string("not refused: ") + word);
}

}  // namespace test
