// SPDX-License-Identifier: Apache-2.0
#include "../../examples/gpt/text.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

template <class Function>
std::string complaint(Function function) {
  try {
    function();
  } catch (const gpt::UsageError& error) {
    const std::string text = error.what();
    CHECK(text.find('\n') == std::string::npos);
    return text;
  }
  return "accepted";
}

// A folder that is gone after the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "meshwise-text-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path() const { return path_.string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    const std::string file = (path_ / name).string();
    std::FILE* stream = std::fopen(file.c_str(), "wb");
    REQUIRE(stream != nullptr);
    CHECK(std::fwrite(bytes.data(), 1, bytes.size(), stream) == bytes.size());
    std::fclose(stream);
    return file;
  }

 private:
  std::filesystem::path path_;
};

// Bytes that tell their own offset, as far as a byte can.
gpt::Text counted(std::size_t size) {
  gpt::Text::Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i % 251);
  return gpt::Text(std::move(bytes));
}

}  // namespace

TEST_CASE("text: files are joined in order, byte for byte, and the last tenth is held out") {
  const Folder folder;
  std::string all(100000, '\0');
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(i * 7 % 256);
  const std::string a = folder.write("a", all.substr(0, 70000)), b = folder.write("b c", all.substr(70000));
  const gpt::Text text = gpt::Text::load({a, b});
  REQUIRE(text.size() == all.size());
  bool equal = true;
  for (std::size_t i = 0; i < all.size(); ++i) equal = equal && text[i] == static_cast<std::uint8_t>(all[i]);
  CHECK(equal);
  CHECK(text.training_size() == 90000);
  for (const std::size_t size : {0u, 1u, 2u, 3u, 5u, 7u, 8u, 10u, 19u, 64u, 1000u, 65537u}) {
    const gpt::Text some = counted(size);
    CHECK(some.held_out_size() == size / 10);
    CHECK(some.training_size() + some.held_out_size() == size);
  }
}

TEST_CASE("text: files that cannot be learnt from") {
  const Folder folder;
  const std::string good = folder.write("good", "text"), empty = folder.write("empty", "");
  CHECK(contains(complaint([&] { gpt::Text::load({good, folder.path() + "/none"}); }), "No such file"));
  CHECK(contains(complaint([&] { gpt::Text::load({folder.path()}); }), "is a directory"));
  CHECK(contains(complaint([&] { gpt::Text::load({good, empty}); }), "empty' is empty"));
  if (geteuid() != 0) {  // root reads everything
    const std::string secret = folder.write("secret", "text");
    std::filesystem::permissions(secret, std::filesystem::perms::none);
    CHECK(contains(complaint([&] { gpt::Text::load({secret}); }), "Permission denied"));
  }
  CHECK(gpt::Text::load({}).size() == 0);
  CHECK(gpt::Text::load({good, good}).size() == 8);
}

TEST_CASE("text: the default text is there or its remedy is") {
  const std::string text = complaint([] {
    for (const std::string& file : gpt::default_files()) CHECK(gpt::Text::load({file}).size() > 0);
  });
  CHECK((text == "accepted" || contains(text, "apt-get install fortunes")));
}

TEST_CASE("text: bytes outside the vocabulary") {
  const gpt::Text text({1, 2, 9, 200, 3});
  CHECK(complaint([&] { text.require_vocabulary(201); }) == "accepted");
  CHECK(complaint([&] { text.require_vocabulary(256); }) == "accepted");
  const std::string refusal = complaint([&] { text.require_vocabulary(9); });
  CHECK(contains(refusal, "byte 9 at offset 2"));
  CHECK(contains(refusal, "at least 201"));
}

