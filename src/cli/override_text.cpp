// SPDX-License-Identifier: Apache-2.0
#include "cli/override_text.hpp"

#include "cli/human.hpp"
#include "cli/quota_text.hpp"

namespace tidegate::cli {
namespace {

bool IsConfigured(const Members& entry) { return entry.Text("from") == "configuration"; }

/// With who gave it, and why.
std::string GivenText(const Members& entry) {
  std::string text = OverrideKind(entry);
  if (!entry.Text("by").empty()) text += " by " + entry.Text("by");
  if (!entry.Text("reason").empty()) text += ": " + entry.Text("reason");
  return text;
}

}  // namespace

std::string OverrideKind(const Members& entry) {
  std::string kind = entry.Text("kind");
  return kind == "quota" ? "quota " + QuotaOf(entry) : kind;
}

std::string OverrideGiver(const Members& entry) {
  return IsConfigured(entry) ? "by the configuration" : "by an operator";
}

std::string OverrideText(const Members& entry) {
  if (IsConfigured(entry)) {
    const bool quota = entry.Text("kind") == "quota";
    return OverrideGiver(entry) + ": " + (quota ? QuotaOf(entry) : OverrideKind(entry));
  }
  return GivenText(entry) +
         (entry.Has("left_ms") ? "; " + Span(entry.Ms("left_ms")) + " left" : "; until lifted");
}

std::string EndedOverrideText(const Members& entry) {
  if (IsConfigured(entry) || !entry.Has("expires_ms")) return OverrideText(entry);
  return GivenText(entry) + ", until " + TimeStamp(entry.Whole("expires_ms"));
}

}  // namespace tidegate::cli
