// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

namespace meshwise {

namespace detail {

/// What can become an Owned<T>: an rvalue that would have deleted its object and has nothing to remember for that, such
/// as a std::unique_ptr with the default deleter.
template <class P, class T>
concept GivesAway = std::is_object_v<P> && !std::is_const_v<P> && sizeof(P) == sizeof(T*) && requires(P & owner) {
  typename P::deleter_type;
  { owner.release() } -> std::convertible_to<T*>;
};

}  // namespace detail

/// The one owner of an object: what interfaces take and give. A std::unique_ptr with the default deleter becomes one by
/// itself, one with another deleter must not; `release` goes the other way. (In libstdc++ 12 <memory> costs a compiler
/// as much as the rest of the standard library that the headers need.)
///
/// Cost: of a pointer. Lifetime: deletes the object; a base class has a virtual destructor.
template <class T>
class Owned {
 public:
  Owned() = default;
  Owned(decltype(nullptr)) {}  // NOLINT: as pointers do
  explicit Owned(T* object) : object_(object) {}
  Owned(Owned&& other) noexcept : object_(other.release()) {}
  template <class Derived>
    requires(std::is_convertible_v<Derived*, T*>)
  Owned(Owned<Derived>&& other)
  noexcept : object_(other.release()) {}  // NOLINT: as above
  template <detail::GivesAway<T> P>
  Owned(P&& other) : object_(other.release()) {}  // NOLINT: as above
  Owned& operator=(Owned other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owned() { delete object_; }

  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }
  T* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  friend bool operator==(const Owned& a, decltype(nullptr)) { return a.object_ == nullptr; }

  /// Gives the object away.
  T* release() noexcept { return std::exchange(object_, nullptr); }
  /// Deletes it.
  void reset() noexcept { delete release(); }

 private:
  T* object_ = nullptr;
};

}  // namespace meshwise