TEST_CASE("windows: training windows lie in the training part and their targets follow their tokens") {
  for (const std::size_t size : {40u, 64u, 1000u, 65537u}) {
    for (const std::int64_t sequence : {1, 2, 3}) {
      for (const std::int64_t batch : {1, 5, 7}) {
        const gpt::Text text = counted(size);
        const gpt::Windows windows(text, sequence, batch, 3);
        for (std::int64_t step = 0; step < 20; ++step) {
          for (std::int64_t sample = 0; sample < batch; ++sample) {
            const std::size_t begin = windows.begin(step, sample);
            REQUIRE(begin + static_cast<std::size_t>(sequence) < text.training_size());
            for (std::int64_t i = 0; i < sequence; ++i) {
              CHECK(windows.token(step, sample, i) == text[begin + static_cast<std::size_t>(i)]);
              CHECK(windows.target(step, sample, i) == windows.token(step, sample, i + 1));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("windows: a window is a function of seed, step and sample, and they differ") {
  const gpt::Text text = counted(65537);
  const gpt::Windows one(text, 64, 8, 1), again(text, 64, 8, 1), other(text, 64, 8, 2);
  std::set<std::size_t> begins;
  int equal = 0;
  for (std::int64_t step = 99; step >= 0; --step) {
    for (std::int64_t sample = 7; sample >= 0; --sample) {
      CHECK(one.begin(step, sample) == again.begin(step, sample));
      equal += one.begin(step, sample) == other.begin(step, sample) ? 1 : 0;
      begins.insert(one.begin(step, sample));
    }
  }
  CHECK(begins.size() > 780);  // of 800 draws among 58919: about 5 coincide
  CHECK(equal < 5);
  // Drawn from the whole training part.
  CHECK(*begins.begin() < 1000);
  CHECK(*begins.rbegin() > text.training_size() - 64 - 1000);
}

TEST_CASE("windows: every start is possible, the last one included") {
  const gpt::Text text = counted(20);  // 18 for training
  const gpt::Windows windows(text, 1, 1, 5);
  std::set<std::size_t> begins;
  for (std::int64_t step = 0; step < 1000; ++step) begins.insert(windows.begin(step, 0));
  CHECK(begins.size() == 17);
  CHECK(*begins.rbegin() == 16);
}

TEST_CASE("windows: held-out windows are whole batches in the held-out part, in order and apart") {
  for (const std::size_t size : {1000u, 65537u}) {
    for (const std::int64_t batch : {1, 3, 8}) {
      const gpt::Text text = counted(size);
      const gpt::Windows windows(text, 7, batch, 3, 4);
      CHECK(windows.evaluation_batches() >= 1);
      CHECK(windows.evaluation_batches() <= 4);
      const std::int64_t all = windows.evaluation_batches() * batch;
      std::size_t before = 0;
      for (std::int64_t w = 0; w < all; ++w) {
        const std::size_t begin = windows.held_out_begin(w / batch, w % batch);
        CHECK(begin >= text.training_size());
        CHECK(begin + 7 < text.size());
        if (w > 0) CHECK(begin >= before + 7);
        before = begin;
        CHECK(windows.held_out_token(w / batch, w % batch, 0) == text[begin]);
        CHECK(windows.held_out_target(w / batch, w % batch, 6) == text[begin + 7]);
      }
      CHECK(windows.held_out_begin(0, 0) == text.training_size());
    }
  }
}

TEST_CASE("windows: a held-out part smaller than a batch is used again and again") {
  const gpt::Text text = counted(200);  // 20 held out: two windows of 8 tokens
  const gpt::Windows windows(text, 8, 5, 3);
  CHECK(windows.evaluation_batches() == 1);
  std::set<std::size_t> begins;
  for (std::int64_t sample = 0; sample < 5; ++sample) begins.insert(windows.held_out_begin(0, sample));
  CHECK(begins == std::set<std::size_t>{180, 191});
}

TEST_CASE("windows: a text shorter than one batch is refused, and what the refusal proposes works") {
  for (const std::size_t size : {0u, 1u, 5u, 9u, 10u, 19u, 20u, 21u, 64u, 1000u}) {
    for (const std::int64_t sequence : {1, 2, 5, 8, 64, 1000}) {
      for (const std::int64_t batch : {1, 2, 9, 64}) {
        const auto refusal = [&](std::size_t bytes, std::int64_t s, std::int64_t b) {
          const gpt::Text text = counted(bytes);
          return complaint([&] { gpt::Windows(text, s, b, 1); });
        };
        const std::string text = refusal(size, sequence, batch);
        const auto proposed = [&](const std::string& before) {
          const std::size_t at = text.find(before);
          return at == std::string::npos ? 0L : std::stol(text.substr(at + before.size()));
        };
        const bool enough = static_cast<std::int64_t>(size - size / 10) >= batch * sequence + 1 &&
                            static_cast<std::int64_t>(size / 10) >= sequence + 1;
        CHECK((text == "accepted") == enough);
        if (enough) continue;
        CHECK(contains(text, "of its " + std::to_string(size) + " bytes"));
        const long bytes = proposed("a text of at least "), s = proposed("--sequence of at most "),
                   b = proposed("--batch of at most ");
        REQUIRE(bytes > 0);
        CHECK(refusal(static_cast<std::size_t>(bytes), sequence, batch) == "accepted");
        CHECK(refusal(static_cast<std::size_t>(bytes) - 1, sequence, batch) != "accepted");
        if (s > 0) CHECK(refusal(size, s, batch) == "accepted");
        if (b > 0) CHECK(refusal(size, sequence, b) == "accepted");
      }
    }
  }
}
