// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ask.hpp"
#include "cases.hpp"
#include "data.hpp"
#include "list.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/broadcast_bytes.hpp"
#include "meshwise/collective/group.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/memory.hpp"
#include "perform.hpp"

namespace conformance {

namespace {

using meshwise::Communicator;
using meshwise::Heap;
using meshwise::MemorySource;
using meshwise::Storage;

std::size_t begin_of(const std::vector<std::size_t>& parts, std::size_t k) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < k; ++i) begin += parts[i];
  return begin;
}

/// A run of elements in a rank's memory.
struct Part {
  std::size_t begin = 0;
  std::size_t count = 0;
};

/// One rank's memory in one case: what it is before, what it must become, and the call on it.
///
/// All of it lies in one buffer between canaries. The expected image of that buffer begins as a copy, so that whatever
/// is not said to change must stay: canaries, inputs, outputs of ranks that have none.
class Exercise final : public Interlude {
 public:
  Exercise(Communicator& communicator, const Case& c) : communicator_(communicator), c_(c), sizes_(sizes_of(c)) {
    rank_ = static_cast<std::size_t>(communicator.rank());
    p_ = static_cast<std::size_t>(communicator.size());
    root_ = static_cast<std::size_t>(c.root_rank());
    size_ = size_of(c.item());
    lay_out();
    take_memory();
  }

  std::string run() {
    make(c_.seed);
    Ask ask = question();
    if (c_.verb() == Verb::barrier) {
      meet(ask);
    } else if (c_.verb() == Verb::group) {
      exchange(ask);
    } else if (!combines(c_.verb())) {
      perform_copy(ask);
    } else if (!is_float(c_.item())) {
      perform_on_integers(ask);
    } else if (c_.item() == Item::f32 || c_.item() == Item::f64) {
      perform_on_wide_floats(ask);
    } else {
      perform_on_narrow_floats(ask);
    }
    judge();
    return complaint_.empty() ? "ok" + digest() : "wrong: " + complaint_;
  }

  /// The first run of a prepared call is over: other data for the second.
  void between() override {
    judge();
    make(c_.seed + (std::uint64_t{1} << 32));
  }

  /// Whether nothing has been touched, for calls that were refused.
  bool untouched() const { return holds(before_); }

 private:
  static constexpr std::size_t margin = 192;

  std::size_t part_begin(std::size_t rank) const {
    if (!sizes_.counts.empty()) return begin_of(sizes_.counts, rank);
    return sizes_.count * rank / p_;
  }
  std::size_t part_count(std::size_t rank) const {
    if (!sizes_.counts.empty()) return sizes_.counts[rank];
    return sizes_.count * (rank + 1) / p_ - sizes_.count * rank / p_;
  }
  std::size_t pair(std::size_t from, std::size_t to) const { return sizes_.pairs[from * p_ + to]; }

