// SPDX-License-Identifier: Apache-2.0
#include "../../examples/gpt/options.hpp"

#include <doctest/doctest.h>

#include <set>

namespace {

using Arguments = std::vector<std::string>;

gpt::Options parse(const Arguments& arguments) { return gpt::parse_options(arguments); }

// The one line that the user sees, or "accepted".
std::string complaint(const Arguments& arguments) {
  try {
    parse(arguments);
  } catch (const gpt::UsageError& error) {
    const std::string text = error.what();
    CHECK(text.find('\n') == std::string::npos);
    CHECK(!text.empty());
    return text;
  }
  return "accepted";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void refuses(const std::string& part, const Arguments& arguments) {
  const std::string text = complaint(arguments);
  INFO(text);
  CHECK(contains(text, part));
}

}  // namespace

TEST_CASE("options: the defaults run on one rank") {
  const gpt::Options o = parse({});
  CHECK(o.text.empty());
  CHECK(o.ranks == 1);
  CHECK(o.dp == 1);
  CHECK(o.tp == 1);
  CHECK(o.head_dim * o.heads == o.hidden);
  CHECK(o.ffn == 4 * o.hidden);
  CHECK(o.vocab == 256);
  CHECK(o.check == 0);
  CHECK(o.cp == 1);
  CHECK(o.zero == 0);
  CHECK(o.accumulate == 1);
  CHECK(o.precision == gpt::Precision::f32);
  CHECK(o.recompute == gpt::Recomputed::none);
  CHECK(o.trace.empty());
  CHECK(!o.quiet);
  CHECK(!o.help);
}

TEST_CASE("options: every value arrives, with a space or an equals sign") {
  const Arguments spaced{"--text",
                         "a",
                         "b",
                         "c d",
                         "--ranks",
                         "12",
                         "--dp",
                         "3",
                         "--tp",
                         "2",
                         "--hidden",
                         "60",
                         "--heads",
                         "5",
                         "--layers",
                         "2",
                         "--ffn",
                         "7",
                         "--sequence",
                         "33",
                         "--batch",
                         "8",
                         "--vocab",
                         "257",
                         "--steps",
                         "9",
                         "--learning-rate",
                         "1e-2",
                         "--warmup",
                         "0",
                         "--clip",
                         "0",
                         "--weight-decay",
                         "0.5",
                         "--dropout",
                         ".25",
                         "--seed",
                         "18446744073709551615",
                         "--check",
                         "3",
                         "--sample",
                         "5",
                         "--temperature",
                         "0",
                         "--top-k",
                         "8",
                         "--prompt",
                         "-x y",
                         "--evaluate-every",
                         "2",
                         "--precision",
                         "f64",
                         "--cp",
                         "2",
                         "--zero",
                         "3",
                         "--bucket",
                         "1000000",
                         "--prefetch",
                         "2",
                         "--recompute",
                         "full",
                         "--accumulate",
                         "2",
                         "--trace",
                         "a file",
                         "--deadline",
                         "1.5",
                         "--quiet"};
  Arguments joined;
  for (std::size_t i = 5; i + 1 < spaced.size(); i += 2) {
    joined.push_back(std::string(spaced[i - 1]) + "=" + spaced[i]);
  }
  joined.insert(joined.begin(), {"--text=a", "b", "c d"});
  joined.push_back("--quiet");
  for (const Arguments& arguments : {spaced, joined}) {
    const gpt::Options o = parse(arguments);
    CHECK(o.text == Arguments{"a", "b", "c d"});
    CHECK(o.ranks == 12);
    CHECK(o.dp == 3);
    CHECK(o.tp == 2);
    CHECK(o.hidden == 60);
    CHECK(o.heads == 5);
    CHECK(o.head_dim == 12);
    CHECK(o.layers == 2);
    CHECK(o.ffn == 7);
    CHECK(o.sequence == 33);
    CHECK(o.batch == 8);
    CHECK(o.vocab == 257);
    CHECK(o.steps == 9);
    CHECK(o.learning_rate == 1e-2);
    CHECK(o.warmup == 0);
    CHECK(o.clip == 0);
    CHECK(o.weight_decay == 0.5);
    CHECK(o.dropout == 0.25);
    CHECK(o.seed == ~std::uint64_t{0});
    CHECK(o.check == 3);
    CHECK(o.sample == 5);
    CHECK(o.temperature == 0);
    CHECK(o.top_k == 8);
    CHECK(o.prompt == "-x y");
    CHECK(o.evaluate_every == 2);
    CHECK(o.precision == gpt::Precision::f64);
    CHECK(o.cp == 2);
    CHECK(o.zero == 3);
    CHECK(o.bucket == 1000000);
    CHECK(o.prefetch == 2);
    CHECK(o.recompute == gpt::Recomputed::full);
    CHECK(o.accumulate == 2);
    CHECK(o.trace == "a file");
    CHECK(o.deadline == 1.5);
    CHECK(o.quiet);
  }
}

TEST_CASE("options: the last of two counts, so that a script's defaults can be overruled") {
  const gpt::Options o = parse({"--text", "a", "b", "--dp=4", "--text", "c", "--dp", "2"});
  CHECK(o.text == Arguments{"c"});
  CHECK(o.dp == 2);
}

TEST_CASE("options: --check alone means all steps, wherever it stands") {
  CHECK(parse({"--check", "--steps", "7"}).check == 7);
  CHECK(parse({"--steps", "7", "--check"}).check == 7);
  CHECK(parse({"--check", "3", "--steps", "7"}).check == 3);
  CHECK(parse({"--check=50", "--steps", "7"}).check == 7);
  CHECK(parse({"--check", "0"}).check == 0);
  CHECK(parse({"--check", "--steps", "0"}).check == 0);
  refuses("--check 'all' is not a whole number", {"--check", "all"});
}

TEST_CASE("options: the layout is completed from what is given") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    const gpt::Options only = parse({"--ranks", std::to_string(ranks), "--heads", "16"});
    CHECK(only.dp == ranks);
    CHECK(only.tp == 1);
    for (int tp = 1; tp <= 9; ++tp) {
      const Arguments both{"--ranks", std::to_string(ranks), "--tp", std::to_string(tp), "--heads", "16"};
      if (ranks % tp == 0) {
        const gpt::Options o = parse(both);
        CHECK(o.dp * o.tp == ranks);
        CHECK(o.tp == tp);
      } else {
        CHECK(contains(complaint(both), "must be one of 1"));
      }
      if (ranks * tp <= 64) {
        const gpt::Options product = parse({"--dp", std::to_string(ranks), "--tp", std::to_string(tp), "--heads=16"});
        CHECK(product.ranks == ranks * tp);
      }
    }
  }
  CHECK(parse({"--ranks", "8", "--dp", "4"}).tp == 2);
  CHECK(parse({"--tp", "4"}).ranks == 4);
  refuses("is 6 ranks, but --ranks is 4", {"--ranks", "4", "--dp", "2", "--tp", "3"});
  refuses("--dp must be one of 1, 2, 3, 6", {"--ranks", "6", "--dp", "4"});
  const gpt::Options with_context = parse({"--ranks", "8", "--cp", "2", "--tp", "2"});
  CHECK(with_context.dp == 2);
  CHECK(parse({"--ranks", "8", "--cp", "4"}).dp == 2);
  CHECK(parse({"--ranks", "8", "--cp", "2", "--dp", "2"}).tp == 2);
  CHECK(parse({"--cp", "3", "--tp", "2"}).ranks == 6);
  refuses("--dp 2 times --cp 2 times --tp 3 is 12 ranks, but --ranks is 4",
          {"--ranks=4", "--dp=2", "--tp=3", "--cp=2"});
  refuses("by --dp 3 times --cp 3; the product must be one of 1, 2, 3, 6", {"--ranks", "6", "--dp", "3", "--cp", "3"});
  refuses("--cp must be one of 1, 2, 3, 6", {"--ranks", "6", "--cp", "4"});
}

