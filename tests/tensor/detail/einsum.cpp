// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/detail/einsum.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace meshwise::detail;
using meshwise::accumulate_t;
using meshwise::bf16;
using Index = std::ptrdiff_t;

struct Draw {
  std::uint64_t state = 1;
  Index below(Index n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<Index>((state >> 33) % static_cast<std::uint64_t>(n));
  }
};

struct Array {
  Labels labels;
  Index size = 1;    ///< elements of storage
  Index origin = 0;  ///< of the element at position zero
};

/// Lays labels out in a random order, with random gaps, and sometimes backwards.
Array random_layout(Draw& draw, std::vector<int> names, const std::map<int, Index>& extents, bool dense) {
  Array array;
  Index stride = 1;
  std::vector<Labels::Label> placed;
  for (std::size_t i = names.size(); i > 1; --i) {
    const std::size_t other = static_cast<std::size_t>(draw.below(static_cast<Index>(i)));
    std::swap(names[i - 1], names[other]);
  }
  for (const int name : names) {
    const Index extent = extents.at(name);
    if (!dense && draw.below(4) == 0) stride += 1 + draw.below(3);
    placed.push_back({name, extent, stride});
    stride *= extent > 0 ? extent : 1;
  }
  array.size = stride;
  if (!dense) {
    for (Labels::Label& label : placed) {
      if (draw.below(8) != 0 || label.extent < 2) continue;
      array.origin += (label.extent - 1) * label.stride;
      label.stride = -label.stride;
    }
  }
  while (!placed.empty()) {  // the list is in no particular order either
    const std::size_t at = static_cast<std::size_t>(draw.below(static_cast<Index>(placed.size())));
    array.labels.add(placed[at].name, placed[at].extent, placed[at].stride);
    placed.erase(placed.begin() + static_cast<Index>(at));
  }
  return array;
}

Index offset(const Array& array, const std::map<int, Index>& position) {
  Index at = array.origin;
  for (const Labels::Label& label : array.labels) at += position.at(label.name) * label.stride;
  return at;
}

/// Calls visit(position) for every position of some labels.
template <class Visit>
void for_all(const std::map<int, Index>& extents, const Visit& visit) {
  std::map<int, Index> position;
  for (const auto& [name, extent] : extents) {
    if (extent == 0) return;
    position[name] = 0;
  }
  for (;;) {
    visit(position);
    auto at = position.begin();
    for (; at != position.end(); ++at) {
      if (++at->second < extents.at(at->first)) break;
      at->second = 0;
    }
    if (at == position.end()) return;
  }
}

template <class T>
T value(Draw& draw) {
  return static_cast<T>(static_cast<accumulate_t<T>>(draw.below(7) - 3));
}

/// One random contraction against nested loops in double. The values are small integers, so equality is exact.
template <class T>
EinsumWork random_case(Draw& draw, Index largest, const EinsumCosts& costs = {}) {
  std::map<int, Index> extents;
  std::vector<int> a, b, c;
  const int count = static_cast<int>(draw.below(6));
  for (int i = 0; i < count; ++i) {
    const int name = 3 * i - 4;
    extents[name] = draw.below(12) == 0 ? 0 : 1 + draw.below(largest);
    const Index kind = draw.below(4);
    if (kind != 2) a.push_back(name);
    if (kind != 1) b.push_back(name);
    if (kind != 3) c.push_back(name);
  }
  const bool dense = draw.below(2) == 0;
  const Array at = random_layout(draw, a, extents, dense);
  const Array bt = random_layout(draw, b, extents, dense);
  const Array ct = random_layout(draw, c, extents, dense);
  std::vector<T> av(static_cast<std::size_t>(at.size)), bv(static_cast<std::size_t>(bt.size)),
      cv(static_cast<std::size_t>(ct.size));
  for (T& x : av) x = value<T>(draw);
  for (T& x : bv) x = value<T>(draw);
  for (T& x : cv) x = value<T>(draw);
  const double alpha = double(draw.below(3)) - 1;
  const double beta = double(draw.below(2));

  std::vector<double> expected(cv.size());
  for (std::size_t i = 0; i < cv.size(); ++i) expected[i] = static_cast<double>(static_cast<accumulate_t<T>>(cv[i]));
  std::map<int, Index> result;
  for (const int name : c) result[name] = extents.at(name);
  for_all(result, [&](const std::map<int, Index>& position) {
    expected[static_cast<std::size_t>(offset(ct, position))] *= beta;
  });
  for_all(extents, [&](const std::map<int, Index>& position) {
    const double left =
        static_cast<double>(static_cast<accumulate_t<T>>(av[static_cast<std::size_t>(offset(at, position))]));
    const double right =
        static_cast<double>(static_cast<accumulate_t<T>>(bv[static_cast<std::size_t>(offset(bt, position))]));
    expected[static_cast<std::size_t>(offset(ct, position))] += alpha * left * right;
  });
  if constexpr (!std::is_integral_v<T>) {
    if (beta == 0) {  // must not be read
      for_all(result, [&](const std::map<int, Index>& position) {
        cv[static_cast<std::size_t>(offset(ct, position))] = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
      });
    }
  }

  const EinsumWork work = einsum<T>(meshwise::plain_gemm(), static_cast<accumulate_t<T>>(alpha), av.data() + at.origin,
                                    at.labels, bv.data() + bt.origin, bt.labels, static_cast<accumulate_t<T>>(beta),
                                    cv.data() + ct.origin, ct.labels, {}, costs);
  bool same = true;
  for (std::size_t i = 0; i < cv.size(); ++i) {
    const T rounded = static_cast<T>(static_cast<accumulate_t<T>>(expected[i]));
    same = same && static_cast<accumulate_t<T>>(cv[i]) == static_cast<accumulate_t<T>>(rounded);
  }
  CHECK(same);
  return work;
}

