// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/core/random.hpp"
#include "options.hpp"

namespace gpt {

/// The files learnt from when none is named: prose and verse in the Debian package `fortunes`, in a fixed
/// order. Errors: UsageError when the package is not installed.
inline std::vector<std::string> default_files() {
  std::vector<std::string> files;
  for (const char* name :
       {"art", "computers", "cookie", "definitions", "education", "fortunes", "humorists", "law", "literature", "love",
        "miscellaneous", "people", "platitudes", "riddles", "science", "songs-poems", "tao", "wisdom", "work"}) {
    std::string path = std::string("/usr/share/games/fortunes/") + name;
    struct stat status {};
    if (stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) files.push_back(std::move(path));
  }
  if (files.empty()) {
    throw UsageError(
        "there is nothing to learn from: give --text FILE..., or install the default text with "
        "'apt-get install fortunes'");
  }
  return files;
}

/// The bytes that the model learns from, and the tenth that it never sees.
///
/// The files are joined in the order given; the last floor(size/10) bytes of the whole are held out. A window
/// may cross the border of two files. Read-only after construction, so all ranks of a process share one.
class Text {
 public:
  using Bytes = std::vector<std::uint8_t>;

  explicit Text(Bytes bytes) : bytes_(std::move(bytes)), cut_(bytes_.size() - bytes_.size() / 10) {}

  /// Reads whole files; anything that can be read as a stream will do.
  /// Errors: UsageError for a file that cannot be read, a directory, an empty file, or more than 1 GiB in
  /// all.
  static Text load(const std::vector<std::string>& files) {
    Bytes all;
    for (const std::string& file : files) append(file, all);
    return Text(std::move(all));
  }

  std::size_t size() const noexcept { return bytes_.size(); }
  std::size_t training_size() const noexcept { return cut_; }
  std::size_t held_out_size() const noexcept { return bytes_.size() - cut_; }
  std::uint8_t operator[](std::size_t index) const noexcept { return bytes_[index]; }

  /// Errors: UsageError when a byte of the text is no token of a vocabulary of this size.
  void require_vocabulary(std::int64_t vocab) const {
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      if (bytes_[i] >= vocab) {
        const int largest = *std::max_element(bytes_.begin(), bytes_.end());
        throw UsageError("the text has byte " + std::to_string(bytes_[i]) + " at offset " + std::to_string(i) +
                         ", but --vocab " + std::to_string(vocab) + " ends at " + std::to_string(vocab - 1) +
                         "; give --vocab of at least " + std::to_string(largest + 1));
      }
    }
  }

 private:
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;

  static void append(const std::string& file, Bytes& all) {
    struct Close {
      void operator()(std::FILE* stream) const { std::fclose(stream); }
    };
    const auto refuse = [&](const std::string& why) { throw UsageError("--text " + detail::quoted(file) + " " + why); };
    struct stat status {};
    if (stat(file.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
      refuse("is a directory; name the files in it");
    }
    const std::unique_ptr<std::FILE, Close> stream(std::fopen(file.c_str(), "rb"));
    if (!stream) refuse("cannot be read: " + std::string(std::strerror(errno)) + "; name a readable file");
    const std::size_t before = all.size();
    Bytes chunk(std::size_t{1} << 16);
    for (std::size_t got; (got = std::fread(chunk.data(), 1, chunk.size(), stream.get())) > 0;) {
      all.insert(all.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(got));
      if (all.size() > most_bytes) refuse("makes the text larger than 1 GiB; give less of it");
    }
    if (std::ferror(stream.get())) refuse("cannot be read: " + std::string(std::strerror(errno)));
    if (all.size() == before) refuse("is empty; name a file with text in it");
  }

  Bytes bytes_;
  std::size_t cut_;
};

/// Which bytes of a text every sequence of every step is made of.
///
/// A sequence is a window of `sequence` tokens whose targets are the same bytes one position later. Training
/// windows begin at a hash of (seed, step, sample), where sample numbers the sequences of the whole batch, so
/// any rank can name any token and none depends on the layout. Held-out windows are fixed, in order, without
/// overlap. Lifetime: refers to the text. Cost: nothing is allocated; a token costs one hash.
class Windows {
 public:
  /// `batch`: sequences per step over all ranks; `evaluation_batches`: most batches of held-out windows.
  /// Errors: UsageError for a text that is shorter than one batch of training windows, or whose held-out
  /// tenth is shorter than one window.
  Windows(const Text& text, std::int64_t sequence, std::int64_t batch, std::uint64_t seed,
          std::int64_t evaluation_batches = 8)
      : text_(&text),
        sequence_(static_cast<std::size_t>(sequence)),
        batch_(static_cast<std::size_t>(batch)),
        seed_(meshwise::stream_seed(seed, 0x7465787477696e64u)) {
    require_enough();
    held_out_windows_ = (text.held_out_size() - 1) / sequence_;
    const std::size_t whole = std::max<std::size_t>(held_out_windows_ / batch_, 1);
    evaluation_batches_ = std::min(whole, static_cast<std::size_t>(std::max<std::int64_t>(evaluation_batches, 1)));
    // With fewer windows than one batch holds, some are used more than once, each as often as any other or
    // once more.
    held_out_windows_ = std::min(held_out_windows_, evaluation_batches_ * batch_);
  }

