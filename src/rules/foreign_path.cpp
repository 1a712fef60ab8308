// SPDX-License-Identifier: Apache-2.0
#include "rules/foreign_path.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/ascii.hpp"
#include "base/message_text.hpp"

namespace tidegate {
namespace {

constexpr std::size_t kMaxChoices = 8;  ///< The most paths that a message lists.

bool IsNameByte(char c) noexcept { return IsAlphanumeric(c) || c == '_' || c == '-'; }

bool IsParameterName(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, IsNameByte);
}

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> of) noexcept {
  return std::ranges::find(of, text) != of.end();
}

/// Returns true if another router reads the segment as a pattern, but this configuration does not.
bool IsForeign(std::string_view segment) noexcept {
  // A parameter is a whole segment here: `:id.json` would match every segment.
  if (segment.size() > 1 && segment[0] == ':') return !IsParameterName(segment.substr(1));
  if (segment.find_first_of("{}<>[]^|\\*") != std::string_view::npos) return true;
  return IsOneOf(segment, {".+", "(.+)", "...", "%s", "%d"}) || segment.contains("(?");
}

/// Splits `path` at slashes that are not inside brackets.
std::vector<std::string_view> ForeignSegments(std::string_view path) {
  std::vector<std::string_view> segments;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (std::string_view("([{<").contains(path[i])) ++depth;
    if (std::string_view(")]}>").contains(path[i])) depth = std::max(depth - 1, 0);
    if (path[i] != '/' || depth > 0) continue;
    segments.push_back(path.substr(start, i - start));
    start = i + 1;
  }
  segments.push_back(path.substr(start));
  return segments;
}

/// Returns the name of `{id}`, `{id:[0-9]+}`, `<int:id>`, `:id(\d+)` or `(?P<id>.*)`: `id`.
std::string ParameterName(std::string_view segment) {
  const std::size_t group = segment.find("(?");
  if (group != std::string_view::npos) segment.remove_prefix(group);
  const std::size_t open = segment.find_first_of("{<[:");
  std::string_view inside = segment.substr(open == std::string_view::npos ? 0 : open);
  const bool typed = inside.starts_with('<') && inside.contains(":");  // As in `<int:id>`.
  if (typed) inside.remove_prefix(inside.find(':'));
  const auto* const begin = std::ranges::find_if(inside, IsNameByte);
  const auto* const end = std::find_if_not(begin, inside.end(), IsNameByte);
  std::string name(begin, end);
  // `[0-9]+` and `\d+` have no name.
  const bool letters = !name.empty() && !IsDigit(name[0]) && name[0] != '-';
  const bool named = open != std::string_view::npos && letters && !name.contains("a-z");
  if (named) return name;
  return segment.contains("\\d") || segment.contains("0-9") || segment == "%d" ? "id" : "name";
}

/// Returns true if the segment matches any number of segments, as `.*`, `{proxy+}`, `<path:p>` do.
bool IsRest(std::string_view segment) noexcept {
  if (IsOneOf(segment, {"*", "**", ".*", ".+", "(.*)", "(.+)", ".*?", "(.*)?", "..."})) return true;
  if (segment.starts_with("[...") || segment.starts_with("[[...")) return true;
  if (segment.starts_with('*') || segment.starts_with("{*") || segment.starts_with("<path:")) {
    return !segment.contains(".");  // `*.png` matches a part of one segment.
  }
  for (const std::string_view end : {"+}", "*}", "...}", ":.*}", ":.+}", "{.*}", "*>"}) {
    if (segment.ends_with(end) && !segment.ends_with("]" + std::string(end))) return true;
  }
  return segment.starts_with(':') && (segment.ends_with('*') || segment.ends_with('+'));
}

/// Returns the alternatives in `(a|b)`, `(?:a|b)` and `{a,b}`; nothing if one is not plain text.
std::vector<std::string_view> ChoicesOf(std::string_view segment) {
  const bool group = segment.starts_with('(') && segment.ends_with(')');
  const bool braces = segment.starts_with('{') && segment.ends_with('}');
  if (!group && !braces) return {};
  segment = segment.substr(1, segment.size() - 2);
  if (segment.starts_with("?:")) segment.remove_prefix(2);
  const char between = group ? '|' : ',';
  if (!segment.contains(between)) return {};
  std::vector<std::string_view> choices;
  for (std::size_t from = 0; from <= segment.size();) {
    const std::size_t end = std::min(segment.find(between, from), segment.size());
    choices.push_back(segment.substr(from, end - from));
    if (!IsParameterName(choices.back())) return {};
    from = end + 1;
  }
  return choices;
}

/// Returns true if the segment is exactly one parameter, without text beside it.
bool IsWholeParameter(std::string_view segment) noexcept {
  if (IsOneOf(segment, {"%s", "%d"})) return true;
  const char last = segment.back();
  if (segment.starts_with(':')) return last == '?' || last == ')' || last == '}';
  const bool repeated = last == '+' || last == '*' || last == '?';
  const std::string_view core = segment.substr(0, segment.size() - (repeated ? 1 : 0));
  if (core.starts_with('\\')) return core.size() == 2;
  constexpr std::string_view kOpen = "{<[(";
  constexpr std::string_view kClose = "}>])";
  const std::size_t kind = core.empty() ? std::string_view::npos : kOpen.find(core.front());
  if (kind == std::string_view::npos) return false;
  // The bracket that opens the segment must also end it.
  int depth = 0;
  for (std::size_t i = 0; i < core.size(); ++i) {
    if (core[i] == kOpen[kind]) ++depth;
    if (core[i] == kClose[kind] && --depth == 0) return i + 1 == core.size();
  }
  return false;
}

