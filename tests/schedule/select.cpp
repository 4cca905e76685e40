// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/select.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "../support/sanitized.hpp"
#include "../support/standard_error.hpp"
#include "all_shapes.hpp"
#include "meshwise/schedule/question.hpp"
#include "meshwise/schedule/verify.hpp"

using namespace meshwise;

namespace {

Question ask(Operation operation, int ranks, std::uint64_t bytes, int root = 0) {
  Question question;
  question.shape = Shape{operation, ranks, root, rooted(operation)};
  question.bytes = bytes;
  return question;
}

Topology network(int ranks) { return Topology::flat(ranks, Link::network()); }

/// Whether what was chosen does what was asked for.
void check_choice(const Selector& selector, const Question& question, const Choice& choice) {
  CAPTURE(describe(question));
  CAPTURE(question.bytes);
  CAPTURE(algorithm_name(choice.algorithm));
  const AnyGenerator generator = selector.catalogue().find(choice.algorithm);
  REQUIRE(generator.supports(question.shape));
  CHECK(choice.lanes >= 1);
  CHECK(choice.lanes <= 64);
  if (question.one_round) {
    CHECK(generator.rounds(question.shape) <= 1);
    CHECK(generator.scratch_slots(question.shape) == 0);
  }
  if (!combines(question.shape.operation) || (question.commutative && !question.reproducible)) return;
  const Verdict verdict = verify(materialise(generator, question.shape));
  CHECK(verdict.ok());
  if (question.reproducible) CHECK(verdict.canonical);
  if (!question.commutative) CHECK(verdict.in_rank_order);
}

std::string refusal(Selector& selector, const Question& question, Code code = Code::invalid_argument) {
  try {
    selector.choose(question);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "no error";
}

bool says(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

}  // namespace

TEST_CASE("what is chosen fits, for all operations, sizes and constraints") {
  std::vector<Topology> topologies;
  for (int p = 1; p <= 17; ++p) topologies.push_back(network(p));
  for (const int p : {31, 32, 48, 64}) topologies.push_back(network(p));
  topologies.push_back(Topology::nodes({3, 1, 5}));
  topologies.push_back(Topology::nodes({1, 1, 1}));
  topologies.push_back(Topology::torus({3, 4}));
  for (const Topology& topology : topologies) {
    Selector selector(topology);
    const int p = topology.ranks();
    if (building::sanitized && p > 5 && p != 8 && p != 9) continue;
    for (const Shape& shape : test::all_shapes(p)) {
      if (shape.root != 0 && shape.root != p - 1) continue;
      for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1000}, std::uint64_t{1} << 34}) {
        if (p > 17 && (bytes == 1000 || shape.root != 0)) continue;
        for (int flags = 0; flags < 16; ++flags) {
          Question question{shape, bytes, (flags & 1) != 0, (flags & 2) == 0, (flags & 4) != 0, (flags & 8) != 0};
          if (p > 17 && flags != 0 && flags != 3 && flags != 4) continue;
          try {
            check_choice(selector, question, selector.choose(question));
          } catch (const Error& error) {
            // Only what nothing does in one round.
            CAPTURE(std::string(error.what()));
            CHECK(error.code() == Code::unsupported);
            CHECK(question.one_round);
            const bool scan =
                shape.operation == Operation::inclusive_scan || shape.operation == Operation::exclusive_scan;
            CHECK((shape.in_place ? combines(shape.operation) : scan && question.reproducible));
          }
        }
      }
    }
  }
}