  /// Where input and output lie, in elements from the beginning of the space.
  void lay_out() {
    const std::size_t n = sizes_.count;
    const bool at_root = rank_ == root_;
    std::size_t ins = 0;
    std::size_t outs = 0;
    std::size_t in_at = 0;  // in place, within the larger one
    std::size_t out_at = 0;
    switch (c_.verb()) {
      case Verb::all_reduce:
      case Verb::inclusive_scan:
      case Verb::exclusive_scan:
        ins = n;
        outs = n;
        break;
      case Verb::reduce:
        ins = n;
        outs = at_root || c_.seed % 3 == 0 ? n : 0;  // others may pass an output, which must not be touched
        break;
      case Verb::broadcast: outs = n; break;
      case Verb::reduce_scatter:
      case Verb::reduce_scatter_v:
        ins = n;
        outs = part_count(rank_);
        out_at = part_begin(rank_);
        break;
      case Verb::all_gather:
      case Verb::all_gather_v:
        ins = part_count(rank_);
        outs = n;
        in_at = part_begin(rank_);
        break;
      case Verb::gather:
        ins = n;
        outs = at_root ? n * p_ : c_.seed % 3 == 0 ? 5 : 0;
        in_at = n * rank_;
        break;
      case Verb::scatter:
        ins = at_root ? n * p_ : c_.seed % 3 == 0 ? 5 : 0;
        outs = n;
        out_at = n * rank_;
        break;
      case Verb::gather_v:
        ins = part_count(rank_);
        outs = at_root ? n : 0;
        in_at = part_begin(rank_);
        break;
      case Verb::scatter_v:
        ins = at_root ? n : 0;
        outs = part_count(rank_);
        out_at = part_begin(rank_);
        break;
      case Verb::all_to_all:
        ins = n * p_;
        outs = ins;
        break;
      case Verb::all_to_all_v:
      case Verb::group:
        for (std::size_t peer = 0; peer < p_; ++peer) {
          sends_.push_back(pair(rank_, peer));
          receives_.push_back(pair(peer, rank_));
          ins += sends_.back();
          outs += receives_.back();
        }
        break;
      case Verb::redistribute:
        ins = sizes_.counts[rank_];
        outs = sizes_.counts2[rank_];
        break;
      case Verb::broadcast_bytes: outs = n; break;
      case Verb::barrier: break;
    }
    // Only the root of a rooted operation is in place; the others have one of the buffers only.
    together_ = c_.in_place() && (!rooted(c_.verb()) || at_root || in_one_span(c_));
    in_ = Part{together_ ? in_at : 0, ins};
    out_ = Part{together_ ? out_at : 0, outs};
    if (together_) {
      in_first_ = margin + (c_.seed % 5) * size_;
      out_first_ = in_first_;
    } else {
      in_first_ = margin + (c_.seed % 5) * size_;
      out_first_ = in_first_ + ins * size_ + margin + (c_.seed % 7) * size_;
      out_first_ += (size_ == 12 ? 4 : size_) - out_first_ % (size_ == 12 ? 4 : size_);
      // All of space's elements are aligned; how far, differs from case to case.
    }
    const std::size_t in_end = in_first_ + (in_.begin + ins) * size_;
    const std::size_t out_end = out_first_ + (out_.begin + outs) * size_;
    bytes_ = std::max(in_end, out_end) + margin;
  }

  std::byte* in_data() { return memory_.data() + in_first_ + in_.begin * size_; }
  std::byte* out_data() { return memory_.data() + out_first_ + out_.begin * size_; }

  /// Copies `count` elements of a table, from entry `first` on, into an image at a byte.
  void put(std::span<std::byte> image, std::size_t at, const Table& table, std::size_t first, std::size_t count) {
    for (std::size_t done = 0; done < count;) {
      const std::size_t entry = (first + done) % period;
      const std::size_t run = std::min(period - entry, count - done);
      std::memcpy(image.data() + at + done * size_, table.data() + entry * size_, run * size_);
      done += run;
    }
  }

  /// Says what an output run must become.
  void want(std::size_t offset, const Table& table, std::size_t first, std::size_t count,
            const std::vector<double>* tolerance = nullptr) {
    put(expected_, out_first_ + (out_.begin + offset) * size_, table, first, count);
    wants_.push_back(Want{offset, first, count, tolerance});
  }

  /// Where ranks reach only some of each other's memory: a third of the cases is on memory that all reach, a third on
  /// memory that nobody else does, and a third on both.
  void take_memory() {
    const MemorySource* const source = communicator_.endpoint().memory();
    if (source != nullptr && (c_.seed % 3 == 0 || (c_.seed % 3 == 1 && rank_ % 2 == 0))) {
      heap_ = std::make_unique<Heap>(*source);
      storage_ = heap_->allocate(bytes_);
      memory_ = {storage_.data(), bytes_};
    } else {
      own_.resize(bytes_);
      memory_ = own_;
    }
  }

  bool holds(const std::vector<std::byte>& image) const {
    return std::equal(memory_.begin(), memory_.end(), image.begin(), image.end());
  }

