// SPDX-License-Identifier: Apache-2.0
// Units of tensors that have nothing to do with each other, and gradients that are made up: what arrives is the sum.
#include <doctest/doctest.h>

#include "meshwise/parallel/zero.hpp"
#include "meshwise/tensor/reshard.hpp"
#include "support.hpp"

namespace {

using namespace test;

using Line = Tensor<double, Dims<flat>, Layout<Grid>>;
using Number = Tensor<double, Dims<>, Layout<Grid>>;
using Part = Tensor<double, Dims<ffn>, Layout<Grid, Shard<ffn, tp>>>;
template <class T>
using OwedOf = detail::owed_over<T, Mesh<dp>>;

/// A gradient that every rank along dp has one of its own of; small integers, whose sums are exact.
template <class T>
OwedOf<T> gradient(const Grid& mesh, const Extents<typename T::dims>& extents, std::uint64_t seed) {
  OwedOf<T> result(mesh, extents);
  const std::uint64_t own = stream_seed(seed, static_cast<std::uint64_t>(mesh.coordinate<dp>()));
  const auto values = result.mutable_local();
  detail::for_each_index(result, [&](const auto& index, std::size_t i) {
    values[i] = static_cast<double>(random_bits(own, index.linear) % 41) - 20;
  });
  return result;
}
template <class T>
std::vector<double> sum_of(const Grid& mesh, const Extents<typename T::dims>& extents, std::uint64_t seed) {
  return piece(convert<Replicate<dp>>(gradient<T>(mesh, extents, seed)));
}

/// What an update has seen of a unit: parameters and gradients, whole.
template <class Z>
std::vector<std::vector<double>> gradients_of(const Grid& mesh, Z& zero) {
  std::vector<std::vector<double>> all;
  for (std::size_t u = 0; u < zero.units(); ++u) {
    const auto& own = zero.gradient(u);
    std::vector<double> values = piece(reshard<Layout<Mesh<dp>>>(own));
    all.push_back(std::move(values));
  }
  static_cast<void>(mesh);
  return all;
}

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}
bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

/// Runs a check with every stage.
template <class F>
void with_stages(const F& f) {
  f(std::type_identity<DataParallel<dp>>{}, "data parallel");
  f(std::type_identity<Zero1<dp>>{}, "stage 1");
  f(std::type_identity<Zero2<dp>>{}, "stage 2");
  f(std::type_identity<Zero3<dp>>{}, "stage 3");
  f(std::type_identity<Zero3Unresharded<dp>>{}, "stage 3 unresharded");
}

