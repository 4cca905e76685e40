// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <utility>

namespace meshwise::detail {

/// A growable array for what is internal: the part of std::vector that the library uses, in constant expressions too.
///
/// Every element type costs a compiler 1 ms instead of 10, and the library has dozens of them. Interfaces keep
/// std::vector. T is default constructible and assignable: the elements between size() and what is reserved exist, and
/// those that are taken away are assigned T().
template <class T>
class List {
 public:
  using value_type = T;

  constexpr List() = default;
  constexpr explicit List(std::size_t size) { resize(size); }
  constexpr List(std::size_t size, const T& value) { resize(size, value); }
  constexpr List(std::initializer_list<T> values) : List(values.begin(), values.end()) {}
  constexpr List(const T* first, const T* last) : List() { append(first, last); }
  constexpr List(const List& other) : List(other.begin(), other.end()) {}
  constexpr List(List&& other) noexcept { swap(other); }
  constexpr List& operator=(List other) noexcept {
    swap(other);
    return *this;
  }
  constexpr ~List() { delete[] data_; }

  constexpr void swap(List& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
  }

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* data() { return data_; }
  constexpr const T* data() const { return data_; }
  constexpr T* begin() { return data_; }
  constexpr const T* begin() const { return data_; }
  constexpr T* end() { return data_ + size_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr T& operator[](std::size_t i) { return data_[i]; }
  constexpr const T& operator[](std::size_t i) const { return data_[i]; }
  constexpr T& front() { return data_[0]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr T& back() { return data_[size_ - 1]; }
  constexpr const T& back() const { return data_[size_ - 1]; }

  constexpr void reserve(std::size_t room) {
    if (room <= room_) return;
    List grown;
    grown.data_ = new T[room]();
    grown.room_ = room;
    for (; grown.size_ < size_; ++grown.size_) grown.data_[grown.size_] = std::move(data_[grown.size_]);
    swap(grown);
  }

  constexpr void push_back(T value) {
    if (size_ == room_) reserve(room_ < 2 ? 4 : 2 * room_);
    data_[size_++] = std::move(value);
  }
  constexpr void pop_back() { data_[--size_] = T(); }
  constexpr void clear() { resize(0); }

  constexpr void resize(std::size_t size) {
    reserve(size);
    while (size_ > size) pop_back();
    size_ = size;
  }
  constexpr void resize(std::size_t size, const T& value) {
    reserve(size);
    while (size_ > size) pop_back();
    while (size_ < size) data_[size_++] = value;
  }
  constexpr void assign(std::size_t size, const T& value) {
    clear();
    resize(size, value);
  }

  /// Appends copies of elements that are not in this list.
  constexpr void append(const T* first, const T* last) {
    reserve(size_ + static_cast<std::size_t>(last - first));
    for (; first != last; ++first) data_[size_++] = *first;
  }

  /// Puts a value before the element at `at`, or at the end.
  constexpr void insert(std::size_t at, T value) {
    push_back(std::move(value));
    for (std::size_t i = size_ - 1; i > at; --i) std::swap(data_[i], data_[i - 1]);
  }

  /// Takes `count` elements from `at` on away; the others keep their order.
  constexpr void erase(std::size_t at, std::size_t count = 1) {
    for (std::size_t i = at; i + count < size_; ++i) data_[i] = std::move(data_[i + count]);
    resize(size_ - count);
  }

  friend constexpr bool operator==(const List& a, const List& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i) {
      if (!(a.data_[i] == b.data_[i])) return false;
    }
    return true;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

/// Elements that lie one behind the other and are only read: what std::span<const T> is, whose constructors make a
/// compiler prove of every pointer that it is an iterator, for 8 ms each.
template <class T>
class View {
 public:
  constexpr View() = default;
  constexpr View(const T* data, std::size_t size) : data_(data), size_(size) {}
  template <class Elements>
  constexpr View(const Elements& all) : data_(all.data()), size_(all.size()) {}  // NOLINT: a view of these

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* data() const { return data_; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace meshwise::detail
