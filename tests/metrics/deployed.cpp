// SPDX-License-Identifier: Apache-2.0
#include "metrics/deployed.hpp"

#include <cctype>
#include <fstream>
#include <set>
#include <stdexcept>

#include "support/files.hpp"

namespace tidegate::metrics_test {
namespace {

namespace fs = std::filesystem;

void Replace(std::string& text, std::string_view what, std::string_view with) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) throw std::runtime_error("missing: " + std::string(what));
  text.replace(at, what.size(), with);
}

bool IsName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':';
}

}  // namespace

fs::path DeployFolder() { return fs::path(TIDEGATE_SOURCE) / "deploy"; }
fs::path DocsFolder() { return fs::path(TIDEGATE_SOURCE) / "docs"; }

std::string ScrapeConfig(const std::vector<std::string>& targets, const fs::path& token) {
  const fs::path folder = DeployFolder() / "prometheus";
  std::string text = test::ReadSourceFile(folder / "prometheus.yml");
  Replace(text, "scrape_interval: 15s", "scrape_interval: 500ms");
  Replace(text, "evaluation_interval: 15s", "evaluation_interval: 500ms");
  Replace(text, "- recording.yml", "- " + (folder / "recording.yml").string());
  Replace(text, "- alerts.yml", "- " + (folder / "alerts.yml").string());
  Replace(text, "/etc/prometheus/tidegate.token", token.string());
  std::string list;
  for (const std::string& target : targets) list += "          - " + target + "\n";
  const std::size_t begin = text.find("          - 10.0.0.11:9180");
  if (begin == std::string::npos) throw std::runtime_error("missing: the targets");
  return text.replace(begin, std::string::npos, list);
}

std::vector<std::string> MetricNames(std::string_view text) {
  std::set<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && IsName(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    for (const std::string_view prefix : {"tidegate_", "tidegate:", "ratelimit_", "process_"}) {
      if (word.starts_with(prefix) && word.size() > prefix.size()) names.emplace(word);
    }
    at = end + 1;
  }
  return {names.begin(), names.end()};
}

}  // namespace tidegate::metrics_test
