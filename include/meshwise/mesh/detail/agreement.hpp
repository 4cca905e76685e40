// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/collective/detail/regions.hpp"
#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/fabric/hold.hpp"

namespace meshwise::detail {

/// What checks send each other is not the program's traffic: it is not counted.
inline void run_uncounted(Communicator& ranks, const char* verb, Operation operation, const void* in, void* out,
                          std::size_t bytes, int root) {
  Call call;
  call.verb = verb;
  call.shape.operation = operation;
  call.shape.root = root;
  call.shape.in_place = operation == Operation::broadcast;
  call.count = bytes;
  call.regions = Regions{&span_region, &bytes, 0, true};
  call.input = in;
  call.output = out;
  const Hold hold(ranks.endpoint(verb).latch());
  Traffic& traffic = ranks.endpoint(verb).traffic();
  const Traffic before = traffic;
  ranks.run(call);
  traffic = before;
}

/// What all ranks have, one behind the other. verb: a literal.
template <class T>
List<T> gathered_for_check(Communicator& ranks, const char* verb, const T& own) {
  List<T> all(static_cast<std::size_t>(ranks.size()));
  run_uncounted(ranks, verb, Operation::all_gather, &own, all.data(), all.size() * sizeof(T), 0);
  return all;
}
/// Copies what one rank has to all.
inline void broadcast_for_check(Communicator& ranks, const char* verb, void* data, std::size_t bytes, int root) {
  run_uncounted(ranks, verb, Operation::broadcast, data, data, bytes, root);
}
inline std::string text_of_rank(Communicator& ranks, const char* verb, std::string own, int root) {
  std::uint64_t size = own.size();
  broadcast_for_check(ranks, verb, &size, sizeof size, root);
  own.resize(static_cast<std::size_t>(size));
  broadcast_for_check(ranks, verb, own.data(), own.size(), root);
  return own;
}

/// 128 bits that tell data apart: two lanes, each of which keeps a difference of a single word for certain.
struct Digest {
  std::array<std::uint64_t, 2> lane{0x243f6a8885a308d3u, 0x13198a2e03707344u};

  /// Bytes in the order of memory.
  void add(const void* data, std::size_t bytes) {
    const std::byte* next = static_cast<const std::byte*>(data);
    std::uint64_t word = 0;
    for (std::size_t left = bytes; left > 0; next += sizeof word) {
      const std::size_t n = left < sizeof word ? left : sizeof word;
      word = 0;
      std::memcpy(&word, next, n);
      add(word);
      left -= n;
    }
    add(std::uint64_t{bytes});
  }
  void add(std::uint64_t word) {
    lane[0] = (lane[0] ^ word) * 0x9e3779b97f4a7c15u;  // odd factors and shifted selves: both are one to one
    lane[0] ^= lane[0] >> 29;
    lane[1] = (lane[1] + word) * 0xd6e8feb86659fd93u;
    lane[1] ^= lane[1] >> 32;
  }
  friend bool operator==(const Digest&, const Digest&) = default;
};

/// Two ranks that differ: one with what most ranks have, and the first one that has something else.
struct Dissent {
  int reference = 0;
  int other = -1;  ///< -1: all have the same
};
template <class All>
Dissent dissent_among(const All& all) {
  Dissent result;
  std::size_t most = 0;
  for (std::size_t i = 0; i < all.size() && 2 * most <= all.size(); ++i) {
    std::size_t same = 0;
    for (const auto& one : all) same += one == all[i] ? 1u : 0u;
    if (same <= most) continue;
    most = same;
    result.reference = static_cast<int>(i);
  }
  for (std::size_t i = 0; i < all.size() && result.other < 0; ++i) {
    if (!(all[i] == all[static_cast<std::size_t>(result.reference)])) result.other = static_cast<int>(i);
  }
  return result;
}

/// What a rank says about a call before it takes part in it, line by line; all ranks have to say the same.
class Statement {
 public:
  /// what: a word or some, without a line's end, the same on all ranks; so is their order.
  void add(std::string_view what, std::string_view value) {
    text_.append(what).append(": ").append(value).append("\n");
  }
  /// What this rank will refuse by itself, so that the others do not wait for it.
  void set_problem(std::string problem) { problem_ = std::move(problem); }

  /// Compares it across the ranks, which are all in this call. verb: a literal.
  ///
  /// Errors, on all ranks: `mismatch` that names two ranks and what they say; where a rank has a problem, that. A rank
  /// that has one returns, to report it itself.
  void compare(Communicator& ranks, const char* verb) const {
    if (ranks.size() == 1) return;
    struct Said {
      Digest digest;
      std::uint64_t problem;
      bool operator==(const Said& other) const { return digest == other.digest; }
    } said{{}, problem_.empty() ? 0u : 1u};
    said.digest.add(text_.data(), text_.size());
    const List<Said> all = gathered_for_check(ranks, verb, said);
    int refusing = -1;
    for (std::size_t i = all.size(); i-- > 0;) refusing = all[i].problem != 0 ? static_cast<int>(i) : refusing;
    const Dissent dissent = dissent_among(all);
    if (refusing < 0 && dissent.other < 0) return;
    Report report;
    report.code = Code::mismatch;
    report.operation = verb;
    report.rank = ranks.rank();
    report.axis = ranks.name();
    if (refusing >= 0) {
      report.origin = "rank " + std::to_string(refusing);
      report.found = text_of_rank(ranks, verb, problem_, refusing);
      report.ranks = {refusing};
      if (problem_.empty()) throw Error(std::move(report));
      return;
    }
    const std::string a = text_of_rank(ranks, verb, text_, dissent.reference);
    const std::string b = text_of_rank(ranks, verb, text_, dissent.other);
    report.ranks = {dissent.reference, dissent.other};
    describe_difference(report, a, b);
    throw Error(std::move(report));
  }

 private:
  static std::string_view cut_line(std::string_view& text) {
    const std::size_t end = text.find('\n');
    const std::string_view first = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return first;
  }
  static std::string_view value_in(std::string_view said) {
    const std::size_t colon = said.find(": ");
    return colon == std::string_view::npos ? std::string_view("nothing") : said.substr(colon + 2);
  }

  static void describe_difference(Report& report, std::string_view a, std::string_view b) {
    std::string_view one, two;
    do {
      one = cut_line(a);
      two = cut_line(b);
    } while (one == two && !(a.empty() && b.empty()));
    const std::string_view named = one.empty() ? two : one;
    report.expected = "the same " + std::string(named.substr(0, named.find(": "))) + " on all ranks";
    report.found = "\"" + std::string(value_in(one)) + "\" on rank " + std::to_string(report.ranks[0]) + " and \"" +
                   std::string(value_in(two)) + "\" on rank " + std::to_string(report.ranks[1]);
    report.remedy = "let all ranks run the same program on the same sizes";
  }

  std::string text_;
  std::string problem_;
};

}  // namespace meshwise::detail
