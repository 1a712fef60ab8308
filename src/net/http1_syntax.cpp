// SPDX-License-Identifier: Apache-2.0
#include "net/http1_syntax.hpp"

namespace tidegate::net::http1 {
namespace {

void SplitQuery(std::string_view text, Target& target) noexcept {
  const std::size_t mark = text.find('?');
  target.path = text.substr(0, mark);
  if (mark != std::string_view::npos) target.query = text.substr(mark + 1);
}

std::size_t SchemeLength(std::string_view target) noexcept {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (EqualsIgnoreCase(target.substr(0, scheme.size()), scheme)) return scheme.size();
  }
  return 0;
}

std::optional<Target> SplitAbsolute(std::string_view method, std::string_view target) noexcept {
  const std::size_t scheme = SchemeLength(target);
  if (scheme == 0) return std::nullopt;
  target.remove_prefix(scheme);
  const std::size_t end = target.find_first_of("/?");
  Target split{.authority = target.substr(0, end), .path = {}, .query = {}};
  if (!IsHostAndPort(*split.authority, Port::kOptional)) return std::nullopt;
  if (end == std::string_view::npos) {
    split.path = method == "OPTIONS" ? "*" : "/";  // RFC 9112, 3.2.4.
    return split;
  }
  SplitQuery(target.substr(end), split);
  if (split.path.empty()) split.path = "/";
  return split;
}

/// Returns true for numbers up to 65,535 of at most five digits; RFC 3986 allows an empty port.
bool IsPort(std::string_view text, Port port) noexcept {
  if (text.size() > 5 || !All(text, kDigit)) return false;
  unsigned value = 0;
  for (const char c : text) value = value * 10 + static_cast<unsigned>(c - '0');
  return value <= 65535 && (port == Port::kOptional || value > 0);
}

/// Returns true if the length and the characters of `text` are those of an IPv6 address.
bool IsAddress6(std::string_view text) noexcept {
  if (text.size() < 2 || text.size() > 45) return false;
  bool colon = false;
  for (const char c : text) {
    if (HexDigit(c) < 0 && c != ':' && c != '.') return false;
    colon |= c == ':';
  }
  return colon;
}

}  // namespace

FieldLines::Found FieldLines::Next(std::string_view text) noexcept {
  if (step_ == Step::kLine) {
    if (pos_ == text.size()) return Found::kMore;
    if (text[pos_] == '\r' || text[pos_] == '\n') {
      Found found = Found::kEnd;
      pos_ += EndOfLine(text, found);
      return found;
    }
    if (IsBlank(text[pos_])) return Refuse("field line begins with white space");
    begin_ = pos_;
    step_ = Step::kName;
  }
  if (step_ == Step::kName) {
    pos_ = SkipToken(text, pos_);
    if (pos_ == text.size()) return Found::kMore;
    if (text[pos_] != ':' || pos_ == begin_) return Refuse(BadNameReason(text[pos_]));
    name_end_ = pos_++;
    step_ = Step::kValue;
  }
  pos_ = SkipText(text, pos_);
  if (pos_ == text.size()) return Found::kMore;
  Found found = Found::kField;
  const std::size_t end = EndOfLine(text, found);
  if (end == 0) return found;
  value_end_ = pos_;
  pos_ += end;
  step_ = Step::kLine;
  return found;
}

std::size_t FieldLines::EndOfLine(std::string_view text, Found& found) noexcept {
  if (text[pos_] == '\n' && line_end_ == LineEnd::kCrlfOrLf) return 1;
  if (text[pos_] != '\r') {
    found = Refuse(BadTextReason(text[pos_]));
  } else if (pos_ + 1 == text.size()) {
    found = Found::kMore;
  } else if (text[pos_ + 1] != '\n') {
    found = Refuse(kBareCr);
  } else {
    return 2;
  }
  return 0;
}

std::optional<Target> SplitTarget(std::string_view method, std::string_view target) noexcept {
  if (method == "CONNECT") {
    if (!IsHostAndPort(target, Port::kRequired)) return std::nullopt;
    return Target{.authority = target, .path = {}, .query = {}};
  }
  if (target.front() == '/') {
    Target split;
    SplitQuery(target, split);
    return split;
  }
  if (target == "*") {
    if (method != "OPTIONS") return std::nullopt;
    return Target{.authority = {}, .path = target, .query = {}};
  }
  return SplitAbsolute(method, target);
}

bool IsHostAndPort(std::string_view authority, Port port) noexcept {
  std::size_t end = 0;
  if (authority.starts_with('[')) {
    const std::size_t bracket = authority.find(']');
    if (bracket == std::string_view::npos) return false;
    if (!IsAddress6(authority.substr(1, bracket - 1))) return false;
    end = bracket + 1;
  } else {
    end = Skip(authority, 0, kName);
    if (end == 0) return false;
  }
  if (end == authority.size()) return port == Port::kOptional;
  return authority[end] == ':' && IsPort(authority.substr(end + 1), port);
}

}  // namespace tidegate::net::http1
