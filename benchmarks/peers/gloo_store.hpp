// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gloo/rendezvous/store.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace peers {

/// Where ranks of Gloo find each other: memory that forks share, so that no file is left behind.
class ForkedStore : public gloo::rendezvous::Store {
 public:
  /// Made before the ranks are forked.
  ForkedStore() {
    void* const memory = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    table_ = static_cast<Table*>(memory);
  }

  void set(const std::string& key, const std::vector<char>& data) override {
    const std::uint32_t place = table_->taken.fetch_add(1);
    if (place >= Table::most || key.size() >= sizeof(Entry::key) || data.size() > sizeof(Entry::data)) {
      throw std::length_error("ForkedStore: no room for " + key);
    }
    Entry& entry = table_->entries[place];
    std::memcpy(entry.key, key.c_str(), key.size() + 1);
    std::memcpy(entry.data, data.data(), data.size());
    entry.bytes = static_cast<std::uint32_t>(data.size());
    entry.ready.store(1, std::memory_order_release);
  }

  std::vector<char> get(const std::string& key) override {
    wait({key});
    const Entry* const entry = find(key);
    return {entry->data, entry->data + entry->bytes};
  }

  void wait(const std::vector<std::string>& keys) override { wait(keys, std::chrono::seconds(30)); }

  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    const auto end = std::chrono::steady_clock::now() + timeout;
    for (const std::string& key : keys) {
      while (find(key) == nullptr) {
        if (std::chrono::steady_clock::now() > end) throw std::runtime_error("ForkedStore: no rank has set " + key);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }

 private:
  struct Entry {
    std::atomic<std::uint32_t> ready;
    std::uint32_t bytes;
    char key[120];
    char data[8192];
  };
  struct Table {
    static constexpr std::uint32_t most = 512;
    std::atomic<std::uint32_t> taken;
    Entry entries[most];
  };

  const Entry* find(const std::string& key) const {
    for (const Entry& entry : table_->entries) {
      if (entry.ready.load(std::memory_order_acquire) != 0 && key == entry.key) return &entry;
    }
    return nullptr;
  }

  Table* table_;
};

}  // namespace peers
