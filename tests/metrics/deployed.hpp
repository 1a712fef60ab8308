// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::metrics_test {

/// The files of deploy/, and the pages about them.
[[nodiscard]] std::filesystem::path DeployFolder();
[[nodiscard]] std::filesystem::path DocsFolder();
/// deploy/prometheus/prometheus.yml in a hurry: with these targets, this file with the token, and
/// rules by their whole path, so that it may lie anywhere. All else is as it is there. Throws if
/// something that is to be changed is not there.
[[nodiscard]] std::string ScrapeConfig(const std::vector<std::string>& targets,
                                       const std::filesystem::path& token);

/// The names of metrics in a text: `tidegate_...`, `ratelimit_...`, `process_...` and those of
/// recording rules, each once.
[[nodiscard]] std::vector<std::string> MetricNames(std::string_view text);

}  // namespace tidegate::metrics_test
