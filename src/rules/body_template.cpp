// SPDX-License-Identifier: Apache-2.0
#include "rules/body_template.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>

#include "rules/ascii.hpp"
#include "rules/nearest.hpp"

namespace tidegate {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

bool IsLetterOrDigit(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// A name in braces is a placeholder, or a mistake. JSON, CSS and scripts have other text there.
bool IsNameCharacter(char c) noexcept { return (c >= 'a' && c <= 'z') || c == '_'; }

void AppendPercentEncoded(std::string& out, unsigned char byte) {
  out += '%';
  out += kHexDigits[byte >> 4];
  out += kHexDigits[byte & 15];
}

void AppendJson(std::string& out, unsigned char byte) {
  const char c = static_cast<char>(byte);
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '<' || c == '>' || c == '&' || c == '\'') {
    // Harmless in JSON, but not if a page copies the string into its markup.
    out += "\\u00";
    out += kHexDigits[byte >> 4];
    out += kHexDigits[byte & 15];
  } else {
    out += c;
  }
}

/// The characters of a value that a client chose which are written as they are. Neither quotes nor
/// brackets, `;` or backslashes: they would end a string of a script in an attribute, where
/// character references are decoded before the script runs.
bool IsPlain(char c) noexcept {
  constexpr std::string_view kMarks = "-._~/:+=,@%";
  return IsLetterOrDigit(c) || kMarks.find(c) != std::string_view::npos;
}

/// Character references for all but a few characters are safe also in an attribute without quotes.
void AppendMarkup(std::string& out, unsigned char byte) {
  const char c = static_cast<char>(byte);
  if (IsLetterOrDigit(c) || c == '-' || c == '.' || c == '_' || c == '~' || c == '/') {
    out += c;
  } else {
    out += "&#" + std::to_string(int{byte}) + ";";
  }
}

/// Returns the type without parameters, in lower case.
std::string EssenceOf(std::string_view media_type) {
  std::string essence(Trim(media_type.substr(0, media_type.find(';'))));
  std::ranges::transform(essence, essence.begin(), [](char c) { return Lower(c); });
  return essence;
}

}  // namespace

BodyTemplate::Escaping BodyTemplate::EscapingOf(std::string_view media_type) noexcept {
  const std::string essence = EssenceOf(media_type);
  if (essence == "application/json" || essence.ends_with("+json")) return Escaping::kJson;
  if (essence == "text/html" || essence == "text/xml" || essence == "application/xml" ||
      essence.ends_with("+xml")) {
    return Escaping::kMarkup;
  }
  return essence == "text/plain" ? Escaping::kText : Escaping::kNone;
}

std::expected<BodyTemplate, std::string> BodyTemplate::Parse(std::string text, Escaping escaping) {
  BodyTemplate body;
  body.text_ = std::move(text);
  body.escaping_ = escaping;
  const std::string_view all = body.text_;
  for (std::size_t at = all.find('{'); at != std::string_view::npos; at = all.find('{', at + 1)) {
    const std::size_t end =
        std::min(static_cast<std::size_t>(
                     std::ranges::find_if_not(all.substr(at + 1), IsNameCharacter) - all.begin()),
                 all.size());
    const std::string_view name = all.substr(at + 1, end - at - 1);
    if (name.empty() || end == all.size() || all[end] != '}') continue;
    std::string shown = "`{" + std::string(name) + "}`";
    const auto found = std::ranges::find(kNames, name);
    if (found == kNames.end()) {
      const std::string hint = DidYouMean(name, kNames);
      return std::unexpected(
          shown.append(" is not a placeholder")
              .append(hint.empty() ? ": the placeholders are " + OneOf(kNames) : hint));
    }
    if (escaping == Escaping::kNone) {
      return std::unexpected(
          shown +
          " cannot be escaped for this media type: placeholders are possible in JSON, HTML, XML "
          "and `text/plain`");
    }
    body.placeholders_.push_back({at, end + 1, static_cast<Field>(found - kNames.begin())});
    at = end;
  }
  if (escaping != Escaping::kJson) return body;
  // Texts outside of quotes are not valid JSON, whatever they are.
  constexpr std::string_view kSample = "a b";
  for (const std::optional<std::int64_t> number : {std::optional<std::int64_t>{1}, {}}) {
    struct Text {
      std::string text;
      void operator<<(std::string_view more) { text += more; }
    } sample;
    body.Write(sample,
               {kSample, number, number, number, kSample, kSample, 429, kSample, kSample, kSample});
    boost::system::error_code error;
    (void)boost::json::parse(sample.text, error);
    if (!error) continue;
    return std::unexpected(
        "is not valid JSON once its placeholders are replaced: " + error.message() + " in `" +
        sample.text.substr(0, 200) + "`; put placeholders of texts in quotes, as in `\"{rule}\"`");
  }
  return body;
}

void BodyTemplate::AppendNumber(std::string& out, std::optional<std::int64_t> number) const {
  if (number) {
    out += std::to_string(*number);
  } else {
    out += escaping_ == Escaping::kJson ? "null" : "unknown";
  }
}

void BodyTemplate::AppendClientText(std::string& out, std::string_view text) const {
  std::string encoded;
  for (const char c : text) {
    if (IsPlain(c)) {
      encoded += c;
    } else {
      AppendPercentEncoded(encoded, static_cast<unsigned char>(c));
    }
  }
  AppendText(out, encoded);
}

void BodyTemplate::AppendText(std::string& out, std::string_view text) const {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      AppendPercentEncoded(out, byte);
    } else if (escaping_ == Escaping::kJson) {
      AppendJson(out, byte);
    } else if (escaping_ == Escaping::kMarkup) {
      AppendMarkup(out, byte);
    } else {
      out += c;
    }
  }
}

void BodyTemplate::Append(std::string& out, Field field, const BodyValues& values) const {
  switch (field) {
    case Field::kRule:
      return AppendText(out, values.rule);
    case Field::kLimit:
      return AppendNumber(out, values.limit);
    case Field::kRemaining:
      return AppendNumber(out, values.remaining);
    case Field::kRetryAfter:
      return AppendNumber(out, values.retry_after);
    case Field::kRequestId:
      return AppendClientText(out, values.request_id);
    case Field::kLink:
      return AppendText(out, values.link);
    case Field::kStatus:
      return AppendNumber(out, values.status);
    case Field::kTitle:
      return AppendText(out, values.title);
    case Field::kMethod:
      return AppendClientText(out, values.method);
    case Field::kPath:
      return AppendClientText(out, values.path);
  }
}

}  // namespace tidegate
