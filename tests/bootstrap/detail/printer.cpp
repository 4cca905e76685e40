// SPDX-License-Identifier: Apache-2.0
#include "meshwise/bootstrap/detail/printer.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <utility>

using meshwise::detail::Descriptor;
using meshwise::detail::Pipe;
using meshwise::detail::Printer;
using meshwise::detail::RankOutput;

namespace {

void unblock(const Descriptor& descriptor) { fcntl(descriptor.get(), F_SETFL, O_NONBLOCK); }

std::string read_all(const Descriptor& from) {
  unblock(from);
  std::string text;
  char room[4096];
  ssize_t bytes;
  while ((bytes = read(from.get(), room, sizeof(room))) > 0) text.append(room, static_cast<std::size_t>(bytes));
  return text;
}

/// A printer into a pipe.
struct Printed {
  Pipe pipe = Pipe::make("test");
  Printer printer;
  explicit Printed(bool label) : printer(pipe.writes.get(), label) {}
  std::string text() {
    printer.write_some();
    return read_all(pipe.reads);
  }
};

}  // namespace

TEST_CASE("pieces of one source join, those of another begin a line") {
  Printed plain(false);
  plain.printer.put(0, "");
  plain.printer.put(0, "one ");
  plain.printer.put(0, "line\n");
  plain.printer.put(1, "other\n");
  plain.printer.put(0, "half");
  plain.printer.put(Printer::launcher, "message\n");
  plain.printer.put(0, "rest");
  CHECK(plain.text() == "one line\nother\nhalf\nmessage\nrest");
  plain.printer.put(3, "\n");
  CHECK(plain.text() == "\n\n");
}

TEST_CASE("labels stand in front of lines, not inside of them") {
  Printed labelled(true);
  labelled.printer.put(2 * 10, "a\nb\n\nhal");
  labelled.printer.put(2 * 10, "f\nc");
  labelled.printer.put(2 * 10 + 1, "stderr\n");
  labelled.printer.put(2 * 10, "d\n");
  labelled.printer.put(Printer::launcher, "bare\n");
  CHECK(labelled.text() == "[10] a\n[10] b\n[10] \n[10] half\n[10] c\n[10] stderr\n[10] d\nbare\n");
}

TEST_CASE("a printer never waits for its reader") {
  Printed slow(false);
  const std::string block(100'000, 'x');
  int puts = 0;
  while (!slow.printer.full() && puts < 1000) {
    slow.printer.put(0, block);
    slow.printer.write_some();
    ++puts;
  }
  CHECK(slow.printer.full());
  CHECK(puts < 20);
  std::size_t seen = 0;
  while (!slow.printer.empty()) seen += slow.text().size();
  seen += slow.text().size();
  CHECK(seen == static_cast<std::size_t>(puts) * block.size());
}

TEST_CASE("a reader that has gone is an error, and ends all") {
  const auto before = signal(SIGPIPE, SIG_IGN);
  Printed lost(false);
  lost.pipe.reads = Descriptor();
  lost.printer.put(0, "text\n");
  lost.printer.write_some();
  CHECK(lost.printer.error() == EPIPE);
  CHECK(lost.printer.empty());
  lost.printer.put(0, "more\n");
  CHECK(lost.printer.empty());
  signal(SIGPIPE, before);
  const Descriptor full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  Printer printer(full.get(), false);
  printer.put(0, "text\n");
  printer.write_some();
  CHECK(printer.error() == ENOSPC);
  Printer closed(9999, false);
  closed.put(0, "text\n");
  closed.write_some();
  CHECK(closed.error() == EBADF);
}

TEST_CASE("which descriptors are one file") {
  const Pipe one = Pipe::make("test");
  const Pipe other = Pipe::make("test");
  const Descriptor copy(dup(one.writes.get()));
  CHECK(Printer::same(one.writes.get(), copy.get()));
  CHECK(!Printer::same(one.writes.get(), other.writes.get()));
  CHECK(!Printer::same(one.writes.get(), 9999));
  CHECK(!Printer::same(9999, 9999));
}

TEST_CASE("an output passes whole lines on, and the rest when it ends") {
  Printed to(false);
  Pipe pipe = Pipe::make("test");
  unblock(pipe.reads);
  RankOutput output(6, std::move(pipe.reads), to.printer);
  CHECK(output.rank() == 3);
  char room[64];
  CHECK(!output.take(room, sizeof(room)));
  CHECK(output.open());
  REQUIRE(write(pipe.writes.get(), "one\ntw", 6) == 6);
  CHECK(output.take(room, sizeof(room)));
  output.pass_lines();
  CHECK(to.text() == "one\n");
  REQUIRE(write(pipe.writes.get(), "o\nthree", 7) == 7);
  CHECK(output.take(room, sizeof(room)));
  output.pass_lines();
  CHECK(to.text() == "two\n");
  pipe.writes = Descriptor();
  CHECK(!output.take(room, sizeof(room)));
  CHECK(!output.open());
  output.pass_lines();
  CHECK(to.text() == "three");
}

TEST_CASE("a line without end is passed on in pieces") {
  Printed to(false);
  Pipe pipe = Pipe::make("test");
  unblock(pipe.reads);
  RankOutput output(0, std::move(pipe.reads), to.printer);
  const std::string block(4096, 'x');
  char room[4096];
  std::size_t written = 0;
  std::size_t seen = 0;
  for (int k = 0; k < 256; ++k) {
    REQUIRE(write(pipe.writes.get(), block.data(), block.size()) == 4096);
    written += block.size();
    REQUIRE(output.take(room, sizeof(room)));
    output.pass_lines();
    while (!to.printer.empty()) seen += to.text().size();
    CHECK(written - seen <= (1 << 18) + 4096);
  }
  output.pass_all();
  while (!to.printer.empty()) seen += to.text().size();
  CHECK(seen == written);
}
