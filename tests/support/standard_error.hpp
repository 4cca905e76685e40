// SPDX-License-Identifier: Apache-2.0
// What a piece of a test writes to stderr.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>

namespace captured {

/// What a function and the threads that it starts write to descriptor 2.
template <class F>
std::string written(F function) {
  std::FILE* const file = std::tmpfile();
  if (file == nullptr) throw std::bad_exception();
  std::fflush(stderr);
  const int saved = dup(2);
  dup2(fileno(file), 2);
  const auto restore = [saved] {
    std::fflush(stderr);
    dup2(saved, 2);
    close(saved);
  };
  try {
    function();
  } catch (...) {
    restore();
    std::fclose(file);
    throw;
  }
  restore();
  std::fseek(file, 0, SEEK_END);
  std::string text(static_cast<std::size_t>(std::ftell(file)), ' ');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

}  // namespace captured
