// SPDX-License-Identifier: Apache-2.0
#include "../../examples/gpt/sample.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cctype>
#include <set>

namespace {

template <class T>
int draw(const std::vector<T>& logits, double temperature, std::int64_t top_k, std::uint64_t index) {
  return gpt::next_byte(std::span<const T>(logits), temperature, top_k, 42, index);
}

}  // namespace

TEST_CASE("sample: temperature 0 takes the likeliest, the lower of equals") {
  CHECK(draw<double>({1, 3, 2}, 0, 0, 0) == 1);
  CHECK(draw<float>({1, 3, 3}, 0, 0, 9) == 1);
  CHECK(draw<double>({-INFINITY, -5}, 0, 0, 0) == 1);
  CHECK(draw<double>({7}, 1, 0, 3) == 0);
}

TEST_CASE("sample: draws have the frequencies of the soft-max at the temperature") {
  const std::vector<double> logits{0.5, -1, 2, 0, 1.5};
  for (const double temperature : {0.5, 1.0, 3.0}) {
    double total = 0;
    std::array<double, 5> expected{};
    for (std::size_t i = 0; i < 5; ++i) total += expected[i] = std::exp(logits[i] / temperature);
    const int draws = 40000;
    std::array<int, 5> seen{};
    for (std::uint64_t i = 0; i < draws; ++i) ++seen[static_cast<std::size_t>(draw(logits, temperature, 0, i))];
    for (std::size_t i = 0; i < 5; ++i) {
      const double p = expected[i] / total;
      CHECK(std::abs(seen[i] - draws * p) < 5 * std::sqrt(draws * p * (1 - p)));
    }
  }
}

TEST_CASE("sample: a draw is a function of its arguments") {
  const std::vector<double> logits(200, 1.0);
  const std::vector<float> narrow(200, 1.0f);
  std::set<int> seen;
  for (std::uint64_t i = 0; i < 100; ++i) {
    CHECK(draw(logits, 1, 0, i) == draw(logits, 1, 0, i));
    CHECK(draw(logits, 1, 0, i) == draw(narrow, 1, 0, i));
    seen.insert(draw(logits, 1, 0, i));
  }
  CHECK(seen.size() > 60);
}

TEST_CASE("sample: top_k keeps the likeliest; more than there are is all; only bytes are drawn") {
  std::vector<double> logits(300);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<double>(i % 100);
  logits[299] = 1000;
  std::set<int> seen;
  for (std::uint64_t i = 0; i < 500; ++i) seen.insert(draw(logits, 5, 3, i));
  CHECK(seen == std::set<int>{98, 99, 199});  // equals are taken from below
  for (std::uint64_t i = 0; i < 500; ++i) {
    const int byte = draw(logits, 1000, 1 << 20, i);
    CHECK(byte >= 0);
    CHECK(byte < 256);
  }
  CHECK(draw(logits, 5, 1, 7) == 99);
}

TEST_CASE("sample: extreme logits and temperatures stay finite") {
  CHECK(draw<double>({1e300, -1e300}, 1e-300, 0, 0) == 0);
  CHECK(draw<double>({-1e300, 1e300, -INFINITY}, 1, 0, 5) == 1);
  std::set<int> seen;
  for (std::uint64_t i = 0; i < 200; ++i) seen.insert(draw<double>({3, -INFINITY, -3}, 1e300, 0, i));
  CHECK(seen == std::set<int>{0, 2});
}

TEST_CASE("sample: logits and temperatures that mean nothing") {
  CHECK_THROWS_AS(draw<double>({}, 1, 0, 0), meshwise::Error);
  CHECK_THROWS_AS(draw<double>({1, NAN}, 1, 0, 0), meshwise::Error);
  CHECK_THROWS_AS(draw<double>({1, INFINITY}, 1, 0, 0), meshwise::Error);
  CHECK_THROWS_AS(draw<double>({-INFINITY}, 1, 0, 0), meshwise::Error);
  CHECK_THROWS_AS(draw<double>({1, 2}, -1, 0, 0), meshwise::Error);
  CHECK_THROWS_AS(draw<double>({1, 2}, NAN, 0, 0), meshwise::Error);
}

TEST_CASE("printable: text stays, what could move a cursor does not") {
  CHECK(gpt::printable("a line\nand ~ another\\") == "a line\nand ~ another\\");
  CHECK(gpt::printable("") == "");
  CHECK(gpt::printable(std::string_view("\0\a\b\t\r\x1b[2J\x7f", 10)) == "\\x00\\x07\\x08\\t\\r\\x1B[2J\\x7F");
  CHECK(gpt::printable("na\xC3\xAFve \xE2\x80\x94 \xF0\x9F\x98\x80") == "na\xC3\xAFve \xE2\x80\x94 \xF0\x9F\x98\x80");
}

TEST_CASE("printable: bytes that are no UTF-8 are written out") {
  CHECK(gpt::printable("\x80x") == "\\x80x");
  CHECK(gpt::printable("\xC3") == "\\xC3");
  CHECK(gpt::printable("\xC3(") == "\\xC3(");
  CHECK(gpt::printable("\xE2\x80") == "\\xE2\\x80");
  CHECK(gpt::printable("\xC0\xAF") == "\\xC0\\xAF");
  CHECK(gpt::printable("\xE0\x80\xAF") == "\\xE0\\x80\\xAF");
  CHECK(gpt::printable("\xED\xA0\x80") == "\\xED\\xA0\\x80");
  CHECK(gpt::printable("\xF4\x90\x80\x80") == "\\xF4\\x90\\x80\\x80");
  CHECK(gpt::printable("\xFF") == "\\xFF");
  CHECK(gpt::printable("\xC2\x9B") == "\\xC2\\x9B");  // a control character in UTF-8
}

TEST_CASE("printable: every single byte gives only what may be shown, once more changes nothing") {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = gpt::printable(std::string(1, static_cast<char>(byte)));
    for (const char c : text) CHECK((c == '\n' || (c >= 0x20 && c < 0x7F)));
    CHECK(gpt::printable(text) == text);
  }
}