TEST_CASE("what the caller wants is done, or refused with the reason") {
  for (const int p : {1, 2, 6, 8}) {
    Selector selector(network(p), Settings::parse("bruck", ""));
    for (const Shape& shape : test::all_shapes(p)) {
      for (int k = 1; k < algorithm_count; ++k) {
        Question question{shape, 4096};
        question.memory = k % 2 == 0;
        question.wanted = static_cast<Algorithm>(k);
        if (selector.catalogue().find(question.wanted).supports(shape)) {
          CHECK(selector.choose(question).algorithm == question.wanted);
        } else {
          CHECK(says(refusal(selector, question), algorithm_name(question.wanted)));
        }
      }
    }
  }
  Selector selector(network(6));
  Question question = ask(Operation::gather, 6, 100, 2);
  question.wanted = Algorithm::circulant;
  CHECK(
      refusal(selector, question) ==
      "gather: expected an algorithm that fits gather on 6 ranks, root 2, in place, found circulant, which does not do "
      "this shape; leave the algorithm to the library");
  question.wanted = Algorithm::custom;
  CHECK(says(refusal(selector, question), "the caller's own"));
  question.wanted = Algorithm::torus;
  CHECK(says(refusal(selector, question), "needs a torus"));
  question = ask(Operation::all_reduce, 6, 100);
  question.wanted = Algorithm::ring;
  question.reproducible = true;
  CHECK(says(refusal(selector, question), "not proven to be reproducible"));
  question.reproducible = false;
  question.commutative = false;
  CHECK(says(refusal(selector, question), "not proven to combine in rank order"));
  question.commutative = true;
  question.one_round = true;
  CHECK(says(refusal(selector, question), "several rounds"));
}

TEST_CASE("what the settings force is done if it fits; else all go on alike, and one says so once") {
  const Settings settings = Settings::parse("all_reduce=circulant:lanes=3;broadcast=bruck", "gather=5");
  Selector forced(network(6), settings, true);
  Selector silent(network(6), settings);
  Selector free(network(6));
  for (const bool memory : {false, true}) {
    Question question = ask(Operation::all_reduce, 6, 1 << 20);
    question.memory = memory;
    CHECK(forced.choose(question) == Choice{Algorithm::circulant, 3});
    question.lanes = 7;
    CHECK(forced.choose(question) == Choice{Algorithm::circulant, 7});
    question.wanted = Algorithm::ring;
    CHECK(forced.choose(question) == Choice{Algorithm::ring, 7});
  }
  Question gather = ask(Operation::gather, 6, 1 << 20);
  CHECK(forced.choose(gather).lanes == 5);
  CHECK(forced.choose(gather).algorithm == free.choose(gather).algorithm);

  const std::string text = captured::written([&] {
    for (std::uint64_t bytes = 1; bytes < 1 << 20; bytes *= 4) {
      const Question broadcast = ask(Operation::broadcast, 6, bytes, 1);
      CHECK(forced.choose(broadcast) == free.choose(broadcast));
      CHECK(silent.choose(broadcast) == free.choose(broadcast));
    }
  });
  CHECK(
      says(text, "meshwise warning: MESHWISE_ALGORITHM: bruck does not fit broadcast on 6 ranks, root 1, in place; "));
  CHECK(text.find('\n') == text.size() - 1);

  // A constraint of the caller is never bent by the settings.
  Question exact = ask(Operation::all_reduce, 6, 1000);
  exact.reproducible = true;
  CHECK(silent.choose(exact).algorithm == free.choose(exact).algorithm);
}

TEST_CASE("ranks that address each other's buffers do it in one round") {
  Selector selector(Topology::flat(7));
  for (const Shape& shape : test::all_shapes(7)) {
    Question question{shape, 1 << 16, true};
    const Choice choice = selector.choose(question);
    CHECK(choice.algorithm == Algorithm::direct);
    if (selector.catalogue().find(Algorithm::direct).rounds(shape) == 1) CHECK(choice.lanes == 1);
  }
  const Routes routes(3, {{0, 1}, {2}, {}}, {{2}, {1}, {0, 2}});
  Selector three(network(3));
  Question exchange;
  exchange.shape = Shape{Operation::exchange, 3, 0, false, &routes};
  exchange.bytes = 100;
  exchange.one_round = true;
  CHECK(three.choose(exchange) == Choice{Algorithm::exchange, 1});
}

