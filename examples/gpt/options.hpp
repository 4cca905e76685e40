// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "choices.hpp"

namespace gpt {

/// Input of the user's that cannot work. `what()` is one line that says what is wrong and what would work;
/// the program prints it and ends with exit code 2.
class UsageError : public std::exception {
 public:
  explicit UsageError(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// What the command line says, checked: after parse_options every combination of values can run.
struct Options {
  std::vector<std::string> text;  ///< empty: the default text
  int launched = 0;               ///< ranks that a launcher has started, of which this process is one; 0: none
  int ranks = 0;                  ///< dp * cp * tp
  int dp = 0;
  int cp = 0;
  int tp = 0;
  int zero = 0;  ///< what the ranks along dp and cp split: 1 optimizer state, 2 gradients too, 3 parameters too
  std::int64_t bucket = 0;  ///< bytes that blocks have which are reduced and gathered at once
  std::int64_t prefetch = 1;

  std::int64_t hidden = 128;
  std::int64_t heads = 4;
  std::int64_t head_dim = 0;  ///< hidden / heads
  std::int64_t layers = 4;
  std::int64_t ffn = 0;  ///< 4 * hidden unless given
  std::int64_t sequence = 64;
  std::int64_t vocab = 256;
  Precision precision = Precision::f32;
  Recomputed recompute = Recomputed::none;

  std::int64_t steps = 1600;
  std::int64_t batch = 12;      ///< sequences per step, over all ranks
  std::int64_t accumulate = 1;  ///< micro-batches that a step's batch is computed in
  double learning_rate = 2e-3;
  std::int64_t warmup = 100;
  double weight_decay = 0.1;
  double clip = 1.0;
  double dropout = 0.0;
  std::uint64_t seed = 1;
  std::int64_t evaluate_every = 200;  ///< 0: only at the end

  std::int64_t check = 0;  ///< steps to compare with one rank; 0: none
  std::string trace;       ///< empty: none
  std::int64_t sample = 400;
  double temperature = 0.8;
  std::int64_t top_k = 0;  ///< 0: all
  std::string prompt = "\n";
  double deadline = 600;  ///< seconds; 0: none
  bool quiet = false;
  bool help = false;
};

namespace detail {

inline constexpr int most_ranks = 64;
inline constexpr std::int64_t whole_run = -1;  // `--check` without a number, until the steps are known
inline constexpr double huge = 1 << 30;
inline constexpr double unlimited = std::numeric_limits<double>::infinity();

using Field = std::variant<int Options::*, std::int64_t Options::*, std::uint64_t Options::*, double Options::*,
                           bool Options::*, std::string Options::*, std::vector<std::string> Options::*,
                           Precision Options::*, Recomputed Options::*>;

/// One line of the table that the parser and the help text are made of. A row without a field is a heading.
struct Option {
  const char* name = "";
  const char* value = "";  // what the help calls the value; empty for a switch
  const char* help = "";
  Field field = &Options::help;
  double least = -unlimited;
  double most = unlimited;             // the limit itself is allowed,
  bool below_most = false;             // unless this is set
  const char* unless_given = nullptr;  // what the help says of the default, when the field cannot
  std::int64_t alone = 0;              // the number that the name alone means; 0: a value is required
};

inline constexpr auto table = std::to_array<Option>({
    {"text"},
    {"--text", "FILE...", "files to learn from, as bytes; a tenth is held out", &Options::text, 0, 0, false,
     "the Debian package fortunes"},
    {"parallelism"},
    {"--ranks", "N", "ranks: threads, or processes of meshwise-run", &Options::ranks, 1, most_ranks, false,
     "its number, dp * cp * tp, or 1"},
    {"--dp", "N", "groups that share one batch, by its sequences", &Options::dp, 1, most_ranks, false,
     "ranks / (cp * tp)"},
    {"--cp", "N", "groups that share one sequence: keys and values go round a ring", &Options::cp, 1, most_ranks, false,
     "1"},
    {"--tp", "N", "ranks that share one model, by its heads and widths", &Options::tp, 1, most_ranks, false,
     "ranks / (dp * cp), or 1"},
    {"--zero", "0|1|2|3", "what dp * cp ranks split: 1 optimizer state, 2 and gradients, 3 and parameters",
     &Options::zero, 0, 3},
    {"--bucket", "BYTES", "least to reduce and gather at once, in whole blocks; 0: each block alone", &Options::bucket,
     0, huge * 1024},
    {"--prefetch", "N", "units that --zero 3 gathers ahead of the one in use", &Options::prefetch, 0, 1024},
    {"--deadline", "SECONDS", "longest wait of one rank for another; 0 for none", &Options::deadline, 0},
    {"model"},
    {"--hidden", "N", "width of the residual stream", &Options::hidden, 1, 65536},
    {"--heads", "N", "attention heads; must divide hidden", &Options::heads, 1, 4096},
    {"--layers", "N", "transformer blocks", &Options::layers, 1, 1024},
    {"--ffn", "N", "width of the MLP", &Options::ffn, 1, 1 << 20, false, "4 * hidden"},
    {"--sequence", "N", "bytes that the model sees at once", &Options::sequence, 1, 1 << 20},
    {"--vocab", "N", "number of tokens; bytes of the text must be below", &Options::vocab, 2, 1 << 20},
    {"--precision", "TYPE", "f32, f64, or bf16 with a master and moments in f32", &Options::precision},
    {"--recompute", "WHAT", "again in the backward instead of kept: none, selective (scores) or full",
     &Options::recompute},
    {"training"},
    {"--steps", "N", "optimizer steps", &Options::steps, 0, huge},
    {"--batch", "N", "sequences per step, over all ranks", &Options::batch, 1, 1 << 20},
    {"--accumulate", "N", "micro-batches per step; only the last one sums gradients, but for --zero 2 and 3",
     &Options::accumulate, 1, 1 << 20},
    {"--learning-rate", "X", "largest step of AdamW", &Options::learning_rate, 0},
    {"--warmup", "N", "steps until the learning rate is reached", &Options::warmup, 0, huge},
    {"--weight-decay", "X", "decay of the weights, not of biases and gains", &Options::weight_decay, 0},
    {"--clip", "X", "largest norm of the whole gradient; 0 for no limit", &Options::clip, 0},
    {"--dropout", "P", "probability that a value is dropped", &Options::dropout, 0, 1, true},
    {"--seed", "N", "of parameters, batches, dropout and sample", &Options::seed, 0},
    {"results"},
    {"--check", "[STEPS]", "compare the first STEPS steps with training on one rank; alone: all", &Options::check, 0,
     huge, false, "0", whole_run},
    {"--evaluate-every", "N", "steps between held-out losses; 0 for one at the end", &Options::evaluate_every, 0, huge},
    {"--trace", "FILE", "timeline of the last three steps on all ranks, for ui.perfetto.dev", &Options::trace, 0, 0,
     false, "none"},
    {"--sample", "BYTES", "length of the text written at the end", &Options::sample, 0, huge},
    {"--prompt", "TEXT", "beginning of that text", &Options::prompt, 0, 0, false, "a line break"},
    {"--temperature", "X", "spread of the sample; 0 always takes the likeliest byte", &Options::temperature, 0},
    {"--top-k", "N", "sample among the N likeliest bytes; 0 for all", &Options::top_k, 0, huge},
    {"--quiet", "", "no progress line", &Options::quiet},
});

inline constexpr Option help_option{"--help", "", "this text", &Options::help};

inline std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.10g", value);
  return text.data();
}

inline std::string quoted(std::string_view text) { return std::string("'").append(text).append("'"); }

inline std::string range(const Option& option) {
  std::string text;
  if (option.least != -unlimited) text += "at least " + number(option.least);
  if (option.most == unlimited) return text;
  return text + (text.empty() ? "" : " and ") + (option.below_most ? "below " : "at most ") + number(option.most);
}

/// Reads a whole text as a number in the option's range; T is int, std::int64_t, std::uint64_t or double.
template <class T>
T read_number(const Option& option, std::string_view text) {
  constexpr bool real = std::is_floating_point_v<T>;
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  const bool negative = text.starts_with('-');
  bool read = stop == end && problem == std::errc{};
  if constexpr (real) read = read && std::isfinite(value);
  // A number too large, or a negative one for an unsigned field, is out of range rather than unreadable.
  const bool outside = (!real && stop == end && problem == std::errc::result_out_of_range) ||
                       (std::is_unsigned_v<T> && negative && text.size() > 1 && text[1] >= '0' && text[1] <= '9');
  if (!read && !outside) {
    throw UsageError(std::string(option.name) + " " + quoted(text) + " is not a " +
                     (real ? "finite number" : "whole number") + "; give a number that is " + range(option));
  }
  const double size = static_cast<double>(value);
  if (outside || size < option.least || size > option.most || (option.below_most && size >= option.most)) {
    std::string why;
    if (option.field == Field(&Options::ranks) && !negative && size != 0) {
      why = " (each rank is a thread or process, and spins while it waits)";
    }
    const std::string limits = option.most == unlimited && outside && !negative
                                   ? "at most " + number(static_cast<double>(std::numeric_limits<T>::max()))
                                   : range(option);
    throw UsageError(std::string(option.name) + " " + std::string(text) + " is out of range; it must be " + limits +
                     why);
  }
  return value;
}

/// One of some words.
template <class T, std::size_t n>
T read_word(const Option& option, std::string_view text, const std::pair<const char*, T> (&words)[n]) {
  std::string all;
  for (std::size_t i = 0; i < n; ++i) {
    if (text == words[i].first) return words[i].second;
    all.append(i == 0 ? "" : i + 1 < n ? ", " : " or ").append(words[i].first);
  }
  throw UsageError(std::string(option.name) + " " + quoted(text) + " is not known; give " + all);
}
inline constexpr std::pair<const char*, Precision> precisions[] = {
    {"f32", Precision::f32}, {"bf16", Precision::bf16}, {"f64", Precision::f64}};
inline constexpr std::pair<const char*, Recomputed> recomputations[] = {
    {"none", Recomputed::none}, {"selective", Recomputed::selective}, {"full", Recomputed::full}};

/// Edit distance: insertions, deletions, replacements and swaps of neighbours.
inline std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

/// The option that was probably meant: the one that the name begins or that begins it, or the nearest
/// spelling.
inline std::string_view nearest(std::string_view name) {
  std::string_view best;
  std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;
  const auto consider = [&](std::string_view candidate) {
    if (!candidate.starts_with("--")) return;
    const bool begins = name.size() > 3 && (candidate.starts_with(name) || name.starts_with(candidate));
    const std::size_t d = begins ? 1 : distance(name, candidate);
    if (d < least) {
      least = d;
      best = candidate;
    }
  };
  for (const Option& option : table) consider(option.name);
  consider(help_option.name);
  return best;
}

inline const Option& find_option(std::string_view name) {
  if (name == help_option.name || name == "-h") return help_option;
  for (const Option& option : table) {
    if (name == option.name && name.starts_with("--")) return option;
  }
  const std::string_view meant = nearest(name);
  throw UsageError("unknown option " + quoted(name) + "; " +
                   (meant.empty() ? "--help lists all" : "did you mean " + std::string(meant) + "?"));
}

/// What a launcher has started is how many ranks there are.
inline void take_launched(Options& o) {
  if (o.launched == 0) return;
  const std::string started = "meshwise-run has started " + std::to_string(o.launched) + " ranks";
  if (o.ranks != 0 && o.ranks != o.launched) {
    throw UsageError(started + ", but --ranks is " + std::to_string(o.ranks) + "; leave --ranks out");
  }
  if (o.launched > most_ranks) {
    throw UsageError(started + ", and this example runs at most " + std::to_string(most_ranks) + "; start fewer");
  }
  o.ranks = o.launched;
}

/// ranks, dp and tp from those of the three that were given, and from cp.
inline void complete_layout(Options& o) {
  take_launched(o);
  const auto text = [](int value) { return std::to_string(value); };
  const std::string by_cp = o.cp == 0 ? "" : " times --cp " + text(o.cp);
  o.cp = std::max(o.cp, 1);
  const auto divide = [&](int part, const std::string& part_name) {
    const int parts = part * o.cp;
    if (o.ranks % parts != 0) {
      std::string divisors;
      for (int d = 1; d <= o.ranks; ++d) {
        if (o.ranks % d == 0) divisors += (divisors.empty() ? "" : ", ") + text(d);
      }
      const std::string groups = part_name.empty() ? "--cp " + text(o.cp) : part_name + " " + text(part) + by_cp;
      throw UsageError((o.launched == 0 ? "--ranks " : "meshwise-run -n ") + text(o.ranks) +
                       " cannot be split into groups by " + groups + "; " +
                       (part_name.empty() ? "--cp"
                        : by_cp.empty()   ? part_name
                                          : "the product") +
                       " must be one of " + divisors);
    }
    return o.ranks / parts;
  };
  if (o.ranks != 0 && o.dp != 0 && o.tp != 0) {
    if (o.dp * o.cp * o.tp != o.ranks) {
      throw UsageError("--dp " + text(o.dp) + by_cp + " times --tp " + text(o.tp) + " is " + text(o.dp * o.cp * o.tp) +
                       " ranks, but " + (o.launched == 0 ? "--ranks is " : "meshwise-run has started ") +
                       text(o.ranks) + "; leave one of them out");
    }
  } else if (o.ranks != 0 && o.tp != 0) {
    o.dp = divide(o.tp, "--tp");
  } else if (o.ranks != 0 && o.dp != 0) {
    o.tp = divide(o.dp, "--dp");
  } else if (o.ranks != 0) {
    o.dp = divide(1, "");
    o.tp = 1;
  } else {
    o.dp = std::max(o.dp, 1);
    o.tp = std::max(o.tp, 1);
    o.ranks = o.dp * o.cp * o.tp;
    if (o.ranks > most_ranks) {
      throw UsageError("--dp " + text(o.dp) + by_cp + " times --tp " + text(o.tp) + " is " + text(o.ranks) +
                       " ranks, and this example runs at most " + text(most_ranks) +
                       " (each rank is a thread or process, and spins while it waits)");
    }
  }
}

/// Fills in what depends on other options, and refuses what cannot be split.
inline void complete(Options& o) {
  complete_layout(o);
  if (o.hidden % o.heads != 0) {
    std::int64_t below = o.heads, above = o.heads;
    while (o.hidden % below != 0) --below;
    while (above < o.hidden && o.hidden % above != 0) ++above;
    throw UsageError("--hidden " + std::to_string(o.hidden) + " cannot be split into --heads " +
                     std::to_string(o.heads) + " equal heads; --heads " + std::to_string(below) +
                     (above > o.heads && o.hidden % above == 0 ? " or " + std::to_string(above) : "") + " would work");
  }
  o.head_dim = o.hidden / o.heads;
  if (o.heads < o.tp) {
    throw UsageError("--heads " + std::to_string(o.heads) + " cannot be split over --tp " + std::to_string(o.tp) +
                     " ranks; give --heads of at least " + std::to_string(o.tp) + " or --tp of at most " +
                     std::to_string(o.heads));
  }
  if (o.accumulate > o.batch) {
    throw UsageError("--batch " + std::to_string(o.batch) + " cannot be split into --accumulate " +
                     std::to_string(o.accumulate) +
                     " micro-batches, which need a sequence each; give --accumulate of at "
                     "most " +
                     std::to_string(o.batch));
  }
  if (const std::int64_t least = o.batch / o.accumulate; least < o.dp) {
    const std::string of = o.accumulate == 1 ? "" : " in --accumulate " + std::to_string(o.accumulate) + " parts";
    throw UsageError("--batch " + std::to_string(o.batch) + of + " cannot be split over --dp " + std::to_string(o.dp) +
                     " groups, which need a sequence each; give --batch of at least " +
                     std::to_string(o.dp * o.accumulate) + " or --dp of at most " + std::to_string(least));
  }
  if (o.sequence < 2 * o.cp && o.cp > 1) {
    throw UsageError("--sequence " + std::to_string(o.sequence) + " is too short for --cp " + std::to_string(o.cp) +
                     " ranks, each of which has an early and a late part of it; give --sequence of at least " +
                     std::to_string(2 * o.cp) + " or a smaller --cp");
  }
  if (o.recompute == Recomputed::selective && o.cp > 1) {
    throw UsageError("--recompute selective drops the scores of attention, and with --cp " + std::to_string(o.cp) +
                     " none are kept anyway; give none or full");
  }
  if (o.sample > 0 && o.prompt.empty()) {
    throw UsageError("--prompt is empty, and the sample needs a byte to begin with; give one or more, or --sample 0");
  }
  for (const char c : o.prompt) {
    const int byte = static_cast<unsigned char>(c);
    if (o.sample > 0 && byte >= o.vocab) {
      throw UsageError("--prompt has byte " + std::to_string(byte) + ", but --vocab " + std::to_string(o.vocab) +
                       " ends at " + std::to_string(o.vocab - 1) + "; give another --prompt, or --vocab of at least " +
                       std::to_string(byte + 1));
    }
  }
  if (o.ffn == 0) o.ffn = 4 * o.hidden;
  if (o.check == whole_run || o.check > o.steps) o.check = o.steps;
}

}  // namespace detail

/// The command line, without the program's name, as Options.
///
/// `--name value` and `--name=value` mean the same; of an option given twice the last one counts. With --help
/// the rest is not checked. launched: see Options. Errors: UsageError.
inline Options parse_options(const std::vector<std::string>& arguments, int launched = 0) {
  Options o;
  o.launched = launched;
  o.check = 0;
  const auto is_name = [](const std::string& argument) { return argument.starts_with("--") || argument == "-h"; };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!is_name(argument)) {
      throw UsageError("unexpected " + detail::quoted(argument) +
                       (i == 0 ? "; files follow --text, and --help lists the options"
                               : " after " + detail::quoted(arguments[i - 1]) + "; --help lists the options"));
    }
    const std::size_t equals = argument.find('=');
    const bool attached = equals != std::string::npos;
    const detail::Option& option = detail::find_option(std::string_view(argument).substr(0, equals));
    const std::string attached_value = attached ? argument.substr(equals + 1) : std::string();

