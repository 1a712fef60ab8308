// SPDX-License-Identifier: Apache-2.0
#include "cli/match_text.hpp"

namespace tidegate::cli {
namespace {

/// `(/a/** | POST x.example.com)`
std::string MatchTexts(const boost::json::array& matches) {
  std::string text;
  for (const auto& match : matches) text += (text.empty() ? "" : " | ") + MatchText(Members(match));
  return "(" + text + ")";
}

}  // namespace

std::string MatchText(const Members& match) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view label) {
    const std::string value = match.Text(name);
    if (value.empty()) return;
    text += (text.empty() ? "" : " ") + std::string(label) + value;
  };
  add("method", "");
  add("host", "");
  add("path", "");
  add("header", "");
  add("client_ip", "from ");
  for (const std::string_view name : {"any", "not"}) {
    const boost::json::array& matches = match.Array(name);
    if (matches.empty()) continue;
    text += (text.empty() ? "" : " ") + std::string(name) + " " + MatchTexts(matches);
  }
  return text.empty() ? "everything" : text;
}

}  // namespace tidegate::cli
