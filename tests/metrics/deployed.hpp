// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::metrics_test {

/// Folders with the files of deploy/ and with the documentation.
[[nodiscard]] std::filesystem::path DeployFolder();
[[nodiscard]] std::filesystem::path DocsFolder();
/// Returns deploy/prometheus/prometheus.yml with shorter intervals, with these targets, with the
/// token file `token`, and with absolute paths of the rules. Throws if a line to be changed is
/// missing in the file.
[[nodiscard]] std::string ScrapeConfig(const std::vector<std::string>& targets,
                                       const std::filesystem::path& token);

/// Returns the names of metrics in a text, each once: `tidegate_...`, `ratelimit_...`,
/// `process_...` and those of recording rules.
[[nodiscard]] std::vector<std::string> MetricNames(std::string_view text);

}  // namespace tidegate::metrics_test