TEST_CASE("sizes of one class are treated alike, and what was asked before changes nothing") {
  for (const Topology& topology : {network(12), Topology::nodes({5, 7}), Topology::torus({3, 4})}) {
    Selector used(topology);
    for (int exponent = 0; exponent < 40; exponent += building::sanitized ? 13 : 1) {
      const std::uint64_t first = std::uint64_t{1} << exponent;
      for (const Operation operation : {Operation::all_reduce, Operation::broadcast, Operation::inclusive_scan}) {
        Selector fresh(topology);
        const Choice choice = used.choose(ask(operation, 12, first));
        CHECK(used.choose(ask(operation, 12, first + first / 3)) == choice);
        CHECK(used.choose(ask(operation, 12, 2 * first - 1)) == choice);
        CHECK(fresh.choose(ask(operation, 12, 2 * first - 1)) == choice);
      }
    }
  }
  // More questions than are remembered.
  Selector selector(network(3));
  std::vector<Choice> choices;
  for (int pass = 0; pass < 2; ++pass) {
    std::size_t next = 0;
    for (int lanes = 1; lanes <= (building::sanitized ? 600 : 1000); ++lanes) {
      Question question = ask(Operation::broadcast, 3, 1000, 2);
      question.lanes = lanes;
      const Choice choice = selector.choose(question);
      CHECK(choice.lanes == lanes);
      if (pass == 0) choices.push_back(choice);
      CHECK(choice == choices[next++]);
    }
  }
}

TEST_CASE("the choice follows the sizes and the wires") {
  Selector flat(network(64));
  // Latency for short ones, bandwidth for long ones.
  const auto rounds = [&](const Question& question) {
    return flat.catalogue().find(flat.choose(question).algorithm).rounds(question.shape);
  };
  CHECK(rounds(ask(Operation::all_reduce, 64, 8)) <= 6);
  const Question large = ask(Operation::broadcast, 64, std::uint64_t{1} << 30);
  const Choice tree = flat.choose(large);
  CHECK((tree.lanes > 1 || rounds(large) > 6));
  CHECK(flat.choose(ask(Operation::broadcast, 64, 1)).lanes == 1);

  Selector nodes(Topology::nodes(std::vector<int>(8, 8)));
  CHECK(nodes.choose(ask(Operation::all_reduce, 64, 1 << 24)).algorithm == Algorithm::hierarchical);
  Selector torus(Topology::torus({8, 8}));
  CHECK(torus.choose(ask(Operation::all_reduce, 64, 1 << 24)).algorithm == Algorithm::torus);
}

TEST_CASE("lanes are chosen so that predictions never fall when bytes grow") {
  const Catalogue catalogue(network(16));
  for (const Algorithm algorithm : {Algorithm::double_tree, Algorithm::binomial, Algorithm::ring, Algorithm::direct}) {
    float before = 0;
    for (int number = 0; number <= 40; ++number) {
      detail::Candidate one;
      const Shape shape{Operation::broadcast, 16, 3, true};
      predict(one, catalogue.find(algorithm), shape, detail::class_bytes(number), network(16), 0, 1 << 24);
      REQUIRE(one.cost.walked);
      CHECK(static_cast<float>(one.cost.seconds) >= before);
      before = static_cast<float>(one.cost.seconds);
    }
  }
  for (int number = 0; number <= 64; ++number) CHECK(detail::size_class(detail::class_bytes(number)) == number);
}

