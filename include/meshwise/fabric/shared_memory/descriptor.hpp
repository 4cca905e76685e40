// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

namespace meshwise::detail {

/// The one owner of a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

/// The one owner of mapped pages. A forked child of the owner, which may have mapped something else there, leaves them
/// alone.
class MappedPages {
 public:
  MappedPages() = default;
  MappedPages(void* begin, std::size_t bytes) : begin_(begin), bytes_(bytes), owner_(getpid()) {}
  MappedPages(MappedPages&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), bytes_(other.bytes_), owner_(other.owner_) {}
  MappedPages& operator=(MappedPages other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(bytes_, other.bytes_);
    std::swap(owner_, other.owner_);
    return *this;
  }
  ~MappedPages() {
    if (begin_ != nullptr && mine()) munmap(begin_, bytes_);
  }

  void* begin() const { return begin_; }
  std::size_t bytes() const { return bytes_; }
  bool mine() const { return owner_ == getpid(); }
  void* release() { return std::exchange(begin_, nullptr); }

 private:
  void* begin_ = nullptr;
  std::size_t bytes_ = 0;
  pid_t owner_ = 0;
};

}  // namespace meshwise::detail
