// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate {

/// Returns true if `path` has one of the characters `*`, `?` and `[`, by which a name is a pattern.
[[nodiscard]] bool IsFilePattern(std::string_view path) noexcept;
/// Returns `path` as a pattern that only `path` itself matches.
[[nodiscard]] std::string EscapedFilePattern(std::string_view path);

/// Returns the files that match a shell pattern, such as `conf/rules/*.yaml`, sorted by name, byte
/// by byte. Folders and names that begin with a dot are left out. The error says which folder
/// cannot be read; a folder that does not exist has no files.
[[nodiscard]] std::expected<std::vector<std::string>, std::string> FilesMatching(
    const std::string& pattern);

}  // namespace tidegate