/// A path without what surrounds it in regular expressions and in `location` lines of nginx.
struct Bare {
  std::string_view path;
  bool open = false;  ///< A group that matches everything below, as `(/.*)?`, ended the path.
};

Bare WithoutAnchors(std::string_view path) noexcept {
  for (const std::string_view sign : {"~*", "^~", "~", "=", " ", "^"}) {
    while (path.starts_with(sign)) path.remove_prefix(sign.size());
  }
  for (const std::string_view end : {"(/|$)(.*)", "$", "/?"}) {
    if (!path.ends_with(end)) continue;
    path.remove_suffix(end.size());
    if (end.size() > 2) return {path, true};
  }
  for (const std::string_view end : {"(/.*)?", "(?:/.*)?", "(/.*)"}) {
    if (path.ends_with(end)) return {path.substr(0, path.size() - end.size()), true};
  }
  return {path};
}

/// Translates a foreign path to a pattern of this configuration, segment by segment.
class Translation {
 public:
  explicit Translation(std::string_view path) {
    const Bare bare = WithoutAnchors(path);
    std::vector<std::string_view> segments = ForeignSegments(bare.path);
    if (segments.size() > 1 && segments.front().empty()) segments.erase(segments.begin());
    for (std::size_t i = 0; i < segments.size() && !ended_; ++i) {
      Add(segments[i], i + 1 == segments.size());
    }
    if (bare.open && !ended_) Append("/**");
  }

  [[nodiscard]] ForeignPath Result() const {
    if (paths_.size() == 1) {
      return {Backticked(paths_.front()) +
                  (or_one_ ? ", or " + Backticked(*or_one_) + " for one segment" : ""),
              exact_};
    }
    std::string list = "[";
    for (const std::string& path : paths_) list += (list.size() > 1 ? ", " : "") + path;
    return {Backticked(list + "]"), exact_};
  }

 private:
  void Append(const std::string& text) {
    for (std::string& path : paths_) path += text;
  }

  void Add(std::string_view segment, bool last) {
    const auto choices = ChoicesOf(segment);
    if (!choices.empty() && choices.size() * paths_.size() <= kMaxChoices) return Multiply(choices);
    const bool star = segment == "*";
    if (IsRest(segment) && (last || !star)) {
      if (star && paths_.size() == 1) or_one_ = paths_.front() + "/:name";
      exact_ = exact_ && last;
      ended_ = true;
      return Append("/**");
    }
    if (!IsForeign(segment)) return Append("/" + std::string(segment));
    if (const auto text = Unescaped(segment)) return Append("/" + *text);
    exact_ = exact_ && (star || IsWholeParameter(segment));
    Append("/:" + ParameterName(segment));
  }

  void Multiply(const std::vector<std::string_view>& choices) {
    std::vector<std::string> all;
    for (const std::string& path : paths_) {
      for (const std::string_view choice : choices) all.push_back(path + "/" + std::string(choice));
    }
    paths_ = std::move(all);
  }

  /// Returns the text of a segment in which only punctuation is escaped, as in `v1\.0`.
  static std::optional<std::string> Unescaped(std::string_view segment) {
    std::string text;
    for (std::size_t i = 0; i < segment.size(); ++i) {
      const bool escapes = segment[i] == '\\' && i + 1 < segment.size();
      if (escapes && IsNameByte(segment[i + 1]) && segment[i + 1] != '-') return std::nullopt;
      text += segment[escapes ? ++i : i];
    }
    if (IsForeign(text)) return std::nullopt;
    return text;
  }

  std::vector<std::string> paths_{""};
  std::optional<std::string> or_one_;  ///< The pattern that `*` at the end means to some routers.
  bool exact_ = true;
  bool ended_ = false;  ///< True after `/**`, because nothing can follow it.
};

}  // namespace

std::optional<ForeignPath> ReadForeignPath(std::string_view path) {
  const std::string_view fixed = path.ends_with("/**") ? path.substr(0, path.size() - 3) : path;
  constexpr std::string_view kSigns = "{}<>[]^|\\*";
  bool foreign = fixed.find_first_of(kSigns) != std::string_view::npos || fixed.starts_with('~');
  if (!foreign) {
    // Ordinary paths have none of these.
    constexpr std::array<std::string_view, 5> kRare = {"/:", "/.", "/%", "(?", "(.+"};
    if (std::ranges::none_of(kRare, [&](std::string_view part) { return fixed.contains(part); })) {
      return std::nullopt;
    }
    foreign = std::ranges::any_of(ForeignSegments(fixed), IsForeign);
  }
  if (!foreign) return std::nullopt;
  return Translation(path).Result();
}

}  // namespace tidegate