  /// New data, and what must become of it.
  void make(std::uint64_t seed) {
    current_ = c_;
    current_.seed = seed;
    const Case& c = current_;
    std::fill(memory_.begin(), memory_.end(), std::byte{0xa5});
    wants_.clear();
    if (c.verb() == Verb::barrier || c.verb() == Verb::broadcast_bytes) return;
    const std::size_t n = sizes_.count;
    const Table own = contributions(c, c_.verb() == Verb::redistribute ? 0 : communicator_.rank());
    // Entries are numbered along the whole vector.
    std::size_t first = 0;
    if (c.verb() == Verb::all_gather || c.verb() == Verb::all_gather_v || c.verb() == Verb::gather_v ||
        c.verb() == Verb::redistribute) {
      first = part_begin(rank_);
    }
    const bool gives = c.verb() != Verb::broadcast;
    if (!together_ || in_.count >= out_.count) {
      // In place the output is a part of the input, or there is none.
      if (!together_) put(memory_, out_first_, junk(), 0, out_.count);
      if (gives) put(memory_, in_first_ + in_.begin * size_, own, first, in_.count);
    } else {
      put(memory_, out_first_ + out_.begin * size_, junk(), 0, out_.count);
      if (gives) put(memory_, in_first_ + in_.begin * size_, own, first, in_.count);
    }
    if (c.verb() == Verb::broadcast && rank_ == root_) put(memory_, out_first_, own, 0, n);
    before_.assign(memory_.begin(), memory_.end());
    expected_ = before_;
    const auto part = [&](std::size_t rank) { return carried(c, static_cast<int>(rank)); };
    switch (c.verb()) {
      case Verb::all_reduce: want_combined(p_, 0, n); break;
      case Verb::reduce:
        if (rank_ == root_) want_combined(p_, 0, n);
        break;
      case Verb::reduce_scatter:
      case Verb::reduce_scatter_v: want_combined(p_, part_begin(rank_), out_.count); break;
      case Verb::inclusive_scan: want_combined(rank_ + 1, 0, n); break;
      case Verb::exclusive_scan: want_combined(rank_, 0, n); break;
      case Verb::broadcast: want(0, part(root_), 0, n); break;
      case Verb::all_gather:
      case Verb::all_gather_v:
      case Verb::gather_v:
        if (c.verb() == Verb::gather_v && rank_ != root_) break;
        for (std::size_t peer = 0; peer < p_; ++peer) {
          want(part_begin(peer), part(peer), part_begin(peer), part_count(peer));
        }
        break;
      case Verb::gather:
        for (std::size_t peer = 0; peer < p_ && rank_ == root_; ++peer) want(n * peer, part(peer), 0, n);
        break;
      case Verb::scatter: want(0, part(root_), n * rank_, n); break;
      case Verb::scatter_v: want(0, part(root_), part_begin(rank_), out_.count); break;
      case Verb::all_to_all:
        for (std::size_t peer = 0; peer < p_; ++peer) want(n * peer, part(peer), n * rank_, n);
        break;
      case Verb::all_to_all_v:
      case Verb::group:
        for (std::size_t peer = 0, at = 0; peer < p_; at += pair(peer++, rank_)) {
          std::size_t sent = 0;
          for (std::size_t to = 0; to < rank_; ++to) sent += pair(peer, to);
          want(at, part(peer), sent, pair(peer, rank_));
        }
        break;
      case Verb::redistribute: want(0, part(0), begin_of(sizes_.counts2, rank_), out_.count); break;
      default: break;
    }
  }

  void want_combined(std::size_t contributors, std::size_t first, std::size_t count) {
    tolerance_ = tolerances(current_, static_cast<int>(contributors));
    want(0, combined(current_, static_cast<int>(contributors)), first, count, &tolerance_);
  }

  /// What outputs hold before.
  Table junk() const {
    Table table(period * size_);
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::byte>(mixed(i, rank_) % 251);
    return table;
  }

