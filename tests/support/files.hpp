// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tidegate::test {

/// A new folder that is deleted with its content at the end. It is in memory if possible: servers
/// that flush their files to a busy disk wait for seconds.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::string string() const { return path_.string(); }
  friend std::filesystem::path operator/(const TemporaryFolder& folder, std::string_view name) {
    return folder.path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// Returns the content of a file; empty if it cannot be read.
[[nodiscard]] std::string ReadFile(const std::filesystem::path& path);

/// Returns the content of a file of the project, such as `docs/openapi.json`. Throws if there is
/// none.
[[nodiscard]] std::string ReadSourceFile(const std::filesystem::path& path);

/// Replaces the file in one step, as editors and deployments do.
void WriteFile(const std::filesystem::path& path, std::string_view text);

}  // namespace tidegate::test