TEST_CASE("explain shows every algorithm, what is chosen, and why") {
  Selector selector(network(12), Settings::parse("gather=binomial", ""));
  const auto star = [](const std::string& text) {
    const std::size_t at = text.find("\n* ");
    REQUIRE(at != std::string::npos);
    return text.substr(at + 3, text.find(' ', at + 3) - at - 3);
  };
  for (const Operation operation : {Operation::all_reduce, Operation::gather, Operation::all_to_all}) {
    for (const bool memory : {false, true}) {
      Question question = ask(operation, 12, 5000);
      question.memory = memory;
      const std::string text = selector.explain(question);
      CAPTURE(text);
      for (int k = 1; k < algorithm_count - 1; ++k) {
        CHECK(says(text, std::string("\n  ") + algorithm_name(static_cast<Algorithm>(k)) + " ") +
                  says(text, std::string("\n* ") + algorithm_name(static_cast<Algorithm>(k)) + " ") ==
              1);
      }
      CHECK(star(text) == algorithm_name(selector.choose(question).algorithm));
      CHECK(says(text, operation_name(operation)));
      const bool forced = operation == Operation::gather;
      CHECK(says(text, forced ? "the settings force it" : memory ? "one fused round" : "the cheapest prediction"));
    }
  }
  Question wanted = ask(Operation::all_reduce, 12, 5000);
  wanted.wanted = Algorithm::ring;
  CHECK(says(selector.explain(wanted), "chosen: ring, 1 lane: the caller wants it\n"));
  wanted.wanted = Algorithm::automatic;
  wanted.reproducible = true;
  CHECK(says(selector.explain(wanted), "ring                 is not proven to be reproducible\n"));
  CHECK_THROWS_AS(selector.explain(ask(Operation::all_reduce, 5, 1)), Error);
}

TEST_CASE("questions that make no sense are refused") {
  Selector selector(network(4));
  CHECK(selector.choose(ask(Operation::all_reduce, 4, 1)).lanes == 1);
  CHECK(says(refusal(selector, ask(Operation::all_reduce, 5, 1)), "a valid shape of 4 ranks"));
  CHECK(says(refusal(selector, ask(Operation::all_reduce, 0, 1)), "a valid shape of 4 ranks"));
  CHECK(says(refusal(selector, ask(Operation::broadcast, 4, 1, 4)), "root 4"));
  CHECK(says(refusal(selector, ask(Operation::broadcast, 4, 1, -1)), "root -1"));
  for (const int lanes : {-1, 1025, 2047, 2048, 1 << 30}) {
    Question question = ask(Operation::all_reduce, 4, 1);
    question.lanes = lanes;
    CHECK(says(refusal(selector, question), "lanes from 0 to 1024"));
  }
  Question question = ask(Operation::exclusive_scan, 4, 100);
  question.shape.in_place = true;
  question.one_round = true;
  CHECK(refusal(selector, question, Code::unsupported) ==
        "exclusive_scan: expected an algorithm for exclusive_scan on 4 ranks, in place, in one round, found none that "
        "fits; drop a constraint");
}

TEST_CASE("a hundred thousand ranks") {
  constexpr int p = building::very_many_ranks;
  Selector selector(network(p), {}, false, std::int64_t{1} << 23);
  const Question question = ask(Operation::broadcast, p, 8);
  const Choice choice = selector.choose(question);
  CHECK(selector.catalogue().find(choice.algorithm).rounds(question.shape) <= 34);
}

namespace {

Settings measured(std::initializer_list<SelectionRule> rules) {
  Settings settings;
  for (const SelectionRule& rule : rules) settings.table.rules[settings.table.size++] = rule;
  return settings;
}

SelectionRule rule_of(Operation operation, Way way, Algorithm algorithm, int ranks, int lanes = 0,
                      std::uint64_t from = 0, std::uint64_t to = SelectionTable::no_end) {
  return SelectionRule{operation, way, algorithm, ranks, lanes, from, to};
}

}  // namespace

