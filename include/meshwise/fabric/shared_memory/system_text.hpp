// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>

#include "meshwise/fabric/shared_memory/descriptor.hpp"

namespace meshwise::detail {

/// What one of the files says in which the system describes itself (/proc, /sys); empty if it cannot be read.
inline std::string system_text(const std::string& path) {
  std::string text;
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return text;
  char part[8192];
  for (;;) {
    const ssize_t got = read(file.get(), part, sizeof(part));
    if (got > 0) {
      text.append(part, static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      return text;
    }
  }
}

}  // namespace meshwise::detail