TEST_CASE("options: no ranks and too many") {
  for (const char* name : {"--ranks", "--dp", "--cp", "--tp"}) {
    refuses("must be at least 1 and at most 64", {name, "0"});
    refuses("must be at least 1 and at most 64", {name, "-2"});
    refuses("must be at least 1 and at most 64", {name, "65"});
  }
  refuses("each rank is a thread", {"--ranks", "1000"});
  refuses("must be at least 1 and at most 64", {"--ranks", "99999999999999999999"});
  refuses("is 72 ranks, and this example runs at most 64", {"--dp", "8", "--tp", "9"});
}

TEST_CASE("options: the ranks that a launcher has started are the ranks") {
  const auto launched = [](int ranks, const Arguments& arguments) { return gpt::parse_options(arguments, ranks); };
  const auto refused = [&](int ranks, const Arguments& arguments) -> std::string {
    try {
      launched(ranks, arguments);
    } catch (const gpt::UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(launched(1, {}).ranks == 1);
  CHECK(launched(4, {}).dp == 4);
  CHECK(launched(4, {"--tp", "2"}).dp == 2);
  CHECK(launched(8, {"--cp", "2", "--tp", "2"}).dp == 2);
  CHECK(launched(4, {"--ranks", "4", "--dp", "1"}).tp == 4);
  CHECK(refused(2, {"--ranks", "4"}) == "meshwise-run has started 2 ranks, but --ranks is 4; leave --ranks out");
  CHECK(refused(4, {"--dp", "2", "--tp", "3"}) ==
        "--dp 2 times --tp 3 is 6 ranks, but meshwise-run has started 4; leave one of them out");
  CHECK(contains(refused(4, {"--tp", "3"}), "meshwise-run -n 4 cannot be split into groups by --tp 3"));
  CHECK(contains(refused(65, {}), "has started 65 ranks, and this example runs at most 64"));
}

TEST_CASE("options: sizes that cannot be split") {
  refuses("--heads 2 or 4 would work", {"--hidden", "64", "--heads", "3"});
  refuses("--heads 1 or 7 would work", {"--hidden", "7", "--heads", "5"});
  refuses("--heads 7 would work", {"--hidden", "7", "--heads", "9"});
  refuses("give --heads of at least 3 or --tp of at most 2", {"--hidden", "64", "--heads", "2", "--tp", "3"});
  refuses("give --batch of at least 4 or --dp of at most 3", {"--batch", "3", "--dp", "4"});
  refuses("--batch 12 in --accumulate 4 parts cannot be split over --dp 4 groups", {"--accumulate", "4", "--dp", "4"});
  refuses("give --batch of at least 16 or --dp of at most 3", {"--accumulate", "4", "--dp", "4"});
  refuses("give --accumulate of at most 12", {"--accumulate", "13"});
  refuses("give --sequence of at least 6 or a smaller --cp", {"--cp", "3", "--sequence", "5"});
  refuses("--recompute selective drops the scores of attention, and with --cp 2 none are kept anyway",
          {"--cp", "2", "--recompute", "selective"});
  // Uneven vocab, sequence, ffn and batch are no reason to refuse.
  CHECK(complaint({"--tp=3", "--heads=4", "--vocab=257", "--sequence=2", "--ffn=1", "--dp=3", "--batch=4"}) ==
        "accepted");
}

TEST_CASE("options: values that cannot be meant") {
  refuses("--steps -1 is out of range; it must be at least 0", {"--steps", "-1"});
  CHECK(parse({"--steps", "0"}).steps == 0);
  refuses("--hidden 0 is out of range; it must be at least 1", {"--hidden", "0"});
  refuses("--layers 'two' is not a whole number", {"--layers", "two"});
  refuses("--layers '2.5' is not a whole number", {"--layers", "2.5"});
  refuses("--batch '16k' is not a whole number", {"--batch", "16k"});
  refuses("--batch '' is not a whole number", {"--batch="});
  refuses("must be at least 0 and below 1", {"--dropout", "1"});
  refuses("must be at least 0 and below 1", {"--dropout", "-0.1"});
  for (const char* value : {"nan", "inf", "-inf", "1e999", "x", ""}) {
    refuses("is not a finite number", {std::string("--learning-rate=") + value});
  }
  refuses("--seed -1 is out of range; it must be at least 0", {"--seed", "-1"});
  refuses("--seed 18446744073709551616 is out of range; it must be at most 1.8", {"--seed", "18446744073709551616"});
  refuses("--seed '-' is not a whole number", {"--seed=-"});
  refuses("--precision 'float' is not known; give f32, bf16 or f64", {"--precision", "float"});
  refuses("--recompute 'some' is not known; give none, selective or full", {"--recompute", "some"});
  refuses("--zero 4 is out of range; it must be at least 0 and at most 3", {"--zero", "4"});
  refuses("--accumulate 0 is out of range; it must be at least 1", {"--accumulate", "0"});
  refuses("--bucket -1 is out of range; it must be at least 0", {"--bucket", "-1"});
  refuses("--vocab 1 is out of range", {"--vocab", "1"});
  refuses("--prompt has byte 90, but --vocab 90 ends at 89", {"--vocab", "90", "--prompt", "AZ"});
  refuses("--prompt is empty", {"--prompt="});
  CHECK(complaint({"--vocab", "90", "--prompt", "AZ", "--sample", "0"}) == "accepted");
  CHECK(complaint({"--prompt=", "--sample", "0"}) == "accepted");
}

TEST_CASE("options: names that do not exist, values that are missing or too many") {
  refuses("unknown option '--rank'; did you mean --ranks?", {"--rank", "2"});
  refuses("did you mean --layers?", {"--layres", "2"});
  refuses("did you mean --learning-rate?", {"--learning", "2"});
  refuses("did you mean --temperature?", {"--temprature=3"});
  refuses("unknown option '--zzzzzzzzzz'; --help lists all", {"--zzzzzzzzzz"});
  refuses("unknown option '--'", {"--"});
  refuses("unexpected 'book.txt'; files follow --text", {"book.txt"});
  refuses("unexpected '3' after '2'", {"--ranks", "2", "3"});
  refuses("--ranks needs a value: N", {"--ranks"});
  refuses("--ranks needs a value: N", {"--ranks", "--dp", "2"});
  refuses("--text needs one or more files", {"--text"});
  refuses("--text needs one or more files", {"--text", "--quiet"});
  refuses("--quiet takes no value", {"--quiet=1"});
}

TEST_CASE("options: help names every option once and its default, and stops the checks") {
  const std::string help = gpt::help_text("gpt");
  std::set<std::string> names;
  for (const gpt::detail::Option& option : gpt::detail::table) {
    if (!std::string_view(option.name).starts_with("--")) continue;
    CHECK(names.insert(option.name).second);
    CHECK(contains(help, "\n  " + std::string(option.name) + " "));
  }
  CHECK(contains(help, "width of the residual stream (128)"));
  CHECK(contains(help, "AdamW (0.002)"));
  std::size_t longest = 0, begin = 0;
  for (std::size_t end; (end = help.find('\n', begin)) != std::string::npos; begin = end + 1) {
    longest = std::max(longest, end - begin);
  }
  CHECK(longest <= 110);
  CHECK(begin == help.size());
  CHECK(parse({"--help", "--dp", "2", "--ranks", "3"}).help);
  CHECK(parse({"-h"}).help);
}

TEST_CASE("options: main's arguments begin with the program's name") {
  const char* const arguments[] = {"gpt", "--tp", "2"};
  CHECK(gpt::parse_options(3, arguments).tp == 2);
  CHECK(gpt::parse_options(1, arguments).tp == 1);
  CHECK(gpt::parse_options(0, nullptr).tp == 1);
}
