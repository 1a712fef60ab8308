// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate {

/// A hash of a file's content, by which a change is recognised without keeping secrets. It has 128
/// bits (XXH3) and is never stored or sent.
struct ContentDigest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  /// True for an empty file, and for one that could not be read.
  [[nodiscard]] bool none() const noexcept { return low == 0 && high == 0; }
  friend bool operator==(const ContentDigest&, const ContentDigest&) = default;
};

/// Returns the content of a file. A file longer than `max_bytes` is cut to one byte more than that.
/// The error says why the file cannot be read.
[[nodiscard]] std::expected<std::string, std::string> ReadFileUpTo(const std::string& path,
                                                                   std::size_t max_bytes);

[[nodiscard]] ContentDigest DigestOf(std::string_view content) noexcept;
/// Returns the digest of a regular file's content, and none() for other files: a pipe would block.
[[nodiscard]] ContentDigest DigestOfFile(const std::string& path);

/// The digest of a list of names; never none().
[[nodiscard]] ContentDigest DigestOfNames(const std::vector<std::string>& names);

/// A file with the digest of its content, or a pattern with the digest of the matching names.
struct WatchedFile {
  std::string path = {};
  ContentDigest content = {};
  bool is_pattern = false;
  friend bool operator==(const WatchedFile&, const WatchedFile&) = default;
};

/// Returns the digest that the file or pattern has now.
[[nodiscard]] ContentDigest CurrentDigest(const WatchedFile& file);

/// Returns true if `path` is a pattern: if it has one of the characters `*`, `?` and `[`.
[[nodiscard]] bool IsFilePattern(std::string_view path) noexcept;
/// Returns `path` as a pattern that only `path` itself matches.
[[nodiscard]] std::string EscapedFilePattern(std::string_view path);

/// Returns the files that match a shell pattern, such as `conf/rules/*.yaml`, sorted by name, byte
/// by byte. Folders and names that begin with a dot are left out. The error says which folder
/// cannot be read; a folder that does not exist has no files.
[[nodiscard]] std::expected<std::vector<std::string>, std::string> FilesMatching(
    const std::string& pattern);

}  // namespace tidegate