TEST_CASE("random contractions equal nested loops") {
  Draw draw{5};
  std::int64_t products = 0, packed = 0;
  const auto count = [&](const EinsumWork& work) {
    products += work.products > 0 ? 1 : 0;
    packed += work.packed_bytes > 0 ? 1 : 0;
  };
  // So small, products and copies do not pay: other costs force them.
  EinsumCosts costs[4];
  costs[1].loop = costs[1].pack = 1e9;
  costs[2].loop = 1e9;
  costs[2].pack = 0;
  costs[3].loop = 1e9;
  costs[3].start = 0;
  for (int i = 0; i < 4000; ++i) {
    CAPTURE(i);
    const EinsumCosts& cost = costs[i % 4];
    count(random_case<float>(draw, 5, cost));
    count(random_case<double>(draw, 5, cost));
    if (i % 5 == 0) random_case<bf16>(draw, 4, cost);
    if (i % 5 == 0) random_case<std::int32_t>(draw, 4, cost);
  }
  for (int i = 0; i < 100; ++i) {
    CAPTURE(i);
    count(random_case<float>(draw, 11));
  }
  // The draws must reach every way of running.
  CHECK(products > 3000);
  CHECK(packed > 500);
}

/// A string of labels, slowest first, as a dense array, of which a block may be used.
struct Named {
  std::map<char, Index> extents;
  std::map<char, Index> storage;  ///< where it differs from the extent

  Labels dense(const std::string& names) const {
    Labels labels;
    Index stride = 1;
    std::vector<Labels::Label> reversed;
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      reversed.push_back({*name, extents.at(*name), stride});
      stride *= storage.count(*name) != 0 ? storage.at(*name) : extents.at(*name);
    }
    for (auto label = reversed.rbegin(); label != reversed.rend(); ++label) {
      labels.add(label->name, label->extent, label->stride);
    }
    return labels;
  }
  Index size(const std::string& names) const {
    Index size = 1;
    for (const char name : names) size *= storage.count(name) != 0 ? storage.at(name) : extents.at(name);
    return size;
  }
};

std::int64_t counted = 0;

/// The plain product, counted.
const meshwise::Gemm counting{[](const meshwise::GemmCall<float>& call) {
                                ++counted;
                                meshwise::plain_gemm()(call);
                              },
                              nullptr, "counting"};

/// Runs one contraction on dense operands, compares it with loops, and returns the work.
EinsumWork contraction(const Named& named, const std::string& a, const std::string& b, const std::string& c) {
  Draw draw{9};
  const auto fill = [&](const std::string& names) {
    std::vector<float> values(static_cast<std::size_t>(named.size(names)));
    for (float& x : values) x = value<float>(draw);
    return values;
  };
  const std::vector<float> av = fill(a), bv = fill(b);
  std::vector<float> cv = fill(c), expected = cv;
  const Labels la = named.dense(a), lb = named.dense(b), lc = named.dense(c);
  counted = 0;
  const EinsumWork work = einsum<float>(counting, 1, av.data(), la, bv.data(), lb, 1, cv.data(), lc);
  CHECK(work.products == counted);

  std::map<int, Index> extents;
  for (const std::string* names : {&a, &b, &c}) {
    for (const char name : *names) extents[name] = named.extents.at(name);
  }
  const Array at{la}, bt{lb}, ct{lc};
  for_all(extents, [&](const std::map<int, Index>& position) {
    expected[static_cast<std::size_t>(offset(ct, position))] +=
        av[static_cast<std::size_t>(offset(at, position))] * bv[static_cast<std::size_t>(offset(bt, position))];
  });
  CHECK(cv == expected);
  return work;
}

