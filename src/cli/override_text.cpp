// SPDX-License-Identifier: Apache-2.0
#include "cli/override_text.hpp"

#include "cli/human.hpp"

namespace tidegate::cli {

std::string OverrideKind(const Members& entry) {
  std::string kind = entry.Text("kind");
  if (kind != "quota") return kind;
  std::string text = "quota " + entry.Text("limit");
  if (entry.Has("burst")) text += ", burst " + Count(entry.Whole("burst"));
  return text;
}

std::string OverrideText(const Members& entry) {
  std::string text = OverrideKind(entry);
  if (!entry.Text("by").empty()) text += " by " + entry.Text("by");
  if (!entry.Text("reason").empty()) text += ": " + entry.Text("reason");
  text += entry.Has("left_ms") ? "; " + Span(entry.Ms("left_ms")) + " left" : "; until lifted";
  return text;
}

}  // namespace tidegate::cli
