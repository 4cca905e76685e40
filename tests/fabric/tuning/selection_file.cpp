// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/tuning/selection_file.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>

using namespace meshwise;

namespace {

SelectionFile parse(const std::string& lines) { return SelectionFile::parse("meshwise-table 1\n" + lines, "t.txt"); }

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(SelectionFile::parse(text, "t.txt"));
  } catch (const Error& error) {
    CHECK(error.code() == Code::invalid_argument);
    return error.what();
  }
  return "no error";
}

std::string refused_line(const std::string& line) { return refusal("meshwise-table 1\n" + line); }

bool says(const std::string& text, const std::string& word) {
  CAPTURE(text);
  CAPTURE(word);
  const bool found = text.find(word) != std::string::npos;
  CHECK(found);
  return found;
}

constexpr const char* good = "all_reduce thread memory 4 0-64K ring:lanes=2\n";

}  // namespace

TEST_CASE("what a table says") {
  const SelectionFile file = SelectionFile::parse(
      "# by hand\r\n\n  meshwise-table 1  # first\ncpu Some  Processor # one\ncores 2\n"
      "all_reduce thread memory 4 0-64K ring:lanes=2 # fast\r\n"
      "\tall_reduce\t* messages 2 1M-inf automatic\nbroadcast shared_memory foreign 4096 1-2 binomial",
      "t.txt");
  CHECK(file.fingerprint.values[Fingerprint::cpu] == "Some Processor");
  CHECK(file.fingerprint.values[Fingerprint::cores] == "2");
  CHECK(file.fingerprint.values[Fingerprint::caches].empty());
  REQUIRE(file.entries.size() == 3);
  CHECK(file.entries[0].rule == SelectionRule{Operation::all_reduce, Way::memory, Algorithm::ring, 4, 2, 0, 1 << 16});
  CHECK(file.entries[0].line == 6);
  CHECK(file.entries[1].rule == SelectionRule{Operation::all_reduce, Way::messages, Algorithm::automatic, 2, 0, 1 << 20,
                                              SelectionTable::no_end});
  CHECK(file.entries[1].fabric == "*");
  CHECK(file.entries[2].rule == SelectionRule{Operation::broadcast, Way::foreign, Algorithm::binomial, 4096, 0, 1, 2});
  CHECK(file.table("thread", "t").size == 2);
  CHECK(file.table("shared_memory", "t").size == 2);
  CHECK(file.table("dry", "t").size == 1);
  CHECK(parse("").entries.empty());
}

TEST_CASE("what is written is read again") {
  SelectionFile file;
  file.fingerprint = Fingerprint::here(2);
  std::mt19937 dice(7);
  for (int k = 0; k < 60; ++k) {
    SelectionFile::Entry entry;
    entry.rule.operation = static_cast<Operation>(k % operation_count);
    entry.rule.way = static_cast<Way>(k % way_count);
    entry.rule.algorithm = static_cast<Algorithm>(static_cast<int>(dice()) % (algorithm_count - 1) == 0 ? 0 : k % 17);
    entry.rule.ranks = k + 1;
    entry.rule.lanes = entry.rule.decides() ? static_cast<int>(dice() % 5) : 0;
    entry.rule.from = k % 3 == 0 ? 0 : std::uint64_t{1} << (k % 40);
    entry.rule.to = k % 2 == 0 ? SelectionTable::no_end : std::uint64_t{1} << (41 + k % 20);
    entry.fabric = k % 4 == 0 ? "*" : SelectionFile::fabrics[k % 2];
    entry.comment = k % 5 == 0 ? "" : "12.5 us # against\n13";
    file.entries.push_back(entry);
  }
  const SelectionFile again = SelectionFile::parse(file.text(), "t.txt");
  CHECK(again.fingerprint == file.fingerprint);
  REQUIRE(again.entries.size() == file.entries.size());
  for (std::size_t k = 0; k < file.entries.size(); ++k) {
    CAPTURE(k);
    CHECK(again.entries[k].rule == file.entries[k].rule);
    CHECK(again.entries[k].fabric == file.entries[k].fabric);
  }
  CHECK(SelectionFile::parse(again.text(), "t.txt").text() == again.text());
}

