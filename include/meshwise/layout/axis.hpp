// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

namespace meshwise {

/// Base of mesh axes: `struct tp : meshwise::axis {};` makes a new one.
struct axis {};

/// An empty tag type that names an axis of a mesh.
template <class A>
concept Axis = std::is_base_of_v<axis, A> && std::is_empty_v<A> && !std::is_same_v<axis, A>;

struct dp : axis {};  ///< data parallelism
struct tp : axis {};  ///< tensor (and sequence) parallelism
struct cp : axis {};  ///< context parallelism
struct pp : axis {};  ///< pipeline parallelism
struct ep : axis {};  ///< expert parallelism

/// Ranks in a grid with named axes, the last one varying fastest. Defined in mesh/mesh.hpp; layouts only name it.
template <Axis... Axes>
class Mesh;

}  // namespace meshwise