    if (const auto* field = std::get_if<bool Options::*>(&option.field)) {
      if (attached) throw UsageError(std::string(option.name) + " takes no value; leave '=' and what follows out");
      o.** field = true;
      continue;
    }
    if (const auto* field = std::get_if<std::vector<std::string> Options::*>(&option.field)) {
      std::vector<std::string> values;
      if (attached) values.push_back(attached_value);
      while (i + 1 < arguments.size() && !is_name(arguments[i + 1])) values.push_back(arguments[++i]);
      if (values.empty()) throw UsageError(std::string(option.name) + " needs one or more files");
      o.** field = std::move(values);
      continue;
    }
    if (!attached && (i + 1 == arguments.size() || is_name(arguments[i + 1]))) {
      if (option.alone == 0) throw UsageError(std::string(option.name) + " needs a value: " + option.value);
      o.*std::get<std::int64_t Options::*>(option.field) = option.alone;
      continue;
    }
    const std::string value = attached ? attached_value : arguments[++i];
    if (const auto* text = std::get_if<std::string Options::*>(&option.field)) o.** text = value;
    if (const auto* kind = std::get_if<Precision Options::*>(&option.field)) {
      o.** kind = detail::read_word(option, value, detail::precisions);
    }
    if (const auto* kind = std::get_if<Recomputed Options::*>(&option.field)) {
      o.** kind = detail::read_word(option, value, detail::recomputations);
    }
    if (const auto* n = std::get_if<int Options::*>(&option.field)) o.** n = detail::read_number<int>(option, value);
    if (const auto* n = std::get_if<std::int64_t Options::*>(&option.field)) {
      o.** n = detail::read_number<std::int64_t>(option, value);
    }
    if (const auto* n = std::get_if<std::uint64_t Options::*>(&option.field)) {
      o.** n = detail::read_number<std::uint64_t>(option, value);
    }
    if (const auto* x = std::get_if<double Options::*>(&option.field)) {
      o.** x = detail::read_number<double>(option, value);
    }
  }
  if (!o.help) detail::complete(o);
  return o;
}

