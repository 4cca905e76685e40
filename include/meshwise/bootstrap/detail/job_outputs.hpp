// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <string>
#include <utility>

#include "meshwise/bootstrap/detail/printer.hpp"
#include "meshwise/bootstrap/detail/system.hpp"
#include "meshwise/core/detail/list.hpp"

namespace meshwise::detail {

/// The outputs of all ranks on their way to those of the launcher, and what the launcher itself has to say.
///
/// Nothing is passed on while it is taken: what has been taken waits until it is known who has ended meanwhile.
class JobOutputs {
 public:
  /// name: in front of the launcher's own lines.
  JobOutputs(int ranks, bool label, std::string name)
      : name_(std::move(name)),
        out_(1, label),
        err_(2, label),
        shared_(Printer::same(1, 2)),
        alone_(ranks == 1),
        outputs_(2 * static_cast<std::size_t>(ranks)),
        room_(1 << 16) {}

  /// What a rank writes to stdout and stderr can be read here from now on.
  void connect(int rank, Descriptor out, Descriptor err) {
    for (const Descriptor* const one : {&out, &err}) fcntl(one->get(), F_SETFL, O_NONBLOCK);
    output(rank, 0) = RankOutput(2 * rank, std::move(out), out_);
    output(rank, 1) = RankOutput(2 * rank + 1, std::move(err), shared_ ? out_ : err_);
  }

  /// In a rank: these are not its own.
  void leave() {
    for (RankOutput& one : outputs_) one.close();
  }

  /// Whether anything may still come.
  bool open() const {
    for (const RankOutput& one : outputs_) {
      if (one.open()) return true;
    }
    return false;
  }

  /// What is to be waited for. heard(rank): whether a rank is listened to at present.
  template <class Heard>
  void watch(List<pollfd>& polled, const Heard& heard) const {
    for (const RankOutput& one : outputs_) {
      if (wanted(one, heard)) polled.push_back({one.descriptor(), POLLIN, 0});
    }
    for (const Printer* const printer : {&out_, &err_}) {
      if (!printer->empty()) polled.push_back({printer->descriptor(), POLLOUT, 0});
    }
  }

  /// Reads once from every output that has something.
  template <class Heard>
  void take(const Heard& heard) {
    for (RankOutput& one : outputs_) {
      if (wanted(one, heard)) one.take(room_.data(), room_.size());
    }
  }

  /// Passes on what has been taken, as far as it is whole lines, and writes what the readers take. Of a rank that is
  /// alone all of it: what it prompts for and how far it is shows at once.
  template <class Heard>
  void pass(const Heard& heard) {
    for (RankOutput& one : outputs_) {
      if (!heard(one.rank())) continue;
      alone_ ? one.pass_all() : one.pass_lines();
    }
    print();
  }

  /// The last words of a rank that has ended: all that is there, and what is held of a line.
  void drain(int rank) {
    for (const int which : {0, 1}) {
      RankOutput& one = output(rank, which);
      for (int k = 0; k < most_drained && one.take(room_.data(), room_.size()); ++k) one.pass_lines();
      one.pass_all();
    }
  }

  /// A line of the launcher's.
  void say(const std::string& text) { (shared_ ? out_ : err_).put(Printer::launcher, name_ + ": " + text + "\n"); }

  /// Writes what the readers take at once; whether that is all.
  bool print() {
    for (Printer* const printer : {&out_, &err_}) {
      const bool worked = printer->error() == 0;
      printer->write_some();
      if (worked && printer->error() != 0) lose(*printer);
    }
    return out_.empty() && err_.empty();
  }

  /// The exit code where output was lost; 0 if none was.
  int loss() const { return loss_; }

 private:
  static constexpr int most_drained = 64;  ///< times the room; a pipe holds 1 MiB at most, but others may go on writing

  template <class Heard>
  static bool wanted(const RankOutput& one, const Heard& heard) {
    return one.open() && !one.to().full() && heard(one.rank());
  }

  /// Nobody reads any more: the ranks find out when they write.
  void lose(const Printer& printer) {
    for (RankOutput& one : outputs_) {
      if (one.open() && &one.to() == &printer) one.close();
    }
    const bool told = printer.error() == EPIPE || shared_ || &printer == &err_;
    if (!told) say("cannot write to the standard output: " + system_error(printer.error()));
    if (loss_ == 0) loss_ = printer.error() == EPIPE ? 128 + SIGPIPE : 1;
  }

  RankOutput& output(int rank, int which) {
    return outputs_[2 * static_cast<std::size_t>(rank) + static_cast<std::size_t>(which)];
  }

  std::string name_;
  Printer out_;
  Printer err_;
  bool shared_;  ///< both are one: all goes through out_
  bool alone_;
  List<RankOutput> outputs_;
  List<char> room_;
  int loss_ = 0;
};

}  // namespace meshwise::detail
