// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/collective/detail/arguments.hpp"
#include "meshwise/fabric/endpoint.hpp"

namespace meshwise {

/// A buffer of the caller's own that all ranks of the job reach as they reach tensors, as long as this object lives.
///
/// Lifetime: movable; must not outlive the communicator that it was made with, nor be outlived by the buffer's memory:
/// deregister first, then free. After that the contents are what they were.
class RegisteredBuffer {
 public:
  RegisteredBuffer() = default;
  RegisteredBuffer(Endpoint& endpoint, void* data, std::size_t bytes) : endpoint_(&endpoint), data_(data) {
    endpoint.enroll(data, bytes);
  }
  RegisteredBuffer(RegisteredBuffer&& other) noexcept
      : endpoint_(std::exchange(other.endpoint_, nullptr)), data_(other.data_) {}
  RegisteredBuffer& operator=(RegisteredBuffer&& other) noexcept {
    if (this == &other) return *this;
    deregister();
    endpoint_ = std::exchange(other.endpoint_, nullptr);
    data_ = other.data_;
    return *this;
  }
  ~RegisteredBuffer() { deregister(); }

  /// The same as destroying it.
  void deregister() noexcept {
    if (endpoint_ != nullptr) std::exchange(endpoint_, nullptr)->dismiss(data_);
  }

 private:
  Endpoint* endpoint_ = nullptr;
  void* data_ = nullptr;
};

/// Registers a buffer: on fabrics of processes its pages become pages that all ranks map, so that collectives and
/// messages on any part of it, on any communicator of the job, go directly. Elsewhere, and for memory that is so anyway
/// (what tensors lie in), there is nothing to do.
///
/// data: anything contiguous. Whole pages change their owner, with what else lies in them: nobody may write into them
/// during this call and during deregistration. Registered buffers may share pages, as small vectors do, and are
/// deregistered in any order; but while one is registered that shares a page with others, these must not be part of an
/// unfinished operation. Large buffers are best aligned to pages.
/// Cost: not collective, nobody waits. About 1 ms per MiB, once, counting the buffers that it shares pages with; memory
/// that is locked or known to a device loses that.
/// Errors: `invalid_argument` for what cannot be registered (read-only or shared memory, stacks, buffers of which a
/// part is registered), `out_of_memory`; the buffer is then as before.
template <detail::Writable Data>
[[nodiscard]] RegisteredBuffer register_buffer(Communicator& communicator, Data&& data) {
  const auto all = detail::writing(data);
  return RegisteredBuffer(communicator.endpoint("register_buffer"), static_cast<void*>(all.data()), all.size_bytes());
}

}  // namespace meshwise