std::vector<double> joined(std::vector<double> a, const std::vector<double>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("zero: parameters smaller than the group, empty ones and empty units, unused ones, frozen ones") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 1}, Ranks{5, 1}, Ranks{2, 3}, Ranks{3, 2}}) {
    on_grid(ranks, [](const Grid& mesh) {
      with_stages([&]<class Stage>(std::type_identity<Stage>, const std::string& what) {
        Zero<Stage, double, Grid> zero(mesh);
        zero.begin_unit();
        const auto number = zero.add(random<Number>(mesh, {}, 1));
        const auto none = zero.add(Line(mesh, {0}));
        const auto part = zero.add(random<Part>(mesh, {4}, 2));
        const auto still = zero.add_frozen(random<Part>(mesh, {5}, 3));
        zero.begin_unit();  // no parameters at all
        zero.begin_unit();
        const auto fixed = zero.add_frozen(random<Line>(mesh, {3}, 4));  // nothing to train
        zero.begin_unit();
        const auto empty = zero.add(Line(mesh, {0}));
        zero.begin_unit();
        const auto idle = zero.add(random<Line>(mesh, {3}, 5));
        for (int step = 0; step < 3; ++step) {
          const double shift = 10.0 * step;
          for (std::size_t u = 0; u < zero.units(); ++u) {
            zero.forward(u, [&](const auto& p) {
              if (u == 0) {
                require(std::abs(p[number].local()[0] - random<Number>(mesh, {}, 1).local()[0] - shift) < 1e-12,
                        what + ": the number");
                require(p[none].local().empty() && p[none].extents() == Extents<Dims<flat>>{0}, what + ": nothing");
                require(piece(p[still]) == piece(random<Part>(mesh, {5}, 3)), what + ": a frozen part");
              } else if (u == 2) {
                require(piece(p[fixed]) == piece(random<Line>(mesh, {3}, 4)), what + ": all frozen");
              }
            });
          }
          for (std::size_t u = zero.units(); u-- > 0;) {
            zero.backward(u, [&](const auto&, auto& g) {
              if (u == 3) g.add(empty, gradient<Line>(mesh, {0}, 1));
              if (u != 0) return;
              g.add(part, gradient<Part>(mesh, {4}, 7));
              g.add(none, gradient<Line>(mesh, {0}, 1));
              if (mesh.coordinate<dp>() == 0) g.add(number, gradient<Number>(mesh, {}, 8));  // unused by the others
            });
          }
          zero.finish();
          const auto all = gradients_of(mesh, zero);
          std::vector<double> of_number{mesh.coordinate<dp>() == 0 ? gradient<Number>(mesh, {}, 8).local()[0] : 0.0};
          OwedOf<Number> sum(mesh, {});
          sum.mutable_local()[0] = of_number[0];
          require(all[0] == joined(piece(convert<Replicate<dp>>(sum)), sum_of<Part>(mesh, {4}, 7)), what + ": unit 0");
          require(all[1].empty() && all[2].empty() && all[3].empty(), what + ": units without gradients");
          require(all[4] == std::vector<double>(3, 0.0), what + ": a unit that was never used");
          zero.update([&](std::size_t, auto& w, const auto&) {
            for (double& v : w.mutable_local()) v += 10;
          });
          require(zero.ranges(0).size() == 3 && zero.ranges(0)[2].begin == 1, what + ": where they lie");
        }
        zero.forward(4, [&](const auto& p) {
          for (std::size_t i = 0; i < 3; ++i) {
            require(std::abs(p[idle].local()[i] - random<Line>(mesh, {3}, 5).local()[i] - 30) < 1e-12, what + ": idle");
          }
        });
      });
    });
  }
}

TEST_CASE("zero: a unit that is used twice has the sum of its gradients") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 1}, Ranks{3, 1}}) {
    for (const std::size_t prefetch : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
      on_grid(ranks, [prefetch](const Grid& mesh) {
        with_stages([&]<class Stage>(std::type_identity<Stage>, const std::string& what) {
          Zero<Stage, double, Grid> zero(mesh, {prefetch, prefetch == 1});
          zero.begin_unit();
          const auto tied = zero.add(random<Line>(mesh, {7}, 1));  // an embedding that is the output projection
          zero.begin_unit();
          const auto inner = zero.add(random<Line>(mesh, {4}, 2));
          zero.set_order({0, 1, 1, 0});
          for (int step = 0; step < 2; ++step) {
            for (int m = 0; m < 2; ++m) {
              const auto quiet = zero.no_sync(m == 0);
              for (const std::size_t u : {0U, 1U, 1U, 0U}) {
                zero.forward(u, [&](const auto& p) {
                  const double first = u == 0 ? p[tied].local()[0] : p[inner].local()[0];
                  require(std::abs(first - random<Line>(mesh, {1}, u + 1).local()[0] - step) < 1e-12, what);
                });
              }
              std::uint64_t seed = static_cast<std::uint64_t>(10 * m);
              for (const std::size_t u : {0U, 1U, 1U, 0U}) {
                zero.backward(u, [&](const auto&, auto& g) {
                  if (u == 0) g.add(tied, gradient<Line>(mesh, {7}, seed));
                  if (u == 1) g.add(inner, gradient<Line>(mesh, {4}, seed));
                  if (u == 1) g.add(inner, gradient<Line>(mesh, {4}, seed));  // and within one use
                });
                ++seed;
              }
            }
            zero.finish();
            const auto expected = [&](std::size_t n, std::initializer_list<std::uint64_t> seeds) {
              std::vector<double> sum(n);
              for (const std::uint64_t seed : seeds) {
                const auto one = sum_of<Line>(mesh, {n}, seed);
                for (std::size_t i = 0; i < n; ++i) sum[i] += one[i];
              }
              return sum;
            };
            const auto all = gradients_of(mesh, zero);
            require(all[0] == expected(7, {0, 3, 10, 13}), what + ": the tied one");
            require(all[1] == expected(4, {1, 1, 2, 2, 11, 11, 12, 12}), what + ": the repeated one");
            zero.update([&](std::size_t, auto& w, const auto&) {
              for (double& v : w.mutable_local()) v += 1;
            });
          }
        });
      });
    }
  }
}

