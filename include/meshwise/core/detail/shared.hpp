// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

namespace meshwise::detail {

/// What an object has that counts its owners: its base, with a virtual destructor where owners know a base of it.
class Counting {
 public:
  Counting() = default;
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

 protected:
  ~Counting() = default;

 private:
  template <class T>
  friend class Shared;
  mutable long owners_ = 0;
};

/// One of the owners of an object that counts them: the part of std::shared_ptr that the library uses, see Owned.
/// Owners may be in different threads.
template <class T>
class Shared {
 public:
  Shared() = default;
  explicit Shared(T* object) : object_(object) { join(); }
  Shared(const Shared& other) : object_(other.object_) { join(); }
  Shared(Shared&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class Derived>
    requires(std::is_convertible_v<Derived*, T*>)
  Shared(Shared<Derived> other)
  noexcept : object_(other.release()) {}  // NOLINT: as pointers do
  Shared& operator=(Shared other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Shared() { reset(); }

  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }
  T* get() const { return object_; }
  friend bool operator==(const Shared& a, const Shared& b) { return a.object_ == b.object_; }
  friend bool operator==(const Shared& a, decltype(nullptr)) { return a.object_ == nullptr; }

  /// Owns nothing any more.
  void reset() noexcept {
    T* const object = release();
    if (object != nullptr && __atomic_sub_fetch(&object->owners_, 1, __ATOMIC_ACQ_REL) == 0) delete object;
  }
  /// Gives its part in the object to another owner.
  T* release() noexcept { return std::exchange(object_, nullptr); }

 private:
  void join() const {
    if (object_ != nullptr) __atomic_add_fetch(&object_->owners_, 1, __ATOMIC_RELAXED);
  }

  T* object_ = nullptr;
};

}  // namespace meshwise::detail
