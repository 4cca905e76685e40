// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "job.hpp"
#include "sizes.hpp"

namespace harness {

Board::Board(std::size_t capacity) : capacity_(capacity), bytes_(sizeof(Head) + capacity * sizeof(Point)) {
  void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  head_ = static_cast<Head*>(memory);
  points_ = reinterpret_cast<Point*>(static_cast<std::byte*>(memory) + sizeof(Head));
}

Board::~Board() { munmap(head_, bytes_); }

void Board::add(const Point& point) {
  if (head_->size < capacity_) points_[head_->size++] = point;
}

std::int64_t Board::wrong() const {
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < size(); ++k) {
    sum += std::max<std::int64_t>(0, points_[k].out_of_place.wrong);
    sum += std::max<std::int64_t>(0, points_[k].in_place.wrong);
  }
  return sum;
}

std::size_t most_points(const Options& o) {
  std::size_t roots = 1;
  if (o.root < 0) roots = static_cast<std::size_t>(*std::max_element(o.ranks.begin(), o.ranks.end()));
  return o.verbs.size() * sweep(o.least, o.most, o.factor, o.step).size() * o.elements.size() * o.redops.size() *
         o.ranks.size() * o.fabrics.size() * o.algorithms.size() * roots * 4;
}

}  // namespace harness