TEST_CASE("what a transformer contracts takes few products and no copies") {
  const Named sizes{{{'b', 2}, {'s', 12}, {'t', 10}, {'h', 24}, {'f', 16}, {'a', 3}, {'d', 8}}, {}};
  struct Case {
    const char *a, *b, *c;
    std::int64_t products;
  };
  const Case cases[] = {
      {"bsh", "hf", "bsf", 1},      // linear
      {"bsf", "bsh", "fh", 1},      // gradient of its weight
      {"bsh", "bsf", "hf", 1},      //
      {"bsf", "hf", "bsh", 1},      // gradient of its input
      {"bsh", "had", "bsad", 1},    // query, key, value
      {"bsad", "adh", "bsh", 1},    // output projection
      {"bsad", "had", "bsh", 1},    //
      {"bsh", "bsad", "had", 1},    //
      {"bsad", "bsh", "adh", 1},    //
      {"bsad", "btad", "bsat", 6},  // scores
      {"bsad", "btad", "bast", 6},  //
      {"bsat", "btad", "bsad", 6},  // values
      {"bast", "btad", "bsad", 6},  //
      {"bsat", "bsad", "btad", 6},  // gradient of keys and values
      {"bast", "bsad", "btad", 6},  //
  };
  for (const Case& one : cases) {
    CAPTURE(one.a);
    CAPTURE(one.b);
    CAPTURE(one.c);
    const EinsumWork work = contraction(sizes, one.a, one.b, one.c);
    CHECK(work.products == one.products);
    CHECK(work.packed_bytes == 0);
    // The other order of the operands is the same work.
    const EinsumWork swapped = contraction(sizes, one.b, one.a, one.c);
    CHECK(swapped.products == one.products);
    CHECK(swapped.packed_bytes == 0);
  }
}

TEST_CASE("a block of the positions is a contraction too") {
  const Named block{{{'b', 2}, {'s', 9}, {'t', 7}, {'a', 3}, {'d', 8}}, {{'s', 14}, {'t', 11}}};
  for (const auto& names : {std::vector<std::string>{"bsad", "btad", "bsat"},
                            {"bast", "btad", "bsad"},
                            {"bsat", "btad", "bsad"},
                            {"bsat", "bsad", "btad"}}) {
    const EinsumWork work = contraction(block, names[0], names[1], names[2]);
    CHECK(work.products == 6);
    CHECK(work.packed_bytes == 0);
  }
}

TEST_CASE("an operand without a unit stride is packed, in the workspace it is given") {
  struct Arena {
    std::size_t now = 0, peak = 0;
    int calls = 0;
  } arena;
  EinsumWorkspace workspace;
  workspace.self = &arena;
  workspace.allocate = [](void* self, std::size_t bytes) {
    Arena& it = *static_cast<Arena*>(self);
    it.now += bytes;
    it.peak = it.now > it.peak ? it.now : it.peak;
    ++it.calls;
    return std::malloc(bytes);
  };
  workspace.release = [](void* self, void* memory, std::size_t bytes) {
    static_cast<Arena*>(self)->now -= bytes;
    std::free(memory);
  };
  // The batch is innermost in A: neither of its matrix dimensions is contiguous.
  const Index m = 32, n = 32, k = 32, batch = 4;
  std::vector<float> a(static_cast<std::size_t>(m * k * batch), 1.0f);
  std::vector<float> b(static_cast<std::size_t>(batch * k * n), 2.0f);
  std::vector<float> c(static_cast<std::size_t>(batch * m * n));
  Labels la, lb, lc;
  la.add(0, m, k * batch).add(1, k, batch).add(2, batch, 1);
  lb.add(2, batch, k * n).add(1, k, n).add(3, n, 1);
  lc.add(2, batch, m * n).add(0, m, n).add(3, n, 1);
  const EinsumWork work =
      einsum<float>(meshwise::plain_gemm(), 1, a.data(), la, b.data(), lb, 0, c.data(), lc, workspace);
  CHECK(work.products == batch);
  CHECK(work.packed_bytes == a.size() * sizeof(float));
  CHECK(arena.peak == work.packed_bytes);
  CHECK(arena.now == 0);
  CHECK(arena.calls == 1);
  CHECK(c == std::vector<float>(c.size(), 2.0f * float(k)));
}

