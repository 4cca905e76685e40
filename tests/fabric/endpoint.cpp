// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/endpoint.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/collective/send_receive.hpp"

using namespace meshwise;

namespace {

/// A fabric whose other ranks are silent: it notes what it is asked for.
class Notes final : public Endpoint {
 public:
  Notes(std::vector<std::string>& notes, int rank, int size) : Endpoint(rank, size), notes_(notes) {}

  Capabilities capabilities() const override { return {}; }
  void run(const Call& call) override {
    notes_.push_back(std::string("run ") + call.verb + " on " + std::to_string(call.shape.ranks));
  }
  std::unique_ptr<Sending> post_send(const char* verb, int to, std::uint64_t tag, const void*, std::size_t bytes,
                                     double seconds) override {
    notes_.push_back(std::string(verb) + " " + std::to_string(bytes) + " to " + std::to_string(to) + " tag " +
                     std::to_string(tag) + " within " + std::to_string(static_cast<int>(deadline(seconds))));
    class Done final : public Sending {
      void wait() override {}
    };
    return std::make_unique<Done>();
  }
  void receive(const char* verb, int from, std::uint64_t, void*, std::size_t bytes, double) override {
    notes_.push_back(std::string(verb) + " " + std::to_string(bytes) + " from " + std::to_string(from));
  }
  std::unique_ptr<Endpoint> split(int color, int) override {
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