TEST_CASE("a line that is wrong is named, with what would be right and a remedy") {
  CHECK(refused_line(good) == "no error");
  says(refused_line("# c\n\nall_reduse thread memory 4 0-64K ring"), "t.txt:4: expected an operation (");
  says(refused_line("all_reduse thread memory 4 0-64K ring"), "found \"all_reduse\"; write for example: all_reduce");
  says(refused_line("all_reduce mpi memory 4 0-64K ring"), "t.txt:2: expected a fabric: thread, shared_memory or *");
  says(refused_line("all_reduce thread direct 4 0-64K ring"), "expected a way: memory, foreign, messages");
  says(refused_line("all_reduce thread memory four 0-64K ring"), "a number of ranks from 1 to 4096, found \"four\"");
  for (const char* ranks : {"0", "-1", "4097", "18446744073709551620", "4.0", "+4"}) {
    says(refused_line(std::string("all_reduce thread memory ") + ranks + " 0-64K ring"), "a number of ranks");
  }
  says(refused_line("all_reduce thread memory 4 64K ring"), "bytes as FROM-TO, found \"64K\"");
  for (const char* bytes : {"3-64K", "0-65K", "0-1000", "0-", "-", "K-M", "0-0x40", "0-64k", "0-64KB", "1-2-4",
                            "inf-inf", "0-4000000000000000000000", "0-9223372036854775808", "0-8589934592G"}) {
    says(refused_line(std::string("all_reduce thread memory 4 ") + bytes + " ring"), "t.txt:2: expected 0, a power of");
  }
  says(refused_line("all_reduce thread memory 4 64K-64K ring"), "a range of bytes that is not empty");
  says(refused_line("all_reduce thread memory 4 1M-64K ring"), "put the lower number first");
  says(refused_line("all_reduce thread memory 4 0-64K rnig"), "an algorithm: automatic, direct, ring");
  says(refused_line("all_reduce thread memory 4 0-64K rnig"), "found \"rnig\"");
  says(refused_line("all_reduce thread memory 4 0-64K custom"), "found \"custom\"");
  for (const char* option : {"ring:", "ring:lanes", "ring:lanes=0", "ring:lanes=1025", "ring:lanes=x", "ring:chunk=3",
                             "automatic:lanes=2", "ring:lanes=2:"}) {
    says(refused_line(std::string("all_reduce thread memory 4 0-64K ") + option), "expected lanes=N");
  }
  says(refused_line("all_reduce thread memory 4 0-64K ring 12"), "the end of the line behind the algorithm");
  const std::string parts[] = {"all_reduce", " thread", " memory", " 4", " 0-64K"};
  std::string line;
  for (const std::string& part : parts) says(refused_line(line += part), "found the end of the line");
}

TEST_CASE("what is no table at all") {
  says(refusal(""), "t.txt:0: expected the first line \"meshwise-table 1\", found no line at all");
  says(refusal("# nothing\n"), "found no line at all");
  says(refusal(good), "t.txt:1: expected the first line");
  says(refusal("meshwise-table"), "the version of the format");
  says(refusal("meshwise-table one"), "the version of the format, a number, found \"one\"");
  says(refusal(std::string("\x7f"
                           "ELF\0\x1b[2J",
                           9)),
       "found \"?ELF");
}

TEST_CASE("two rules for one size are refused, with both lines") {
  const std::string first = good;
  says(refused_line(first + "\nall_reduce thread memory 4 32K-inf direct"),
       "t.txt:4: expected one rule for a size, found a second one for some of the sizes of line 2");
  says(refused_line(first + "all_reduce * memory 4 0-1 direct"), "line 2");
  for (const char* other : {"all_reduce thread memory 4 64K-inf direct", "all_reduce thread memory 2 0-64K direct",
                            "all_reduce thread messages 4 0-64K direct", "reduce thread memory 4 0-64K direct",
                            "all_reduce shared_memory memory 4 0-64K direct"}) {
    CHECK(refused_line(first + other) == "no error");
  }
}

TEST_CASE("the head of a table that a later library has written is read without understanding the rest") {
  const std::string text = "meshwise-table 1\nversion 99.0.0\nall_reduce thread memory 4 0-64K teleport\n";
  CHECK(SelectionFile::head(text, "t").fingerprint.values[Fingerprint::version] == "99.0.0");
  const SelectionFile later = SelectionFile::head("meshwise-table 2\n\x01\x02 whatever", "t");
  CHECK(later.version == 2);
  CHECK(later.entries.empty());
}

TEST_CASE("too many rules are refused") {
  std::string lines;
  const auto rule = [](int k, const char* fabric) {
    return std::string("all_reduce ") + fabric + " memory " + std::to_string(k) + " 0-inf ring\n";
  };
  for (int k = 1; k <= SelectionTable::most_rules; ++k) lines += rule(k, "thread") + rule(k, "shared_memory");
  const SelectionFile full = parse(lines);
  CHECK(full.table("thread", "t").size == SelectionTable::most_rules);
  CHECK(full.table("shared_memory", "t").size == SelectionTable::most_rules);
  says(refused_line(lines + rule(4000, "thread")), "at most 1024 rules");
  std::string threads;
  for (int k = 1; k <= SelectionTable::most_rules + 1; ++k) threads += rule(k, "thread");
  CHECK_THROWS_WITH_AS(parse(threads).table("thread", "t.txt"),
                       "t.txt:514: expected at most 512 rules for a fabric, found more; join rules that say the same",
                       Error);
}

TEST_CASE("hostile bytes give a table or an error, nothing else") {
  std::mt19937 dice(11);
  const std::string whole =
      std::string("meshwise-table 1\ncpu x\ncores 2\n") + good + "broadcast * messages 2 1M-inf binomial:lanes=3\n";
  int errors = 0;
  for (int k = 0; k < 20000; ++k) {
    std::string text = whole;
    const int changes = 1 + static_cast<int>(dice() % 4);
    for (int c = 0; c < changes; ++c) {
      const std::size_t at = dice() % text.size();
      switch (dice() % 4) {
        case 0: text[at] = static_cast<char>(dice()); break;
        case 1: text.erase(at, 1 + dice() % 8); break;
        case 2: text.insert(at, 1 + dice() % 3, "0123456789-:=#\n K\0inf"[dice() % 20]); break;
        default: text.resize(at); break;
      }
      if (text.empty()) break;
    }
    try {
      const SelectionFile file = SelectionFile::parse(text, "t");
      static_cast<void>(file.table("thread", "t").signature());
    } catch (const Error& error) {
      ++errors;
      bool plain = true;
      for (const char* c = error.what(); *c != '\0'; ++c) plain = plain && *c >= ' ' && *c <= '~';
      if (!plain) FAIL_CHECK(error.what());
    }
  }
  CHECK(errors > 1000);
}