TEST_CASE("zero: a unit that is used twice is reduced once in each micro-batch, with the same bits in all stages") {
  constexpr std::size_t tied_size = 7, inner_size = 5;
  const auto rough = [](const Grid& mesh, std::size_t n, std::uint64_t seed) {
    OwedOf<Line> g = gradient<Line>(mesh, {n}, seed);
    for (double& v : g.mutable_local()) v = 0.1 * v + 1e-3;  // so that the order of additions shows
    return g;
  };
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 1}, Ranks{4, 1}, Ranks{3, 2}}) {
    on_grid(ranks, [&](const Grid& mesh) {
      std::vector<double> usual;
      with_stages([&]<class Stage>(std::type_identity<Stage>, const std::string& what) {
        Zero<Stage, double, Grid> zero(mesh);
        zero.begin_unit();
        const auto tied = zero.add(random<Line>(mesh, {tied_size}, 1));
        zero.begin_unit();
        const auto inner = zero.add(random<Line>(mesh, {inner_size}, 2));
        zero.set_order({0, 1, 0});
        for (const std::size_t u : {0U, 1U, 0U}) zero.forward(u, [](const auto&) {});
        const Traffic sent = traffic_of<dp>(mesh, [&] {
          std::uint64_t seed = 10;
          for (const std::size_t u : {0U, 1U, 0U}) {
            zero.backward(u, [&](const auto&, auto& g) {
              if (u == 0) g.add(tied, rough(mesh, tied_size, seed++));
              if (u == 1) g.add(inner, rough(mesh, inner_size, seed++));
            });
          }
          zero.finish();
        });
        std::vector<double> all;
        for (const auto& values : gradients_of(mesh, zero)) all = joined(std::move(all), values);
        if (usual.empty()) usual = all;
        require(all == usual, what + ": other bits");
        // Of stage 3 the parameters too: those of the unit that is dropped between its uses, and what was not kept.
        const std::uint64_t gathered = std::is_same_v<Stage, Zero3<dp>>              ? 2 * tied_size + inner_size
                                       : std::is_same_v<Stage, Zero3Unresharded<dp>> ? tied_size
                                                                                     : 0;
        const std::uint64_t sums = (std::is_same_v<Stage, DataParallel<dp>> ? 2 : 1) * (tied_size + inner_size);
        const auto n = static_cast<std::uint64_t>(mesh.size<dp>()), t = static_cast<std::uint64_t>(mesh.size<tp>());
        require(sum_over_ranks(mesh, sent.volume) == t * (n - 1) * (sums + gathered) * sizeof(double), what + ": sent");
      });
    });
  }
}

TEST_CASE("zero: the norm is that of the distinct elements, whatever the stage and the other axes") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 1}, Ranks{2, 3}, Ranks{3, 2}, Ranks{1, 4}}) {
    on_grid(ranks, [](const Grid& mesh) {
      GlobalNorm<Grid> expected(mesh);
      expected.add(convert<Replicate<dp>>(gradient<Part>(mesh, {5}, 1)));
      expected.add(convert<Replicate<dp>>(gradient<Line>(mesh, {7}, 2)));
      with_stages([&]<class Stage>(std::type_identity<Stage>, const std::string& what) {
        Zero<Stage, double, Grid> zero(mesh);
        zero.begin_unit();
        const auto part = zero.add(Part(mesh, {5}));
        const auto whole = zero.add(Line(mesh, {7}));
        zero.backward(0, [&](const auto&, auto& g) {
          g.add(whole, gradient<Line>(mesh, {7}, 2));
          g.add(part, gradient<Part>(mesh, {5}, 1));
        });
        zero.finish();
        GlobalNorm<Grid> norm(mesh);
        zero.add_gradients_to(norm);
        require(norm.norm() == expected.norm(), what);  // sums of squares of integers are exact
      });
    });
  }
}