  std::int64_t sequence() const noexcept { return static_cast<std::int64_t>(sequence_); }
  std::int64_t batch() const noexcept { return static_cast<std::int64_t>(batch_); }

  /// Batches of held-out windows, each as large as a training batch; at least one.
  std::int64_t evaluation_batches() const noexcept { return static_cast<std::int64_t>(evaluation_batches_); }

  /// The token at `position` in [0, sequence] of a training sample; that at `sequence` is only ever a target.
  int token(std::int64_t step, std::int64_t sample, std::int64_t position) const {
    return (*text_)[begin(step, sample) + static_cast<std::size_t>(position)];
  }
  int target(std::int64_t step, std::int64_t sample, std::int64_t position) const {
    return token(step, sample, position + 1);
  }

  /// The same for sample `sample` of held-out batch `batch`.
  int held_out_token(std::int64_t batch, std::int64_t sample, std::int64_t position) const {
    return (*text_)[held_out_begin(batch, sample) + static_cast<std::size_t>(position)];
  }
  int held_out_target(std::int64_t batch, std::int64_t sample, std::int64_t position) const {
    return held_out_token(batch, sample, position + 1);
  }

  /// Offset in the text of the first token of a training sample: the window lies in the part that is not held
  /// out.
  std::size_t begin(std::int64_t step, std::int64_t sample) const {
    const std::uint64_t index = static_cast<std::uint64_t>(step) * batch_ + static_cast<std::uint64_t>(sample);
    return meshwise::random_bits(seed_, index) % (text_->training_size() - sequence_);
  }

  /// Offset in the text of the first token of a held-out sample; the windows are spread evenly over the
  /// tenth.
  std::size_t held_out_begin(std::int64_t batch, std::int64_t sample) const {
    const std::size_t window =
        (static_cast<std::size_t>(batch) * batch_ + static_cast<std::size_t>(sample)) % held_out_windows_;
    const std::size_t slack = text_->held_out_size() - 1 - sequence_;
    const std::size_t gaps = std::max<std::size_t>(held_out_windows_ - 1, 1);
    return text_->training_size() + window * slack / gaps;
  }

 private:
  void require_enough() const {
    const std::size_t window = sequence_ + 1, needed = batch_ * sequence_ + 1;
    if (text_->training_size() >= needed && text_->held_out_size() >= window) return;
    // The smallest text whose nine tenths hold a batch and whose tenth holds a window.
    std::size_t size = std::max(needed, 10 * window);
    size = std::max(size, needed + (needed - 1) / 9);
    std::string remedy = "; give a text of at least " + std::to_string(size) + " bytes";
    const std::size_t longest = std::min(text_->training_size() > 0 ? (text_->training_size() - 1) / batch_ : 0,
                                         text_->held_out_size() > 0 ? text_->held_out_size() - 1 : 0);
    if (longest > 0) remedy += ", or --sequence of at most " + std::to_string(longest);
    if (text_->held_out_size() >= window && text_->training_size() > sequence_) {
      remedy += ", or --batch of at most " + std::to_string((text_->training_size() - 1) / sequence_);
    }
    throw UsageError("the text is too short: of its " + std::to_string(text_->size()) + " bytes " +
                     std::to_string(text_->training_size()) + " are for training, where one batch of --batch " +
                     std::to_string(batch_) + " times --sequence " + std::to_string(sequence_) + " takes " +
                     std::to_string(needed) + ", and " + std::to_string(text_->held_out_size()) +
                     " are held out, where one window takes " + std::to_string(window) + remedy);
  }

  const Text* text_;
  std::size_t sequence_;
  std::size_t batch_;
  std::uint64_t seed_;
  std::size_t held_out_windows_ = 0;
  std::size_t evaluation_batches_ = 0;
};

}  // namespace gpt
