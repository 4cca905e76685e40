// SPDX-License-Identifier: Apache-2.0
#include <meshwise/fabric/thread/launch.hpp>
#include <meshwise/meshwise.hpp>

#include <span>
#include <vector>

// Three ranks add what they have; wrong sums end the program through the error path.
int main() {
  meshwise::launch(3, [](meshwise::Communicator& world) {
    std::vector<float> values(5, static_cast<float>(world.rank() + 1));
    meshwise::all_reduce(world, std::span<float>(values));
    for (const float value : values) {
      if (value != 6.0f) meshwise::fail("consumer", "6", std::to_string(value), "see all_reduce", world.rank());
    }
  });
}
