// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace meshwise {

/// The version of these headers. CMake reads the three numbers from this file: they are written nowhere else.
inline constexpr int version_major = 0;
inline constexpr int version_minor = 1;
inline constexpr int version_patch = 0;

}  // namespace meshwise
