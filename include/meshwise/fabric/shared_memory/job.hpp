// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "meshwise/core/error.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/fabric/memory/job.hpp"
#include "meshwise/fabric/shared_memory/attach.hpp"
#include "meshwise/fabric/shared_memory/control.hpp"
#include "meshwise/fabric/shared_memory/registration.hpp"
#include "meshwise/fabric/shared_memory/space.hpp"
#include "meshwise/schedule/settings.hpp"

namespace meshwise::detail {

/// A job of processes on one host, as one of them holds it.
class SharedMemoryJob final : public Job {
 public:
  /// settings: those of rank 0.
  SharedMemoryJob(std::unique_ptr<Space> space, const Settings& settings)
      : Job(space->cores(), space->ranks() > space->cores(), false, settings, &space->control().yields),
        space_(std::move(space)),
        registrations_(*space_),
        memory_(space_->arena().source()) {}

  /// A rank that has not failed has ended in peace. What is buried stays: others may still read it, and the memory goes
  /// with the last process that maps it.
  ~SharedMemoryJob() override {
    if (own().reported.load(std::memory_order_relaxed) == 0) own().state.store(RankRecord::left);
  }

  Space& space() { return *space_; }
  Registrations& registrations() { return registrations_; }

  const MemorySource* memory() const override { return &memory_; }

  const std::atomic<std::uint32_t>& failed() const override { return space_->control().failed; }

  Report cause() const override { return cause_of(*space_); }

  /// What the first rank that failed has said.
  static Report cause_of(Space& space) {
    const int rank = static_cast<int>(space.control().failed.load(std::memory_order_acquire)) - 1;
    if (rank < 0 || rank >= space.ranks()) return failure_of(-1, "it is not known which");
    const Error error(space.control().record(rank).report.unpack());
    return failure_of(rank, error.what());
  }

  void fail(int, const std::exception_ptr& error) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    RankRecord& record = own();
    if (record.reported.load(std::memory_order_relaxed) != 0) return;
    try {
      try {
        std::rethrow_exception(error);
      } catch (const Error& known) {
        record.report.pack(known.report());
      } catch (...) {
        Report report;
        report.code = Code::aborted;
        report.operation = "the program";
        report.rank = space_->rank();
        report.found = text_of(error);
        record.report.pack(report);
      }
    } catch (...) {
      // Without memory for the text the code alone must do.
      record.report.code = static_cast<std::uint8_t>(Code::aborted);
    }
    record.reported.store(1, std::memory_order_release);
    std::uint32_t nobody = 0;
    space_->control().failed.compare_exchange_strong(nobody, static_cast<std::uint32_t>(space_->rank()) + 1);
  }

  void recovers() noexcept override { own().shrinks.fetch_add(1, std::memory_order_relaxed); }

  void* allocate(std::size_t bytes) override {
    const std::size_t whole = bytes + header;
    auto* const memory = static_cast<std::byte*>(space_->arena().allocate(whole, header));
    if (memory == nullptr) throw std::bad_alloc();
    std::memcpy(memory, &whole, sizeof(whole));
    return memory + header;
  }

  void release(void* memory) noexcept override {
    std::byte* const begin = static_cast<std::byte*>(memory) - header;
    std::size_t whole = 0;
    std::memcpy(&whole, begin, sizeof(whole));
    space_->arena().release(begin, whole);
  }

  bool died(int rank) const override { return space_->dead(rank); }

  std::string ending(int rank) const override {
    const bool known = space_->control().record(rank).ended.load(std::memory_order_acquire) != 0;
    return known ? space_->how_it_ended(rank) : std::string();
  }

  const void* reach(const void* data, std::size_t bytes) override {
    if (space_->addressable(data, bytes)) return data;
    const std::lock_guard<std::mutex> lock(registering_);
    return registrations_.alias(data, bytes);
  }

  void enroll(void* data, std::size_t bytes) override {
    const std::lock_guard<std::mutex> lock(registering_);
    registrations_.add(data, bytes);
  }

  void dismiss(void* data) noexcept override {
    const std::lock_guard<std::mutex> lock(registering_);
    try {
      registrations_.remove(data);
    } catch (...) {
      // It stays registered, which does no harm while the job lives.
    }
  }

  bool attaches() const override { return attaches_; }
  void set_attaches(bool value) { attaches_ = value; }

  bool read_private(int rank, void* to, const void* from, std::size_t bytes) override {
    const auto pid = static_cast<pid_t>(space_->control().record(rank).pid.load(std::memory_order_relaxed));
    return attach_and_read(pid, to, from, bytes);
  }

  bool write_private(int rank, void* to, const void* from, std::size_t bytes) override {
    const auto pid = static_cast<pid_t>(space_->control().record(rank).pid.load(std::memory_order_relaxed));
    return attach_and_write(pid, to, from, bytes);
  }

  const char* shared_text(const char* literal) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = texts_.find(literal);
    if (known != texts_.end()) return known->second;
    const std::size_t bytes = std::strlen(literal) + 1;
    auto* const copy = static_cast<char*>(allocate(bytes));
    std::memcpy(copy, literal, bytes);
    return texts_.emplace(literal, copy).first->second;
  }

 private:
  static constexpr std::size_t header = 128;

  RankRecord& own() { return space_->control().record(space_->rank()); }

  std::unique_ptr<Space> space_;
  Registrations registrations_;
  MemorySource memory_;
  bool attaches_ = false;
  std::mutex registering_;
  std::mutex mutex_;
  std::map<const void*, const char*> texts_;  ///< by their addresses here; they stay until the job ends
};

}  // namespace meshwise::detail
