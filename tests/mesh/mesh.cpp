// SPDX-License-Identifier: Apache-2.0
#include "meshwise/mesh/mesh.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../support/launch.hpp"
#include "meshwise/collective/all_gather.hpp"

namespace {

using namespace meshwise;

void require(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

/// The world ranks of a line, in its order.
std::vector<int> members(Communicator& line, int world_rank) {
  std::vector<int> all(static_cast<std::size_t>(line.size()));
  all_gather(line, std::span<const int>(&world_rank, 1), std::span<int>(all));
  return all;
}

TEST_CASE("coordinates: the last axis varies fastest, and lines run along them") {
  for (const std::array<int, 3>& sizes : {std::array{1, 1, 1}, {2, 1, 3}, {3, 2, 1}, {2, 2, 2}, {1, 9, 1}}) {
    const int n = sizes[0] * sizes[1] * sizes[2];
    launch(n, [&](Communicator& world) {
      const Mesh<dp, cp, tp> mesh(world, sizes);
      const int rank = world.rank();
      const int k[] = {rank / (sizes[1] * sizes[2]), rank / sizes[2] % sizes[1], rank % sizes[2]};
      require(mesh.size<dp>() == sizes[0] && mesh.size<cp>() == sizes[1] && mesh.size<tp>() == sizes[2], "sizes");
      require(mesh.coordinate<dp>() == k[0] && mesh.coordinate<cp>() == k[1] && mesh.coordinate<tp>() == k[2],
              "coordinates");
      require(&mesh.world() == &world, "world");
      require(mesh.is_first() == (rank == 0), "is_first");

      const auto check = [&](Communicator& line, int axis, int stride, const char* name) {
        require(line.size() == sizes[static_cast<std::size_t>(axis)] && line.rank() == k[axis], "line");
        require(line.name() == name, "name");
        const std::vector<int> ranks = members(line, rank);
        for (int i = 0; i < line.size(); ++i) {
          require(ranks[static_cast<std::size_t>(i)] == rank + (i - k[axis]) * stride, "members");
        }
      };
      check(mesh.along<dp>(), 0, sizes[1] * sizes[2], "dp");
      check(mesh.along<cp>(), 1, sizes[2], "cp");
      check(mesh.along<tp>(), 2, 1, "tp");
    });
  }
}

TEST_CASE("handles share state; fewer axes are a view") {
  launch(6, [](Communicator& world) {
    const Mesh<dp, tp> mesh(world, {2, 3});
    const Mesh<dp, tp> copy = mesh;
    require(copy == mesh && &copy.memory() == &mesh.memory() && &copy.along<tp>() == &mesh.along<tp>(), "copy");
    require(mesh.borrowed() == mesh, "borrowed");

    const Mesh<tp> line = mesh.without<dp>();
    require(line.size<tp>() == 3 && line.coordinate<tp>() == mesh.coordinate<tp>(), "without");
    require(&line.along<tp>() == &mesh.along<tp>() && &line.memory() == &mesh.memory(), "without shares");
    require(line == mesh.only<tp>() && line == mesh.without<dp>(), "without and only");
    require(line.is_first() == (mesh.coordinate<tp>() == 0), "is_first of a view");
    const Mesh<> none = line.without<tp>();
    require(none.is_first() && &none.memory() == &mesh.memory(), "no axes");

    const Mesh<dp, tp> other(world, {2, 3});
    require(!(other == mesh) && &other.memory() != &mesh.memory(), "another mesh");
  });
}

TEST_CASE("the ranks along several axes, in row-major order; those with one rank drop out") {
  for (const std::array<int, 3>& sizes : {std::array{1, 1, 1}, {2, 1, 3}, {2, 2, 2}, {3, 1, 1}, {2, 3, 1}}) {
    launch(sizes[0] * sizes[1] * sizes[2], [&](Communicator& world) {
      const Mesh<dp, cp, tp> mesh(world, sizes);
      const int k[] = {mesh.coordinate<dp>(), mesh.coordinate<cp>(), mesh.coordinate<tp>()};
      const auto rank_at = [&](int a, int b, int c) { return (a * sizes[1] + b) * sizes[2] + c; };
      std::vector<int> expected;
      for (int a = 0; a < sizes[0]; ++a) {
        for (int c = 0; c < sizes[2]; ++c) expected.push_back(rank_at(a, k[1], c));
      }
      require(members(mesh.along<dp, tp>(), world.rank()) == expected, "dp and tp");
      require(&mesh.along<tp, dp>() == &mesh.along<dp, tp>(), "in any order");
      expected.clear();
      for (int b = 0; b < sizes[1]; ++b) {
        for (int c = 0; c < sizes[2]; ++c) expected.push_back(rank_at(k[0], b, c));
      }
      require(members(mesh.along<cp, tp>(), world.rank()) == expected, "cp and tp");
      require(members(mesh.without<dp>().along<cp, tp>(), world.rank()) == expected, "of a view");
      expected.clear();
      for (int rank = 0; rank < world.size(); ++rank) expected.push_back(rank);
      require(members(mesh.along<dp, cp, tp>(), world.rank()) == expected, "all");
      if (sizes[1] == 1 && sizes[0] > 1) {
        require(&mesh.along<dp, cp>() == &mesh.along<dp>(), "an axis of one rank drops out");
        require(&mesh.along<dp, cp, tp>() == (sizes[2] > 1 ? &world : &mesh.along<dp>()), "all are the world");
      }
      if (sizes[0] > 1 && sizes[1] > 1) require(mesh.along<dp, cp>().name() == (sizes[2] > 1 ? "dp+cp" : ""), "name");
    });
  }
}

TEST_CASE("some of the ranks along an axis: the others get nothing") {
  launch(8, [](Communicator& world) {
    const Mesh<pp, tp> mesh(world, {4, 2});
    const int stage = mesh.coordinate<pp>();
    const auto ends = mesh.only<pp>({3, 0});
    require(ends.has_value() == (stage == 0 || stage == 3), "members");
    if (ends) {
      require(ends->size<pp>() == 2 && ends->coordinate<pp>() == (stage == 3 ? 0 : 1), "in the given order");
      require(members(ends->along<pp>(), world.rank()) == std::vector<int>{6 + world.rank() % 2, world.rank() % 2},
              "ranks");
      require(ends->along<pp>().name() == "pp" && &ends->memory() == &mesh.memory(), "shares the mesh");
    }
    const auto both = mesh.narrowed<pp>({0, 3});
    require(both.has_value() == ends.has_value(), "members");
    if (both) {
      require(both->without<pp>() == mesh.without<pp>() && !(*both == mesh), "the same but for the axis");
      require(both->size<tp>() == 2 && both->coordinate<pp>() == (stage == 3 ? 1 : 0), "coordinates");
      require(members(both->along<pp, tp>(), world.rank()) == std::vector<int>{0, 1, 6, 7}, "both axes");
      const auto turned = both->narrowed<pp>({1, 0});
      require(members(turned->along<tp, pp>(), world.rank()) == std::vector<int>{6, 7, 0, 1}, "in the mesh's order");
    }
    const auto alone = mesh.narrowed<pp>({1});
    require(alone.has_value() == (stage == 1), "one");
    if (alone) require(members(alone->along<pp, tp>(), world.rank()) == std::vector<int>{2, 3}, "one");
    if (both) {
      const auto last = both->narrowed<pp>({1});
      require(last.has_value() == (stage == 3), "of a narrowed one");
    }
  });
  launch(2, [](Communicator& world) {
    const Mesh<tp> mesh(world, {2});
    const auto text_of = [&](std::initializer_list<int> coordinates) {
      try {
        (void)mesh.only<tp>(coordinates);
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    require(text_of({0, 2}).find("different coordinates of tp, each in [0, 2), found 2") != std::string::npos, "range");
    require(text_of({1, 1}).find("found 1 twice") != std::string::npos, "twice");
    require(text_of({}).find("found none") != std::string::npos, "none");
    require(text_of({-1}).find("found -1") != std::string::npos, "negative");
    const bool first = world.rank() == 0;
    const std::string order = first ? text_of({0, 1}) : text_of({1, 0});
    require(order.find("found \"{0, 1}\" on rank 0 and \"{1, 0}\" on rank 1") != std::string::npos, order.c_str());
    const std::string number = first ? text_of({0, 1}) : text_of({0});
    require(number.find("the same coordinates of tp on all ranks") != std::string::npos, number.c_str());
    const std::string bad = first ? text_of({0, 1}) : text_of({0, 5});
    require(bad.find(first ? "stopped by rank 1" : "found 5") != std::string::npos, bad.c_str());
    require(mesh.only<tp>({1, 0})->coordinate<tp>() == 1 - world.rank(), "the mesh goes on");
  });
  launch(12, [](Communicator& world) {
    const Mesh<dp, pp, tp> mesh(world, {2, 3, 2});
    const auto some = mesh.narrowed<pp>({2, 0});
    if (!some) return;
    std::vector<int> all;
    for (int d = 0; d < 2; ++d) {
      for (const int p : {2, 0}) {
        for (int t = 0; t < 2; ++t) all.push_back((d * 3 + p) * 2 + t);
      }
    }
    require(members(some->along<dp, pp, tp>(), world.rank()) == all, "row-major, the axis where it was");
    const auto line = [&](int d, int t) { return std::vector<int>{(d * 3 + 2) * 2 + t, d * 6 + t}; };
    require(members(some->along<pp>(), world.rank()) == line(mesh.coordinate<dp>(), mesh.coordinate<tp>()), "line");
    const int t = mesh.coordinate<tp>();
    require(members(some->along<pp, dp>(), world.rank()) == std::vector<int>{4 + t, t, 10 + t, 6 + t}, "dp, then pp");
  });
}

TEST_CASE("a view keeps the mesh alive, a borrowed handle does not") {
  launch(2, [](Communicator& world) {
    const Mesh<tp> line = Mesh<dp, tp>(world, {1, 2}).without<dp>();
    require(line.along<tp>().size() == 2 && members(line.along<tp>(), world.rank())[1] == 1, "the view works");
  });
}

TEST_CASE("an axis of the user's own, a mesh without axes, the memory's categories, the matrix products") {
  struct model : axis {};
  launch(2, [](Communicator& world) {
    const Mesh<model> mesh(world, {2});
    require(mesh.coordinate<model>() == world.rank(), "own axis");
    require(mesh.along<model>().name().find("model") != std::string::npos, "own name");
    require(mesh.gemm() == nullptr, "no products given");
    {
      const CategoryScope scope(mesh.memory(), Category::parameters);
      const Storage s = mesh.memory<Host>().allocate(100);
      require(mesh.memory().usage(Category::parameters).current == 100, "counted");
    }
    const auto* gemm = reinterpret_cast<const Gemm*>(&world);
    require(Mesh<model>(world, {2}, gemm).gemm() == gemm, "products given");
  });
  launch(1, [](Communicator& world) { require(Mesh<>(world, {}).is_first(), "no axes"); });
}

TEST_CASE("sizes that do not fit the ranks are errors that name both numbers") {
  const auto text_of = [](int ranks, const std::array<int, 2>& sizes) {
    std::string text;
    launch(ranks, [&](Communicator& world) {
      try {
        const Mesh<dp, tp> mesh(world, sizes);
      } catch (const Error& error) {
        if (world.rank() == 0) text = error.what();
      }
    });
    return text;
  };
  CHECK(text_of(4, {2, 3}) ==
        "Mesh<dp, tp> (rank 0): expected 4 ranks, the size of the communicator, found 2 x 3 = 6; choose sizes whose "
        "product is the number of ranks");
  CHECK(text_of(2, {0, 2}) ==
        "Mesh<dp, tp> (rank 0): expected at least 1 rank along every axis, found 0; give sizes of 1 or more");
  CHECK(text_of(2, {-1, -2}).find("found -1") != std::string::npos);
  CHECK(text_of(1, {1 << 20, 1 << 20}).find("1048576 x 1048576 = 1099511627776") != std::string::npos);
  CHECK(text_of(2, {1, 2}).empty());
  launch(2, [](Communicator& world) {
    std::string text;
    try {
      const Mesh<dp, cp, pp, tp> mesh(world, {1 << 16, 1 << 16, 1 << 16, 1 << 17});
    } catch (const Error& error) {
      text = error.what();
    }
    require(text.find("131072, which 64 bits cannot hold") != std::string::npos, text.c_str());
  });
  launch(6, [](Communicator& world) {
    std::string text;
    try {
      const Mesh<dp, tp> mesh(world, world.rank() == 4 ? std::array{3, 2} : std::array{2, 3});
    } catch (const Error& error) {
      text = error.what();
    }
    require(text.find("the same sizes on all ranks, found 2 x 3 on rank 0 and 3 x 2 on rank 4") != std::string::npos,
            text.c_str());
  });
}

}  // namespace