TEST_CASE("16-bit elements are rounded once") {
  // 256 + 1 has no bf16; a sum that was rounded on the way would stay at 256.
  const Index k = 257;
  const std::vector<bf16> ones(static_cast<std::size_t>(k), bf16(1.0f));
  bf16 c(0.0f);
  Labels row, column, scalar;
  row.add(0, k, 1);
  column.add(0, k, 1);
  einsum<bf16>(meshwise::plain_gemm(), 1, ones.data(), row, ones.data(), column, 0, &c, scalar);
  CHECK(static_cast<float>(c) == static_cast<float>(bf16(257.0f)));
  einsum<bf16>(meshwise::plain_gemm(), 3, ones.data(), row, ones.data(), column, 1, &c, scalar);
  CHECK(static_cast<float>(c) == static_cast<float>(bf16(3.0f * 257.0f + static_cast<float>(bf16(257.0f)))));
}

TEST_CASE("integers wrap") {
  const std::int32_t a[2] = {std::numeric_limits<std::int32_t>::max(), 2};
  const std::int32_t b[2] = {2, 3};
  std::int32_t c = 1;
  Labels k, scalar;
  k.add(0, 2, 1);
  einsum<std::int32_t>(meshwise::plain_gemm(), 1, a, k, b, k, 1, &c, scalar);
  CHECK(c == 5);  // -2 + 6 + 1
}

TEST_CASE("empty sums and empty results") {
  Labels mk, kn, mn;
  mk.add(0, 2, 1).add(1, 0, 2);
  kn.add(1, 0, 3).add(2, 3, 1);
  mn.add(0, 2, 3).add(2, 3, 1);
  std::vector<float> c(6, 5.0f);
  const float nothing = 0;
  einsum<float>(meshwise::plain_gemm(), 1, &nothing, mk, &nothing, kn, 1, c.data(), mn);
  CHECK(c == std::vector<float>(6, 5.0f));
  c.assign(6, std::numeric_limits<float>::quiet_NaN());
  einsum<float>(meshwise::plain_gemm(), 1, &nothing, mk, &nothing, kn, 0, c.data(), mn);
  CHECK(c == std::vector<float>(6, 0.0f));
  const EinsumWork work = einsum<float>(meshwise::plain_gemm(), 1, nullptr, Labels{}.add(0, 0, 1).add(1, 4, 1), nullptr,
                                        Labels{}.add(1, 4, 1), 0, nullptr, Labels{}.add(0, 0, 1));
  CHECK(work.products == 0);
}

TEST_CASE("the accumulated product reads C once, however the sum is cut") {
  // The sum runs over two labels that do not merge: one product each, of which the first applies beta.
  const Index m = 16, n = 16, outer = 3, inner = 16;
  std::vector<float> a(static_cast<std::size_t>(m * outer * inner), 1.0f);
  std::vector<float> b(static_cast<std::size_t>(outer * (inner + 1) * n), 1.0f);
  std::vector<float> c(static_cast<std::size_t>(m * n), std::numeric_limits<float>::quiet_NaN());
  Labels la, lb, lc;
  la.add(0, m, outer * inner).add(1, outer, inner).add(2, inner, 1);
  lb.add(1, outer, (inner + 1) * n).add(2, inner, n).add(3, n, 1);
  lc.add(0, m, n).add(3, n, 1);
  const EinsumWork work = einsum<float>(meshwise::plain_gemm(), 1, a.data(), la, b.data(), lb, 0, c.data(), lc);
  CHECK(work.products == outer);
  CHECK(c == std::vector<float>(c.size(), float(outer * inner)));
}

TEST_CASE("labels that do not fit are refused") {
  float x[4] = {};
  const auto message = [&](const Labels& a, const Labels& b, const Labels& c) {
    try {
      einsum<float>(meshwise::plain_gemm(), 1, x, a, x, b, 0, x, c);
    } catch (const meshwise::Error& error) {
      CHECK(error.code() == meshwise::Code::invalid_argument);
      return std::string(error.what());
    }
    return std::string();
  };
  const Labels none;
  CHECK(message(Labels{}.add(1, 2, 1), none, none).find("dim 1 in left only") != std::string::npos);
  CHECK(message(none, Labels{}.add(1, 2, 1), none).find("dim 1 in right only") != std::string::npos);
  CHECK(message(none, none, Labels{}.add(1, 2, 1)).find("dim 1 in result only") != std::string::npos);
  CHECK(message(Labels{}.add(1, 2, 1), Labels{}.add(1, 3, 1), none).find("found 3 in the right") != std::string::npos);
  CHECK(message(Labels{}.add(1, 2, 1).add(1, 2, 2), none, none).find("dim 1 twice") != std::string::npos);
  CHECK(message(Labels{}.add(1, 2, 1), none, Labels{}.add(1, 2, 0)).find("stride 0") != std::string::npos);
  CHECK(message(Labels{}.add(1, -2, 1), none, none).find("extent -2") != std::string::npos);
  Labels full;
  for (int i = 0; i < max_labels; ++i) full.add(i, 1, 1);
  CHECK_THROWS_AS(full.add(99, 1, 1), meshwise::Error);
}

}  // namespace
