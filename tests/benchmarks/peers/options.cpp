// SPDX-License-Identifier: Apache-2.0
#include "../../../benchmarks/peers/options.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

using namespace peers;

namespace {

Options parsed(const std::vector<const char*>& words) {
  std::vector<const char*> all{"meshwise-peers"};
  all.insert(all.end(), words.begin(), words.end());
  return options_of(static_cast<int>(all.size()), all.data());
}

std::string refusal(const std::vector<const char*>& words) {
  try {
    parsed(words);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("without options everything is compared") {
  const Options options = parsed({});
  CHECK(options.ranks == std::vector<int>{2, 4, 8});
  CHECK(options.operations.size() == static_cast<std::size_t>(operations));
  CHECK(options.pairs == 15);
  CHECK((options.registered && options.foreign && options.kept));
  CHECK(!options.rewritten);
  CHECK(sizes_of(options, Operation::all_reduce, 2).back() == std::size_t{256} << 20);
  CHECK(sizes_of(options, Operation::all_reduce, 8).back() == std::size_t{64} << 20);
  CHECK(sizes_of(options, Operation::barrier, 2).size() == 1);
}

TEST_CASE("lists are taken as they are given") {
  const Options options = parsed({"--ranks", "3,5", "--ops", "reduce,barrier", "--sizes", "8,32K,1M,2g", "--buffers",
                                  "foreign", "--inputs", "kept,rewritten", "--pairs", "7", "--only", "openmpi,ucc",
                                  "--peer", "own=mpiexec -n {ranks} x=y", "--bars", "--json", "out.json"});
  CHECK(options.ranks == std::vector<int>{3, 5});
  CHECK(options.operations == std::vector<Operation>{Operation::reduce, Operation::barrier});
  CHECK(options.sizes == std::vector<std::size_t>{8, 32768, 1 << 20, std::size_t{2} << 30});
  CHECK((!options.registered && options.foreign && options.kept && options.rewritten));
  CHECK(options.pairs == 7);
  CHECK(options.only == std::vector<std::string>{"openmpi", "ucc"});
  REQUIRE(options.more.size() == 1);
  CHECK(options.more[0].first == "own");
  CHECK(options.more[0].second == "mpiexec -n {ranks} x=y");
  CHECK((options.bars && options.json == "out.json"));
  CHECK(!parsed({"--rewrite"}).kept);
}

TEST_CASE("what is wrong is refused with its name") {
  CHECK(refusal({"--frobnicate"}).find("'--frobnicate'") != std::string::npos);
  CHECK(refusal({"--ops", "allreduce"}).find("'allreduce'") != std::string::npos);
  CHECK(refusal({"--ranks"}).find("needs a value") != std::string::npos);
  for (const char* bad : {"", "0", "1", "65", "two", "2,", "4x"}) CHECK(!refusal({"--ranks", bad}).empty());
  for (const char* bad : {"", "0", "-8", "8Q", "8KB", "K", "99999999999999999999", "9G"}) {
    CHECK_MESSAGE(!refusal({"--sizes", bad}).empty(), bad);
  }
  CHECK(refusal({"--buffers", "device"}).find("'device'") != std::string::npos);
  for (const char* bad : {"=x", "x=", "x"}) CHECK(!refusal({"--peer", bad}).empty());
}
