// SPDX-License-Identifier: Apache-2.0
#include "../../../benchmarks/bench/options.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

using harness::BadOption;
using harness::Options;
using harness::parse_options;
using harness::Verb;

std::string refusal(const std::vector<std::string>& words) {
  try {
    parse_options(words);
  } catch (const BadOption& bad) {
    return bad.what();
  }
  return "understood";
}

bool says(const std::vector<std::string>& words, const char* part) {
  const std::string text = refusal(words);
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("the options of nccl-tests mean what they mean there") {
  const Options options =
      parse_options({"all_gather", "-b", "1K", "-e",      "4M", "-f",         "4",  "-n", "7",  "-w", "3",
                     "-c",         "0",  "-o", "max,min", "-d", "half,int32", "-r", "1",  "-g", "4"});
  CHECK(options.verbs == std::vector<Verb>{Verb::all_gather});
  CHECK(options.least == 1024);
  CHECK(options.most == 4 << 20);
  CHECK(options.factor == 4);
  CHECK(options.step == 0);
  CHECK(options.iterations == 7);
  CHECK(options.warm_up == 3);
  CHECK(options.checks == 0);
  CHECK(options.redops == std::vector<harness::Redop>{harness::Redop::max, harness::Redop::min});
  CHECK(options.elements == std::vector<meshwise::ElementKind>{meshwise::ElementKind::f16, meshwise::ElementKind::i32});
  CHECK(options.root == 1);
  CHECK(options.ranks == std::vector<int>{4});
}

TEST_CASE("long names, joined values and lists") {
  const Options options = parse_options({"--minbytes=64", "-e1M", "--stepbytes=64K", "--ranks=2,4", "--fabric", "all",
                                         "--algorithm=ring,auto", "--buffers=all", "--cold", "--warm", "--in-place"});
  CHECK(options.verbs == std::vector<Verb>{Verb::all_reduce});
  CHECK(options.least == 64);
  CHECK(options.most == 1 << 20);
  CHECK(options.step == 65536);
  CHECK(options.ranks == std::vector<int>{2, 4});
  CHECK(options.fabrics == std::vector<std::string>{"shared_memory", "thread"});
  CHECK(options.algorithms ==
        std::vector<meshwise::Algorithm>{meshwise::Algorithm::ring, meshwise::Algorithm::automatic});
  CHECK(options.registered);
  CHECK(options.foreign);
  CHECK(options.cold);
  CHECK(options.warm);
  CHECK(options.in_place);
  CHECK(!options.out_of_place);
  CHECK(parse_options({"all"}).verbs.size() == harness::verb_count);
  CHECK(parse_options({"--algorithm", "all"}).all_algorithms);
  CHECK(parse_options({"-h", "-r", "9"}).help);  // nobody who asks for help is corrected
}

TEST_CASE("what cannot be followed is refused with what would be right") {
  CHECK(says({"allreduce"}, "choose from all_reduce, reduce_scatter"));
  CHECK(says({"--nope"}, "--nope: there is no such option"));
  CHECK(says({"-n"}, "-n needs a value"));
  CHECK(says({"--json="}, "--json needs a value"));
  CHECK(says({"--cold=1"}, "--cold takes no value"));
  CHECK(says({"-b", "8q"}, "\"8q\" cannot be used; write bytes"));
  CHECK(says({"-b", "5T"}, "at most 4T"));
  CHECK(says({"-f", "1"}, "write a number above 1"));
  CHECK(says({"-f", "nan"}, "write a number above 1"));
  CHECK(says({"-n", "1e9"}, "write a number from 1 to 1000000"));
  CHECK(says({"-g", "0"}, "from 1 to 256"));
  CHECK(says({"-g", "2,,4"}, "names with ','"));
  CHECK(says({"-d", "fp8"}, "choose from float, double, bfloat16"));
  CHECK(says({"-o", "avg"}, "choose from sum, prod, min, max"));
  CHECK(says({"--algorithm", "custom"}, "choose from auto, direct, ring"));
  CHECK(says({"-b", "2M", "-e", "1M"}, "--minbytes 2M is more than --maxbytes 1M"));
  CHECK(says({"-r", "2"}, "--root 2 is no rank of 2"));
  CHECK(says({"--ragged"}, "all_to_all_v"));
  CHECK(says({"--peers", "a.json"}, "--html"));
  CHECK(says({std::string("\x1b[31m")}, "\"?[31m\""));  // nothing that a terminal would obey
  CHECK(refusal({"all_to_all_v", "--ragged"}) == "understood");
}

TEST_CASE("the help names every option") {
  const std::string help = harness::help_text;
  for (const char* name :
       {"--minbytes",  "--maxbytes", "--stepfactor",   "--stepbytes", "--iters",        "--warmup_iters",
        "--check",     "--op",       "--datatype",     "--root",      "--ranks",        "--fabric",
        "--algorithm", "--in-place", "--out-of-place", "--both",      "--buffers",      "--cold",
        "--warm",      "--rewrite",  "--ragged",       "--lanes",     "--reproducible", "--json",
        "--html",      "--peers",    "--seconds",      "--batch",     "--no-bind",      "--help"}) {
    CAPTURE(name);
    CHECK(help.find(name) != std::string::npos);
  }
}

}  // namespace
