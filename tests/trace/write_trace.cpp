// SPDX-License-Identifier: Apache-2.0
#include "meshwise/trace/write_trace.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../support/launch.hpp"
#include "meshwise/mesh/mesh.hpp"
#include "meshwise/trace/record.hpp"

using namespace meshwise;

namespace {

/// A JSON value, as far as traces need it.
struct Json {
  enum class Type { object, array, string, number } type = Type::number;
  std::map<std::string, Json> members;
  std::vector<Json> items;
  std::string text;
  double number = 0;

  const Json& operator[](const std::string& key) const {
    static const Json none;
    const auto at = members.find(key);
    return at == members.end() ? none : at->second;
  }
};

/// Reads JSON strictly: whatever is not JSON is a failure.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Json read() {
    Json result = value();
    skip();
    REQUIRE(at_ == text_.size());
    return result;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::string_view(" \n\t\r").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  char peek() {
    skip();
    REQUIRE(at_ < text_.size());
    return text_[at_];
  }
  void expect(char c) {
    REQUIRE(peek() == c);
    ++at_;
  }

  Json value() {
    Json result;
    const char c = peek();
    if (c == '{') {
      result.type = Json::Type::object;
      expect('{');
      while (peek() != '}') {
        if (!result.members.empty()) expect(',');
        const std::string key = string();
        expect(':');
        REQUIRE(result.members.emplace(key, value()).second);
      }
      expect('}');
    } else if (c == '[') {
      result.type = Json::Type::array;
      expect('[');
      while (peek() != ']') {
        if (!result.items.empty()) expect(',');
        result.items.push_back(value());
      }
      expect(']');
    } else if (c == '"') {
      result.type = Json::Type::string;
      result.text = string();
    } else {
      const std::size_t end = text_.find_first_not_of("-0123456789.", at_);
      REQUIRE(end != at_);
      result.number = std::stod(std::string(text_.substr(at_, end - at_)));
      at_ = end;
    }
    return result;
  }

