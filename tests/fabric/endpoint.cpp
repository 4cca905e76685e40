// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/endpoint.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/collective/group.hpp"
#include "meshwise/collective/send_receive.hpp"

using namespace meshwise;

namespace {

/// A fabric whose other ranks are silent: it notes what it is asked for.
class Notes final : public Endpoint {
 public:
  Notes(std::vector<std::string>& notes, int rank, int size) : Endpoint(rank, size), notes_(notes) {}

  Capabilities capabilities() const override { return {}; }
  bool run(const Call& call) override {
    notes_.push_back(std::string("run ") + call.verb + " on " + std::to_string(call.shape.ranks));
    return false;
  }
  Owned<Running> start(const Call& call) override {
    notes_.push_back(std::string("start ") + call.verb);
    return nullptr;
  }
  Owned<Sending> post_send(const char* verb, int to, std::uint64_t tag, const void*, std::size_t bytes,
                           double seconds) override {
    notes_.push_back(std::string(verb) + " " + std::to_string(bytes) + " to " + std::to_string(to) + " tag " +
                     std::to_string(tag) + " within " + std::to_string(static_cast<int>(deadline(seconds))));
    class Done final : public Sending {
      bool test() override { return true; }
      void wait() override {}
    };
    return std::make_unique<Done>();
  }
  void receive(const char* verb, int from, std::uint64_t, void*, std::size_t bytes, double) override {
    notes_.push_back(std::string(verb) + " " + std::to_string(bytes) + " from " + std::to_string(from));
  }
  bool try_receive(const char*, int, std::uint64_t, void*, std::size_t) override { return false; }
  Owned<Endpoint> split(int color, int) override {
    if (color < 0) return nullptr;
    return std::make_unique<Notes>(notes_, 0, 1);
  }
  void abort(const char* reason) noexcept override { notes_.push_back(reason); }

 private:
  std::vector<std::string>& notes_;
};

}  // namespace

TEST_CASE("a communicator knows nothing of its fabric but the endpoint") {
  std::vector<std::string> notes;
  Communicator communicator(std::make_unique<Notes>(notes, 2, 5));
  CHECK(communicator.rank() == 2);
  CHECK(communicator.size() == 5);
  std::vector<double> data(10);
  all_reduce(communicator, data);
  send(communicator, data, 4, MessageOptions{7, -1});
  communicator.set_deadline(30);
  exchange(communicator, std::span(data).first(3), 1, std::span(data).last(2), 0, MessageOptions{8, -1});
  communicator.abort("because");
  const std::vector<std::string> wanted = {"run all_reduce on 5", "send 80 to 4 tag 7 within 600",
                                           "exchange 24 to 1 tag 8 within 30", "exchange 16 from 0", "because"};
  CHECK(notes == wanted);
  CHECK(communicator.traffic() == Traffic{3, 1, (4 * 2 + 8) * 8 + 16, 16});
  CHECK(communicator.split(1).size() == 1);
  CHECK(communicator.split(-1).empty());
}

TEST_CASE("receives are asked of a fabric in the order in which they were begun") {
  std::vector<std::string> notes;
  Communicator communicator(std::make_unique<Notes>(notes, 0, 3));
  std::vector<std::uint8_t> data(100);
  const std::span all(data);
  Group first(communicator);
  first.receive(all.subspan(0, 1), 1, 5);
  first.receive(all.subspan(10, 2), 2, 5);
  first.receive(all.subspan(20, 3), 1, 5);
  Group second(communicator);
  second.receive(all.subspan(30, 4), 1, 5);
  second.receive(all.subspan(40, 5), 1, 6);
  Pending<void> one = first.start();
  Pending<void> two = second.start();
  CHECK_FALSE(two.test());
  receive(communicator, all.subspan(50, 6), 2, MessageOptions{6, -1});  // nobody else expects one like it
  two.wait();
  receive(communicator, all.subspan(60, 7), 2, MessageOptions{5, -1});
  one.wait();
  receive(communicator, all.subspan(70, 8), 1, MessageOptions{5, -1});
  const std::vector<std::string> wanted = {"receive 6 from 2", "group 1 from 1",  "group 3 from 1",
                                           "group 4 from 1",   "group 5 from 1",  "group 2 from 2",
                                           "receive 7 from 2", "receive 8 from 1"};
  CHECK(notes == wanted);
  CHECK(communicator.traffic().calls == 5);
  CHECK(communicator.traffic().messages == 8);
}