TEST_CASE("zero: what cannot be is an error that says so") {
  on_grid({2, 1}, [](const Grid& mesh) {
    using Z = Zero<Zero3<dp>, double, Grid>;
    Z zero(mesh);
    require(contains(error_of([&] { (void)zero.add(Line(mesh, {3})); }), "call begin_unit first"), "no unit");
    require(contains(error_of([&] { zero.forward(0, [](const auto&) {}); }), "begin_unit says its number"), "no unit");
    zero.begin_unit();
    const auto a = zero.add(random<Line>(mesh, {5}, 1));
    zero.begin_unit();
    const auto b = zero.add(random<Line>(mesh, {5}, 2));
    require(contains(error_of([&] { zero.set_order({0, 2}); }), "a unit below 2"), "an order");
    require(contains(error_of([&] { zero.update([](auto...) {}); }), "call finish first"), "an update at once");
    require(contains(error_of([&] { (void)zero.gradient(0); }), "call finish first"), "a gradient at once");
    zero.forward(0, [&](const auto& p) {
      require(contains(error_of([&] { (void)p[b]; }), "a parameter of unit 0"), "another unit's");
      require(p[a].extents() == Extents<Dims<flat>>{5}, "its own");
    });
    require(contains(error_of([&] { zero.begin_unit(); }), "describe them first"), "too late");
    require(contains(error_of([&] { zero.set_order({0}); }), "set it first"), "too late");
    for (const std::size_t u : {1U, 0U}) {
      zero.backward(u, [&](const auto&, auto& g) {
        require(contains(error_of([&] { g.add(u == 0 ? b : a, gradient<Line>(mesh, {5}, 1)); }), "a parameter of unit"),
                "u");
        require(contains(error_of([&] { g.add(u == 0 ? a : b, gradient<Line>(mesh, {4}, 1)); }), "the extents"),
                "extents");
      });
    }
    require(contains(error_of([&] { zero.backward(0, [](const auto&, auto&) {}); }), "call finish and update"),
            "again");
    {
      const auto quiet = zero.no_sync();
      require(contains(error_of([&] { zero.finish(); }), "no_sync"), "within no_sync");
    }
    zero.finish();
    zero.update([](std::size_t, auto&, const auto&) {});
    require(contains(error_of([&] { zero.update([](auto...) {}); }), "call finish first"), "an update twice");
  });
}

TEST_CASE("zero: a parameter that somebody keeps stays what it was, and an exception leaves the others no deadlock") {
  on_grid({2, 1}, [](const Grid& mesh) {
    with_stages([&]<class Stage>(std::type_identity<Stage>, const std::string& what) {
      Zero<Stage, double, Grid> zero(mesh);
      zero.begin_unit();
      const auto a = zero.add(random<Line>(mesh, {50}, 1));
      const Line kept = zero.forward(0, [&](const auto& p) { return p[a]; });
      const auto before = piece(kept);
      require(before == piece(random<Line>(mesh, {50}, 1)), what);
      zero.backward(0, [&](const auto&, auto& g) { g.add(a, gradient<Line>(mesh, {50}, 1)); });
      zero.finish();
      zero.update([](std::size_t, auto& w, const auto&) {
        for (double& v : w.mutable_local()) v = 0;
      });
      require(piece(kept) == before, what + ": kept over an update");
      zero.forward(0, [&](const auto& p) {
        require(piece(p[a]) == std::vector<double>(50, 0.0), what + ": updated");
        return 0;
      });
    });
  });
  CHECK_THROWS_WITH_AS(on_grid({2, 1},
                               [](const Grid& mesh) {
                                 Zero<Zero3<dp>, double, Grid> zero(mesh);
                                 for (int u = 0; u < 3; ++u) {
                                   zero.begin_unit();
                                   (void)zero.add(random<Line>(mesh, {5000}, 1));
                                 }
                                 for (std::size_t u = 0; u < 3; ++u) {
                                   zero.forward(u, [&](const auto&) {
                                     if (u == 1 && mesh.is_first()) throw std::runtime_error("no more");
                                   });
                                 }
                               }),
                       doctest::Contains("no more"), std::exception);
}