  /// Compares all of the memory with its expected image.
  void judge() {
    if (!complaint_.empty() || holds(expected_)) return;
    for (const Want& wanted : wants_) {
      for (std::size_t i = 0; i < wanted.count; ++i) {
        const std::size_t at = out_first_ + (out_.begin + wanted.offset + i) * size_;
        const double tolerance = wanted.tolerance == nullptr ? 0 : (*wanted.tolerance)[(wanted.first + i) % period];
        if (agrees(current_, memory_.data() + at, expected_.data() + at, tolerance)) {
          // Near enough, or another NaN: the rest of the comparison is of bytes.
          std::memcpy(expected_.data() + at, memory_.data() + at, size_);
          continue;
        }
        complaint_ = "output " + std::to_string(wanted.offset + i) + " of " + std::to_string(out_.count) + " is " +
                     shown(current_, memory_.data() + at) + " instead of " + shown(current_, expected_.data() + at);
        return;
      }
    }
    for (std::size_t at = 0; at < bytes_; ++at) {
      if (memory_[at] == expected_[at]) continue;
      const auto inside = [&](std::size_t first, const Part& part) {
        return at >= first + part.begin * size_ && at < first + (part.begin + part.count) * size_;
      };
      complaint_ = inside(in_first_, in_)     ? "the input was changed"
                   : inside(out_first_, out_) ? "an output that must stay was changed"
                                              : "written outside of the buffers";
      complaint_ += ", byte " + std::to_string(at) + " of " + std::to_string(bytes_);
      return;
    }
  }

  /// Ranks that hold the same vector must hold the same bits, whatever the order of summation.
  std::string digest() const {
    const bool everywhere = c_.verb() == Verb::all_reduce || c_.verb() == Verb::all_gather ||
                            c_.verb() == Verb::all_gather_v || c_.verb() == Verb::broadcast;
    if (!everywhere) return "";
    std::uint64_t hash = out_.count;
    for (std::size_t i = 0; i < out_.count * size_; ++i) {
      hash = (hash ^ static_cast<std::uint64_t>(memory_[out_first_ + i])) * 0x100000001b3U;
    }
    // Which NaN it is, is unspecified.
    const bool any_nan = is_float(c_.item()) && (c_.combining() == Combining::min || c_.combining() == Combining::max);
    return combines(c_.verb()) && any_nan ? "" : " " + std::to_string(hash);
  }

  Ask question() {
    Ask ask;
    ask.c = &c_;
    ask.communicator = &communicator_;
    ask.in_count = in_.count;
    ask.out_count = out_.count;
    // Empty buffers may be null.
    if (in_.count > 0 || c_.seed % 2 == 0) ask.in = in_data();
    if (out_.count > 0 || c_.seed % 2 == 0) ask.out = out_data();
    ask.whole = memory_.data() + in_first_;
    ask.whole_count = std::max(in_.count, out_.count);
    ask.one_span = in_one_span(c_);
    if (ask.one_span) ask.out = out_data();
    ask.counts = c_.verb() == Verb::all_to_all_v ? std::span<const std::size_t>(sends_) : sizes_.counts;
    ask.counts2 = c_.verb() == Verb::all_to_all_v ? std::span<const std::size_t>(receives_) : sizes_.counts2;
    ask.options.algorithm = c_.wanted();
    ask.options.lanes = c_.lane_number();
    ask.options.reproducible = c_.in_rank_order();
    if (c_.carrier() != Wire::none) ask.options.wire = kind_of(c_.carrier());
    if (c_.combining() == Combining::pre_multiplied) ask.options.factor = factor_of(c_, communicator_.rank());
    if (c_.wanted() == meshwise::Algorithm::custom) {
      ask.options.algorithm = meshwise::Algorithm::automatic;
      if (!by_policy(c_)) ask.options.generator = custom_generator(c_);
    }
    ask.interlude = this;
    const bool result = !rooted(c_.verb()) || rank_ == root_ || c_.verb() == Verb::broadcast ||
                        c_.verb() == Verb::scatter || c_.verb() == Verb::scatter_v;
    ask.expected_result = result ? out_.count : 0;
    return ask;
  }

