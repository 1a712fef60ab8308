// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate {

/// By what a file's content is known again without being kept: it may be a secret. XXH3, 128 bits;
/// never stored, never sent.
struct ContentDigest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  /// Of nothing at all: an empty file, or one that could not be read.
  [[nodiscard]] bool none() const noexcept { return low == 0 && high == 0; }
  friend bool operator==(const ContentDigest&, const ContentDigest&) = default;
};

[[nodiscard]] ContentDigest DigestOf(std::string_view content) noexcept;
/// Of what the file holds now. What is no regular file is not opened, since a pipe would block.
[[nodiscard]] ContentDigest DigestOfFile(const std::string& path);

/// The digest of a list of names; never none().
[[nodiscard]] ContentDigest DigestOfNames(const std::vector<std::string>& names);

/// A file with the digest of its content, or a pattern with the digest of the names of the files
/// that match it, at the time of reading.
struct FileSeen {
  std::string path = {};
  ContentDigest content = {};
  bool is_pattern = false;
  friend bool operator==(const FileSeen&, const FileSeen&) = default;
};

/// Returns the digest that the file or pattern has now.
[[nodiscard]] ContentDigest CurrentDigest(const FileSeen& seen);

}  // namespace tidegate