  std::string string() {
    expect('"');
    std::string result;
    for (; text_[at_] != '"'; ++at_) {
      REQUIRE(at_ + 1 < text_.size());
      REQUIRE(static_cast<unsigned char>(text_[at_]) >= 0x20);
      if (text_[at_] != '\\') {
        result += text_[at_];
        continue;
      }
      const char c = text_[++at_];
      if (c == 'u') {
        REQUIRE(at_ + 4 < text_.size());
        const auto code = std::stoul(std::string(text_.substr(at_ + 1, 4)), nullptr, 16);
        result += code < 0x80 ? std::string(1, static_cast<char>(code)) : "<" + std::to_string(code) + ">";
        at_ += 4;
      } else {
        REQUIRE((c == '"' || c == '\\'));
        result += c;
      }
    }
    ++at_;
    return result;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string json(std::string_view text) {
  std::string result;
  detail::append_json(result, text);
  return result;
}

/// A file that goes away.
struct Scratch {
  std::string path = "/tmp/meshwise_trace_" + std::to_string(getpid()) + ".json";
  ~Scratch() { std::remove(path.c_str()); }
  Json read() const {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    return Reader(text).read();
  }
};

std::int64_t nanoseconds(const Json& microseconds) {
  return static_cast<std::int64_t>(microseconds.number * 1000 + 0.5);
}

}  // namespace

TEST_CASE("any bytes become a JSON string, and come back if they are UTF-8") {
  for (const std::string text :
       {"", "forward", "a \"b\" \\ c", "line\nand\ttab \x01\x1f", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"}) {
    CHECK(Reader(json(text)).read().text == text);
  }
  CHECK(json(std::string_view("\0", 1)) == "\"\\u0000\"");
  // Too short, overlong, a surrogate, beyond the last, and no beginning.
  for (const std::string text : {"\xc3", "\xe2\x82", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                                 "\xf4\x90\x80\x80", "\xff", "\x80"}) {
    std::string wanted = "\"";
    for (std::size_t i = 0; i < text.size(); ++i) wanted += "\\ufffd";
    CHECK(json(text) == wanted + "\"");
  }
  CHECK(json("x\xff\"") == "\"x\\ufffd\\\"\"");
}

TEST_CASE("the file holds the events of all ranks, to the nanosecond, each rank a process, slices nested") {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    const Scratch file;
    std::vector<std::vector<Timeline::Event>> recorded(static_cast<std::size_t>(ranks));
    launch(ranks, [&](Communicator& world) {
      Timeline timeline;
      world.set_name("all \"ranks\"");
      world = record(std::move(world), timeline);
      std::vector<float> data(1000, 1);
      for (int k = 0; k < 1 + world.rank(); ++k) {
        const Timeline::Span step(timeline, "step " + std::to_string(k));
        const Timeline::Span inner(timeline, "forward");
      }
      {
        const Timeline::Span step(timeline, "backward");
        auto first = start_all_reduce(world, data);
        auto second = start_all_reduce(world, std::vector<float>(10, 1));
        all_reduce<Max>(world, data);
        second.wait();
        first.wait();
      }
      recorded[static_cast<std::size_t>(world.rank())] = timeline.events();
      const Timeline::Span open(timeline, "has not ended");
      write_trace(world, timeline, file.path);
      CHECK(timeline.events().size() == recorded[static_cast<std::size_t>(world.rank())].size() + 1);
      world = Communicator();
    });

    const Json trace = file.read();
    std::int64_t origin = recorded[0][0].begin;
    for (const auto& rank : recorded) origin = std::min(origin, rank[0].begin);
    std::vector<std::vector<const Json*>> slices(recorded.size()), begins(recorded.size()), ends(recorded.size());
    std::size_t names = 0;
    for (const Json& event : trace["traceEvents"].items) {
      const std::string kind = event["ph"].text;
      const auto rank = static_cast<std::size_t>(event["pid"].number);
      REQUIRE(rank < recorded.size());
      if (kind == "M" && event["name"].text == "process_name") {
        ++names;
        CHECK(event["args"]["name"].text == "rank " + std::to_string(rank));
      }
      if (kind == "X") slices[rank].push_back(&event);
      if (kind == "b") begins[rank].push_back(&event);
      if (kind == "e") ends[rank].push_back(&event);
    }
    CHECK(names == recorded.size());
    for (std::size_t rank = 0; rank < recorded.size(); ++rank) {
      std::size_t slice = 0, flight = 0;
      for (const Timeline::Event& event : recorded[rank]) {
        if (event.kind == Timeline::Kind::flight) {
          REQUIRE(flight < begins[rank].size());
          REQUIRE(flight < ends[rank].size());
          const Json &begin = *begins[rank][flight], &end = *ends[rank][flight];
          CHECK(begin["name"].text == "all_reduce all \"ranks\"");
          CHECK(begin["id"].text == end["id"].text);
          CHECK((flight == 0 || begin["id"].text != (*begins[rank][flight - 1])["id"].text));
          CHECK(nanoseconds(begin["ts"]) == event.begin - origin);
          CHECK(nanoseconds(end["ts"]) == event.end - origin);
          CHECK(begin["args"]["bytes"].number == static_cast<double>(event.bytes));
          ++flight;
          continue;
        }
        REQUIRE(slice < slices[rank].size());
        const Json& shown = *slices[rank][slice++];
        CHECK(nanoseconds(shown["ts"]) == event.begin - origin);
        CHECK(nanoseconds(shown["dur"]) == event.end - event.begin);
        if (event.kind == Timeline::Kind::span) {
          CHECK(shown["name"].text == event.name);
          CHECK(shown["cat"].text == "program");
        } else {
          CHECK(shown["cat"].text == "communication");
          CHECK(shown["args"]["axis"].text == "all \"ranks\"");
          CHECK(shown["args"]["ranks"].number == ranks);
        }
        if (event.kind == Timeline::Kind::wait) CHECK(shown["name"].text == "wait for all_reduce all \"ranks\"");
      }
      CHECK(begins[rank].size() == flight);
      CHECK(slices[rank].size() == slice + 1);  // that which has not ended
      CHECK((*slices[rank][slice])["name"].text == "has not ended");
      // Slices of a thread contain each other, or are apart.
      std::vector<std::int64_t> open;
      for (const Json* const one : slices[rank]) {
        const std::int64_t begin = nanoseconds((*one)["ts"]), end = begin + nanoseconds((*one)["dur"]);
        while (!open.empty() && open.back() <= begin) open.pop_back();
        CHECK((open.empty() || end <= open.back()));
        open.push_back(end);
      }
    }
  }
}

TEST_CASE("a mesh writes its world's ranks, and nothing recorded is a trace too") {
  const Scratch file;
  launch(2, [&](Communicator& world) {
    Timeline timeline;
    const Mesh<dp> mesh(world, {2});
    write_trace(mesh, timeline, file.path);
  });
  CHECK(file.read()["traceEvents"].items.size() == 6);
}

TEST_CASE("a file that cannot be written is an error on all ranks, and the communicator stays usable") {
  launch(3, [](Communicator& world) {
    Timeline timeline;
    CHECK_THROWS_WITH_AS(write_trace(world, timeline, "/no folder/trace.json"),
                         doctest::Contains("/no folder/trace.json: No such file"), Error);
    int one = 1;
    all_reduce(world, std::span(&one, 1));
    CHECK(one == 3);
    Communicator none;
    CHECK_THROWS_AS(write_trace(none, timeline, "trace.json"), Error);
  });
}