inline Options parse_options(int count, const char* const* arguments, int launched = 0) {
  return parse_options(std::vector<std::string>(arguments + (count > 0 ? 1 : 0), arguments + count), launched);
}

/// The text of --help, made of the same table as the parser. `program` is the name to call it by.
inline std::string help_text(std::string_view program) {
  const Options defaults;
  std::string text = "usage: " + std::string(program) +
                     " [OPTION]...\n"
                     "Trains a small GPT on the bytes of a text, on several ranks, and writes a sample of what it "
                     "learnt.\n";
  const auto line = [&](const detail::Option& option) {
    std::string left = "  " + std::string(option.name) + " " + option.value;
    left.resize(std::max<std::size_t>(left.size() + 1, 26), ' ');
    std::string standard;
    if (option.unless_given != nullptr) standard.append(option.unless_given);
    if (standard.empty()) {
      if (const auto* n = std::get_if<std::int64_t Options::*>(&option.field)) standard = std::to_string(defaults.**n);
      if (const auto* n = std::get_if<std::uint64_t Options::*>(&option.field)) standard = std::to_string(defaults.**n);
      if (const auto* x = std::get_if<double Options::*>(&option.field)) standard = detail::number(defaults.**x);
      if (const auto* n = std::get_if<int Options::*>(&option.field)) standard = std::to_string(defaults.**n);
      if (std::holds_alternative<Precision Options::*>(option.field)) standard.append("f32");
      if (std::holds_alternative<Recomputed Options::*>(option.field)) standard.append("none");
    }
    text += left + option.help;
    if (!standard.empty()) text.append(" (").append(standard).append(")");
    text += '\n';
  };
  for (const detail::Option& option : detail::table) {
    if (std::string_view(option.name).starts_with("--")) {
      line(option);
    } else {
      text.append("\n").append(option.name).append(":\n");
    }
  }
  line(detail::help_option);
  return text + "\nDefaults are in parentheses; of an option given twice the last one counts.\n";
}

}  // namespace gpt
