// SPDX-License-Identifier: Apache-2.0
#include "meshwise/mesh/mesh.hpp"

#include <doctest/doctest.h>

#include <array>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "meshwise/collective/all_gather.hpp"
#include "meshwise/fabric/thread/launch.hpp"

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
}

}  // namespace
