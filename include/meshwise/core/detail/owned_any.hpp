// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace meshwise::detail {

/// The one owner of an object whose type only those know who put it here.
class OwnedAny {
 public:
  OwnedAny() = default;
  OwnedAny(OwnedAny&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)), remove_(std::exchange(other.remove_, nullptr)) {}
  OwnedAny& operator=(OwnedAny other) noexcept {
    std::swap(object_, other.object_);
    std::swap(remove_, other.remove_);
    return *this;
  }
  ~OwnedAny() {
    if (remove_ != nullptr) remove_(object_);
  }

  /// Owns this object instead.
  template <class T>
  void own(T* object) {
    OwnedAny added;
    added.object_ = object;
    added.remove_ = [](void* old) { delete static_cast<T*>(old); };
    *this = std::move(added);
  }

  /// What is owned, of the type that it was put here as; null if there is nothing.
  template <class T>
  T* get() const {
    return static_cast<T*>(object_);
  }

 private:
  void* object_ = nullptr;
  void (*remove_)(void*) = nullptr;
};

}  // namespace meshwise::detail
