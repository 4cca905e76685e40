// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "meshwise/schedule/settings.hpp"
#include "sizes.hpp"

namespace harness {
namespace {

[[noreturn]] void refuse_value(const std::string& option, const std::string& value, const std::string& remedy) {
  std::string shown;
  for (const char c : value.substr(0, 60)) shown += c >= ' ' && c <= '~' ? c : '?';
  throw BadOption(option + ": \"" + shown + "\" cannot be used; " + remedy);
}

std::vector<std::string> pieces(const std::string& option, const std::string& list) {
  std::vector<std::string> result;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (end == begin) refuse_value(option, list, "write names with ',' between them and nothing else");
    result.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

int number(const std::string& option, const std::string& text, int least, int most) {
  std::size_t value = 0;
  if (!parse_bytes(text, value) || text.find_first_not_of("0123456789") != std::string::npos ||
      value < static_cast<std::size_t>(least) || value > static_cast<std::size_t>(most)) {
    refuse_value(option, text, "write a number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return static_cast<int>(value);
}

double real(const std::string& option, const std::string& text, double above, double most) {
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || errno != 0 || !(value > above) || !(value <= most)) {
    refuse_value(option, text, "write a number above " + std::to_string(above).substr(0, 4) + ", such as 2");
  }
  return value;
}

std::size_t bytes(const std::string& option, const std::string& text) {
  std::size_t value = 0;
  if (!parse_bytes(text, value) || value > std::size_t{1} << 42) {
    refuse_value(option, text, "write bytes, such as 8, 32K, 128M or 1G (powers of 1024, at most 4T)");
  }
  return value;
}

template <class T, class Parse>
std::vector<T> named(const std::string& option, const std::string& list, const std::vector<std::string>& names,
                     const Parse& parse) {
  std::vector<T> result;
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  for (const std::string& name : list == "all" ? names : pieces(option, list)) {
    T value{};
    if (!parse(name, value)) refuse_value(option, name, "choose from " + known + ", several with ',' between, or all");
    result.push_back(value);
  }
  return result;
}

std::vector<std::string> names_of(const char* const* names, int count) { return {names, names + count}; }

std::vector<std::string> names_of_elements() {
  std::vector<std::string> names;
  for (const ElementName& one : element_names) names.emplace_back(one.name);
  return names;
}

std::vector<std::string> names_of_algorithms() {
  std::vector<std::string> names{"auto"};
  for (int k = 1; k < meshwise::algorithm_count - 1; ++k) {
    const auto algorithm = static_cast<meshwise::Algorithm>(k);
    if (algorithm != meshwise::Algorithm::exchange) names.emplace_back(meshwise::algorithm_name(algorithm));
  }
  return names;
}

bool parse_algorithm(const std::string& name, meshwise::Algorithm& algorithm) {
  if (name == "auto") {
    algorithm = meshwise::Algorithm::automatic;
    return true;
  }
  return name != "custom" && name != "exchange" && meshwise::parse(name, algorithm);
}

std::vector<std::string> choice(const std::string& option, const std::string& list, const char* first,
                                const char* second) {
  return named<std::string>(option, list, {first, second}, [&](const std::string& name, std::string& value) {
    value = name;
    return name == first || name == second;
  });
}

bool holds(const std::vector<std::string>& list, std::string_view name) {
  for (const std::string& one : list) {
    if (one == name) return true;
  }
  return false;
}

/// One option: its spellings, whether it takes a value, and what to do with it.
struct Rule {
  std::vector<std::string> names;
  bool valued;
  std::function<void(const std::string& option, const std::string& value)> apply;
};

std::vector<Rule> rules(Options& o) {
  const auto flag = [](std::vector<std::string> names, auto apply) {
    return Rule{std::move(names), false, [apply](const std::string&, const std::string&) { apply(); }};
  };
  return {
      {{"-b", "--minbytes"}, true, [&](auto& n, auto& v) { o.least = bytes(n, v); }},
      {{"-e", "--maxbytes"}, true, [&](auto& n, auto& v) { o.most = bytes(n, v); }},
      {{"-f", "--stepfactor"}, true, [&](auto& n, auto& v) { o.factor = real(n, v, 1, 1e6), o.step = 0; }},
      {{"-i", "--stepbytes"}, true, [&](auto& n, auto& v) { o.step = bytes(n, v); }},
      {{"-n", "--iters"}, true, [&](auto& n, auto& v) { o.iterations = number(n, v, 1, 1'000'000); }},
      {{"-w", "--warmup_iters"}, true, [&](auto& n, auto& v) { o.warm_up = number(n, v, 0, 1'000'000); }},
      {{"-c", "--check"}, true, [&](auto& n, auto& v) { o.checks = number(n, v, 0, 1'000'000); }},
      {{"--seconds"}, true, [&](auto& n, auto& v) { o.seconds = real(n, v, 0, 3600); }},
      {{"--batch"}, true, [&](auto& n, auto& v) { o.batch = number(n, v, 1, 10'000); }},
      {{"-o", "--op"},
       true,
       [&](auto& n, auto& v) { o.redops = named<Redop>(n, v, names_of(redop_names, redop_count), parse_redop); }},
      {{"-d", "--datatype"},
       true,
       [&](auto& n, auto& v) { o.elements = named<meshwise::ElementKind>(n, v, names_of_elements(), parse_element); }},
      {{"-r", "--root"}, true, [&](auto& n, auto& v) { o.root = v == "all" ? -1 : number(n, v, 0, 4095); }},
      {{"-g", "--ranks"},
       true,
       [&](auto& n, auto& v) {
         o.ranks.clear();
         for (const std::string& one : pieces(n, v)) o.ranks.push_back(number(n, one, 1, 256));
       }},
      {{"--fabric"}, true, [&](auto& n, auto& v) { o.fabrics = choice(n, v, "shared_memory", "thread"); }},
      {{"--algorithm"},
       true,
       [&](auto& n, auto& v) {
         o.all_algorithms = v == "all";
         o.algorithms = named<meshwise::Algorithm>(n, v, names_of_algorithms(), parse_algorithm);
       }},
      {{"--lanes"}, true, [&](auto& n, auto& v) { o.lanes = number(n, v, 1, meshwise::most_lanes); }},
      {{"--buffers"},
       true,
       [&](auto& n, auto& v) {
         const auto list = choice(n, v, "registered", "foreign");
         o.registered = holds(list, "registered"), o.foreign = holds(list, "foreign");
       }},
      {{"--json"}, true, [&](auto&, auto& v) { o.json = v; }},
      {{"--html"}, true, [&](auto&, auto& v) { o.html = v; }},
      {{"--peers"}, true, [&](auto&, auto& v) { o.peers = v; }},
      flag({"--in-place"}, [&] { o.out_of_place = false, o.in_place = true; }),
      flag({"--out-of-place"}, [&] { o.out_of_place = true, o.in_place = false; }),
      flag({"--both"}, [&] { o.out_of_place = o.in_place = true; }),
      flag({"--cold"}, [&] { o.cold = true, o.warm = false; }),
      flag({"--warm"}, [&] { o.warm = true; }),
      flag({"--rewrite"}, [&] { o.rewrite = true; }),
      flag({"--ragged"}, [&] { o.ragged = true; }),
      flag({"--reproducible"}, [&] { o.reproducible = true; }),
      flag({"--no-bind"}, [&] { o.bind = false; }),
      flag({"-h", "--help"}, [&] { o.help = true; }),
  };
}

void check(const Options& o) {
  if (o.least > o.most) {
    throw BadOption("--minbytes " + bytes_text(o.least) + " is more than --maxbytes " + bytes_text(o.most) +
                    "; raise -e or lower -b");
  }
  for (const int ranks : o.ranks) {
    if (o.root >= ranks) {
      throw BadOption("--root " + std::to_string(o.root) + " is no rank of " + std::to_string(ranks) +
                      "; choose one below, or more ranks with -g");
    }
  }
  bool uneven = false;
  for (const Verb verb : o.verbs) uneven = uneven || verb == Verb::all_to_all_v;
  if (o.ragged && !uneven) {
    throw BadOption("--ragged is about all_to_all_v, which is not measured; add it to the operations");
  }
  if (!o.peers.empty() && o.html.empty()) {
    throw BadOption("--peers is drawn into the page; say where to write that with --html FILE");
  }
}

}  // namespace

Options parse_options(const std::vector<std::string>& words, Options options) {
  const std::vector<Rule> all = rules(options);
  std::vector<Verb> verbs;
  const auto find = [&](const std::string& name) -> const Rule* {
    for (const Rule& rule : all) {
      if (holds(rule.names, name)) return &rule;
    }
    return nullptr;
  };
  for (std::size_t k = 0; k < words.size(); ++k) {
    const std::string& word = words[k];
    if (word.empty() || word.front() != '-') {
      for (const Verb verb : named<Verb>("operation", word, names_of(verb_names, verb_count), parse_verb)) {
        verbs.push_back(verb);
      }
      continue;
    }
    // "--name=value" and "-n20" are understood as "--name value" and "-n 20".
    const bool is_long = word.rfind("--", 0) == 0;
    const std::size_t cut = is_long ? std::min(word.find('='), word.size()) : std::min<std::size_t>(2, word.size());
    const std::string name = word.substr(0, cut);
    const Rule* const rule = find(name);
    if (rule == nullptr) throw BadOption(name + ": there is no such option");
    const bool joined = cut < word.size();
    if (!rule->valued) {
      if (joined) throw BadOption(name + " takes no value; write it alone");
      rule->apply(name, "");
      continue;
    }
    if (!joined && k + 1 == words.size()) throw BadOption(name + " needs a value");
    const std::string value = joined ? word.substr(cut + (is_long ? 1 : 0)) : words[++k];
    if (value.empty()) throw BadOption(name + " needs a value");
    rule->apply(name, value);
  }
  if (!verbs.empty()) options.verbs = verbs;
  if (!options.help) check(options);
  return options;
}

}  // namespace harness
