// SPDX-License-Identifier: Apache-2.0
// Ranks that die in the middle of something: between any two of the calls that the typed layer makes of its fabric.
#pragma once

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/fabric/endpoint.hpp"

namespace test {

using namespace meshwise;

/// What ends a rank without an error: its program catches it and returns.
struct Leaves {};

/// When a rank dies, and how.
struct Fate {
  int calls_left = -1;  ///< negative: it lives
  bool leaves = false;  ///< else it throws
  bool met = false;

  void call() {
    if (calls_left < 0 || calls_left-- > 0) return;
    met = true;
    if (leaves) throw Leaves{};
    throw std::runtime_error("out of luck");
  }
};

/// An endpoint, and those that are split off it, whose rank has a fate.
class Mortal final : public Endpoint {
 public:
  /// owned: null where somebody else owns the inner one.
  Mortal(Endpoint& inner, std::shared_ptr<Fate> fate, std::unique_ptr<Endpoint> owned = nullptr)
      : Endpoint(inner.rank(), inner.size()), owned_(std::move(owned)), inner_(&inner), fate_(std::move(fate)) {
    set_deadline(inner.deadline());
    set_axis(inner.axis());
  }

  Capabilities capabilities() const override { return inner_->capabilities(); }
  bool run(const Call& call) override { return living().run(call); }
  std::uint64_t digest(const Call& call) const override { return inner_->digest(call); }
  std::unique_ptr<Running> start(const Call& call) override { return living().start(call); }
  std::unique_ptr<Sending> post_send(const char* verb, int to, std::uint64_t tag, const void* data, std::size_t bytes,
                                     double seconds) override {
    return living().post_send(verb, to, tag, data, bytes, seconds);
  }
  void receive(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes, double seconds) override {
    living().receive(verb, from, tag, data, bytes, seconds);
  }
  bool try_receive(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes) override {
    return inner_->try_receive(verb, from, tag, data, bytes);  // how often it is asked is a matter of luck
  }
  std::string explain(const Question& question) override { return inner_->explain(question); }
  std::unique_ptr<Endpoint> split(int color, int key) override {
    auto end = living().split(color, key);
    if (end == nullptr) return nullptr;
    Endpoint& inner = *end;
    return std::make_unique<Mortal>(inner, fate_, std::move(end));
  }
  void abort(const char* reason) noexcept override { inner_->abort(reason); }

 private:
  Endpoint& living() {
    fate_->call();
    inner_->set_deadline(deadline());
    inner_->set_axis(axis());
    return *inner_;
  }
  void expectations_changed() override {
    const auto gone = [](const auto& from, const auto& in) {
      std::vector<Expectation*> result;
      for (Expectation* one : from) {
        if (std::find(in.begin(), in.end(), one) == in.end()) result.push_back(one);
      }
      return result;
    };
    for (Expectation* one : gone(inner_->expectations(), expectations())) inner_->expect_no_more(*one);
    for (Expectation* one : gone(expectations(), inner_->expectations())) inner_->expect(*one);
  }

  std::unique_ptr<Endpoint> owned_;
  Endpoint* inner_;
  std::shared_ptr<Fate> fate_;
};

}  // namespace test
