// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/detail/list.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

using meshwise::detail::List;

namespace {

template <class T>
bool same(const List<T>& list, const std::vector<T>& expected) {
  if (list.size() != expected.size() || list.empty() != expected.empty()) return false;
  std::size_t i = 0;
  for (const T& element : list) {
    if (element != expected[i] || list[i] != expected[i]) return false;
    ++i;
  }
  return list.end() - list.begin() == static_cast<std::ptrdiff_t>(expected.size());
}

/// Whether lists of lists work in constant expressions, where every allocation must be released.
constexpr bool works_in_constant_expressions() {
  List<List<int>> outer;
  for (int i = 0; i < 20; ++i) outer.push_back(List<int>(3, i));
  List<List<int>> copy = outer;
  copy.resize(12);
  copy.erase(3, 2);
  copy.insert(0, List<int>{7, 8});
  int sum = 0;
  for (const List<int>& inner : copy) sum += inner.back();
  outer = std::move(copy);
  return sum == 66 - 3 - 4 + 8 && outer.size() == 11 && outer[0] == List<int>{7, 8} && !(outer[1] == outer[2]);
}
static_assert(works_in_constant_expressions());

TEST_CASE("a list does what a vector does, whatever is done to it") {
  std::minstd_rand dice(11);
  for (int run = 0; run < 200; ++run) {
    List<std::string> list;
    std::vector<std::string> vector;
    for (int step = 0; step < 60; ++step) {
      const std::string value = "element " + std::to_string(dice() % 1000);
      const std::size_t at = vector.empty() ? 0 : dice() % vector.size();
      switch (dice() % 10) {
        case 0:
          list.insert(at, value);
          vector.insert(vector.begin() + static_cast<std::ptrdiff_t>(at), value);
          break;
        case 1:
          if (!vector.empty()) {
            const std::size_t count = dice() % (vector.size() - at) + 1;
            list.erase(at, count);
            vector.erase(vector.begin() + static_cast<std::ptrdiff_t>(at),
                         vector.begin() + static_cast<std::ptrdiff_t>(at + count));
          }
          break;
        case 2:
          list.resize(at);
          vector.resize(at);
          break;
        case 3:
          list.resize(vector.size() + 3, value);
          vector.resize(vector.size() + 3, value);
          break;
        case 4:
          if (!vector.empty()) {
            list.pop_back();
            vector.pop_back();
          }
          break;
        case 5:
          list.assign(at, value);
          vector.assign(at, value);
          break;
        case 6:
          list.append(vector.data(), vector.data() + at);
          for (std::size_t i = 0; i < at; ++i) vector.push_back(std::string(vector[i]));
          break;
        default: list.push_back(value); vector.push_back(value);
      }
      REQUIRE(same(list, vector));
      if (!vector.empty()) REQUIRE((list.front() == vector.front() && list.back() == vector.back()));
    }
    List<std::string> copy = list;
    REQUIRE(copy == list);
    copy.push_back("one more");
    REQUIRE(same(list, vector));  // a copy is its own
    REQUIRE(!(copy == list));
    const List<std::string> moved = std::move(copy);
    REQUIRE(copy.empty());
    REQUIRE(moved.size() == list.size() + 1);
    list.clear();
    REQUIRE(same(list, {}));
  }
}

TEST_CASE("an element that is pushed may lie in the list") {
  List<std::string> list{"a text that is too long to lie in the string itself"};
  for (int i = 0; i < 20; ++i) list.push_back(list[0]);
  for (const std::string& element : list) REQUIRE(element == list[0]);
}

TEST_CASE("what is taken away gives back what it owns at once") {
  const auto owned = std::make_shared<int>(1);
  List<std::shared_ptr<int>> list(5, owned);
  REQUIRE(owned.use_count() == 6);
  list.pop_back();
  REQUIRE(owned.use_count() == 5);
  list.erase(1, 2);
  REQUIRE(owned.use_count() == 3);
  list.reserve(100);
  REQUIRE(owned.use_count() == 3);
  list.resize(1);
  REQUIRE(owned.use_count() == 2);
  list.clear();
  REQUIRE(owned.use_count() == 1);
}

TEST_CASE("elements that cannot be copied") {
  List<std::unique_ptr<int>> list;
  for (int i = 0; i < 9; ++i) list.push_back(std::make_unique<int>(i));
  list.erase(0);
  List<std::unique_ptr<int>> other = std::move(list);
  REQUIRE(other.size() == 8);
  for (std::size_t i = 0; i < other.size(); ++i) REQUIRE(*other[i] == static_cast<int>(i) + 1);
}

TEST_CASE("new elements are zero, as with a vector") {
  List<double> list(3);
  list.push_back(1);
  list.resize(1);
  list.resize(9);
  for (const double element : list) REQUIRE(element == 0);
  REQUIRE(List<std::array<int, 2>>(2)[1] == std::array<int, 2>{});
  REQUIRE(List<int>().begin() == List<int>().end());
}

}  // namespace