TEST_CASE("a measured table chooses where the model says something else, and explain says why") {
  const Settings settings =
      measured({rule_of(Operation::all_reduce, Way::memory, Algorithm::ring, 4, 2, 1 << 16, 1 << 20),
                rule_of(Operation::all_reduce, Way::messages, Algorithm::one_shot, 4)});
  Selector plain(Topology::flat(4));
  Selector selector(Topology::flat(4), settings);
  Question question = ask(Operation::all_reduce, 4, 1 << 17);
  question.memory = true;
  CHECK(plain.choose(question).algorithm == Algorithm::direct);
  CHECK(selector.choose(question) == Choice{Algorithm::ring, 2});
  CHECK(says(selector.explain(question), "chosen: ring, 2 lanes: the measured table says so (MESHWISE_TUNING)"));
  // Its range, to the byte, after others of its class have been asked for.
  for (const std::uint64_t bytes : {std::uint64_t{65535}, std::uint64_t{1} << 20, std::uint64_t{1} << 15}) {
    question.bytes = bytes;
    CHECK(selector.choose(question).algorithm == Algorithm::direct);
  }
  question.bytes = (1 << 20) - 1;
  CHECK(selector.choose(question).algorithm == Algorithm::ring);
  question.memory = false;
  CHECK(selector.choose(question).algorithm == Algorithm::one_shot);
  question.foreign = true;  // there are no rules for that way
  CHECK(selector.choose(question).algorithm == plain.choose(question).algorithm);
}

TEST_CASE("what the caller wants and what the settings force come before the table") {
  Settings settings = measured({rule_of(Operation::all_reduce, Way::memory, Algorithm::ring, 4, 2)});
  Selector selector(Topology::flat(4), settings);
  Question question = ask(Operation::all_reduce, 4, 4096);
  question.memory = true;
  question.lanes = 3;
  CHECK(selector.choose(question) == Choice{Algorithm::ring, 3});
  question.wanted = Algorithm::circulant;
  CHECK(selector.choose(question).algorithm == Algorithm::circulant);
  settings.of(Operation::all_reduce).algorithm = Algorithm::two_shot;
  Selector forced(Topology::flat(4), settings);
  question.wanted = Algorithm::automatic;
  CHECK(forced.choose(question).algorithm == Algorithm::two_shot);
}

TEST_CASE("a rule that cannot do a call leaves it to the model") {
  const Settings settings = measured({rule_of(Operation::all_reduce, Way::memory, Algorithm::ring, 3),
                                      rule_of(Operation::all_reduce, Way::messages, Algorithm::torus, 3),
                                      rule_of(Operation::all_gather, Way::memory, Algorithm::halving_doubling, 3),
                                      rule_of(Operation::all_to_all, Way::memory, Algorithm::bruck, 3)});
  Selector plain(Topology::flat(3));
  Selector selector(Topology::flat(3), settings);
  const auto same = [&](const Question& question) {
    CAPTURE(describe(question));
    CHECK(selector.rule(question) == nullptr);
    CHECK(selector.choose(question) == plain.choose(question));
  };
  Question question = ask(Operation::all_reduce, 3, 4096);
  same(question);  // no torus
  question.memory = true;
  CHECK(selector.choose(question).algorithm == Algorithm::ring);
  question.reproducible = true;
  same(question);
  question.reproducible = false;
  question.commutative = false;
  same(question);
  question.commutative = true;
  question.narrow = true;  // a ring rounds at every hop
  same(question);
  Question other = ask(Operation::all_to_all, 3, 4096);
  other.memory = other.one_round = true;
  same(other);
  Question gather = ask(Operation::all_gather, 3, 4096);
  gather.memory = true;
  const bool fits = selector.catalogue().find(Algorithm::halving_doubling).supports(gather.shape);
  CHECK((selector.rule(gather) != nullptr) == fits);
}

TEST_CASE("narrow elements: a table may choose what combines once, and whatever it likes for messages") {
  const Settings settings = measured({rule_of(Operation::all_reduce, Way::memory, Algorithm::one_shot, 4),
                                      rule_of(Operation::all_reduce, Way::messages, Algorithm::ring, 4),
                                      rule_of(Operation::all_gather, Way::memory, Algorithm::ring, 4)});
  Selector selector(Topology::flat(4), settings);
  Question question = ask(Operation::all_reduce, 4, 4096);
  question.narrow = true;
  CHECK(selector.choose(question).algorithm == Algorithm::ring);
  question.memory = true;
  CHECK(selector.choose(question).algorithm == Algorithm::one_shot);
  question.shape = Shape{Operation::all_gather, 4, 0, false};
  CHECK(selector.choose(question).algorithm == Algorithm::ring);
}