  void meet(Ask& ask) {
    make(c_.seed);
    before_.assign(memory_.begin(), memory_.end());
    expected_ = before_;
    in_manner<true>(
        ask, [&](auto&) { meshwise::barrier(communicator_); },
        [&](auto&) { return meshwise::start_barrier(communicator_); },
        [&](auto&) { return meshwise::prepare_barrier(communicator_); });
  }

  /// Sends and receives in an order of this rank's own.
  void exchange(Ask& ask) {
    const auto fill = [&](meshwise::Group& messages) {
      for (std::size_t k = 0; k < 2 * p_; ++k) {
        // Every other one is a send; which peers come first differs.
        const std::size_t turn = mixed(c_.seed, rank_) % p_;
        const std::size_t peer = (k / 2 * (k % 2 == 0 ? 1 : p_ - 1) + turn) % p_;
        const bool sends = (k + c_.seed) % 2 == 0;
        const std::vector<std::size_t>& counts = sends ? sends_ : receives_;
        const std::size_t bytes = counts[peer] * size_;
        const std::size_t offset = begin_of(counts, peer) * size_;
        if (sends) {
          messages.send(std::span<const std::byte>(in_data() + offset, bytes), static_cast<int>(peer), 3);
        } else {
          messages.receive(std::span<std::byte>(out_data() + offset, bytes), static_cast<int>(peer), 3);
        }
      }
    };
    if (c_.manner() == How::blocking) return meshwise::group(communicator_, fill);
    if (c_.manner() == How::started) return conclude(ask, meshwise::start_group(communicator_, fill));
    meshwise::Group messages(communicator_);
    fill(messages);
    messages.run();
    between();
    conclude(ask, messages.start());
  }

  struct Want {
    std::size_t offset;
    std::size_t first;
    std::size_t count;
    const std::vector<double>* tolerance;
  };

  Communicator& communicator_;
  const Case& c_;
  Case current_;
  Sizes sizes_;
  std::size_t rank_ = 0;
  std::size_t p_ = 1;
  std::size_t root_ = 0;
  std::size_t size_ = 1;
  std::vector<std::size_t> sends_;
  std::vector<std::size_t> receives_;
  bool together_ = false;
  Part in_;
  Part out_;
  std::size_t in_first_ = 0;
  std::size_t out_first_ = 0;
  std::size_t bytes_ = 0;
  std::vector<std::byte> own_;  ///< memory of this rank only, if the fabric tells a difference
  std::unique_ptr<Heap> heap_;  ///< or what other ranks reach
  Storage storage_;
  std::span<std::byte> memory_;  ///< in one of them
  std::vector<std::byte> before_;
  std::vector<std::byte> expected_;
  std::vector<Want> wants_;
  std::vector<double> tolerance_;
  std::string complaint_;
};

/// Bytes whose number only the root knows.
std::string run_bytes(Communicator& communicator, const Case& c) {
  const std::size_t n = sizes_of(c).count;
  std::vector<std::uint16_t> data(communicator.rank() == c.root_rank() ? n : c.seed % 9);
  if (communicator.rank() == c.root_rank()) {
    for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<std::uint16_t>(mixed(c.seed, i));
  }
  meshwise::broadcast_bytes(communicator, data, c.root_rank());
  if (data.size() != n) return "wrong: " + std::to_string(data.size()) + " elements instead of " + std::to_string(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (data[i] != static_cast<std::uint16_t>(mixed(c.seed, i))) return "wrong: element " + std::to_string(i);
  }
  return "ok";
}

}  // namespace

std::string run_case(Communicator& communicator, const Case& c) {
  if (c.verb() == Verb::broadcast_bytes) return run_bytes(communicator, c);
  Exercise exercise(communicator, c);
  try {
    return exercise.run();
  } catch (const meshwise::Error& error) {
    if (error.code() != meshwise::Code::invalid_argument) throw;
    if (!exercise.untouched()) return "wrong: refused, but memory was changed";
    if (std::string(error.what()).size() < 20) return "wrong: refused without a word";
    return std::string("refused ") + error.what();
  }
}

}  // namespace conformance
