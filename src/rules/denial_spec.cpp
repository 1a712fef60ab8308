// SPDX-License-Identifier: Apache-2.0
#include "rules/denial_spec.hpp"

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>

#include "base/ascii.hpp"
#include "base/message_text.hpp"

namespace tidegate {
namespace {

/// Returns true if `c` may be part of a placeholder's name. An unknown name in braces is an error;
/// other text in braces, as in JSON, CSS and scripts, is kept.
bool IsNameCharacter(char c) noexcept { return IsLower(c) || c == '_'; }

void AppendJson(std::string& out, char c) {
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '<' || c == '>' || c == '&' || c == '\'') {
    // These are harmless in JSON, but not if a page copies the string into its markup.
    AppendHex(out, "\\u00", c);
  } else {
    out += c;
  }
}

/// Returns true if `c` is written as it is in a value that a client chose. Quotes, brackets, `;`
/// and `\` could end a script's string in an attribute, whose references are decoded before.
bool IsPlain(char c) noexcept {
  constexpr std::string_view kMarks = "-._~/:+=,@%";
  return IsAlphanumeric(c) || kMarks.contains(c);
}

/// Appends `c`, as a character reference unless it is safe even in an attribute without quotes.
void AppendMarkup(std::string& out, char c) {
  if (IsAlphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~' || c == '/') {
    out += c;
  } else {
    out += "&#" + std::to_string(int{c}) + ";";
  }
}

/// Percent-encodes all but plain characters of `text`, which a client chose.
std::string Encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (IsPlain(c)) {
      encoded += c;
    } else {
      AppendHex(encoded, "%", c);
    }
  }
  return encoded;
}

struct PlaceholderInfo {
  std::string_view name;
  std::string_view BodyValues::*text = nullptr;
  std::optional<std::int64_t> BodyValues::*number = nullptr;
  bool by_client = false;  ///< A client chose the value.
};
constexpr std::array<PlaceholderInfo, 10> kPlaceholders = {
    {{.name = "rule", .text = &BodyValues::rule},
     {.name = "limit", .number = &BodyValues::limit},
     {.name = "remaining", .number = &BodyValues::remaining},
     {.name = "retry_after", .number = &BodyValues::retry_after},
     {.name = "request_id", .text = &BodyValues::request_id, .by_client = true},
     {.name = "link", .text = &BodyValues::link},
     {.name = "status", .number = &BodyValues::status},
     {.name = "title", .text = &BodyValues::title},
     {.name = "method", .text = &BodyValues::method, .by_client = true},
     {.name = "path", .text = &BodyValues::path, .by_client = true}}};

}  // namespace

BodyTemplate::Escaping BodyTemplate::EscapingOf(std::string_view media_type) noexcept {
  const std::string essence = Lowered(Trim(media_type.substr(0, media_type.find(';'))));
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
    const auto* const found = std::ranges::find(kPlaceholders, name, &PlaceholderInfo::name);
    if (found == kPlaceholders.end()) {
      std::vector<std::string_view> names;
      for (const PlaceholderInfo& each : kPlaceholders) names.push_back(each.name);
      const std::string hint = DidYouMean(name, names);
      return std::unexpected(
          shown.append(" is not a placeholder")
              .append(hint.empty() ? ": the placeholders are " + OneOf(names) : hint));
    }
    if (escaping == Escaping::kNone) {
      return std::unexpected(shown +
                             " cannot be escaped for this media type: placeholders are possible in "
                             "JSON, HTML, XML and `text/plain`");
    }
    body.placeholders_.push_back(
        {at, end + 1, static_cast<std::size_t>(found - kPlaceholders.begin())});
    at = end;
  }
  if (escaping != Escaping::kJson) return body;
  // A text value outside of quotes makes the JSON invalid: no JSON value reads `a b`.
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

void BodyTemplate::AppendText(std::string& out, std::string_view text) const {
  for (const char c : text) {
    if (c < 0x20 || c == 0x7f) {  // Control characters, and bytes from 0x80 on, which are negative.
      AppendHex(out, "%", c);
    } else if (escaping_ == Escaping::kJson) {
      AppendJson(out, c);
    } else if (escaping_ == Escaping::kMarkup) {
      AppendMarkup(out, c);
    } else {
      out += c;
    }
  }
}

void BodyTemplate::Append(std::string& out, std::size_t value, const BodyValues& values) const {
  const auto& [name, text, number, by_client] = kPlaceholders[value];
  if (text != nullptr) return AppendText(out, by_client ? Encoded(values.*text) : values.*text);
  if (values.*number) {
    out += std::to_string(*(values.*number));
  } else {
    out += escaping_ == Escaping::kJson ? "null" : "unknown";
  }
}

bool IsDenialField(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 14> kNames = {"accept-ranges", "age",
                                                       "date",          "etag",
                                                       "expires",       "last-modified",
                                                       "link",          "ratelimit",
                                                       "retry-after",   "surrogate-control",
                                                       "surrogate-key", "x-content-type-options",
                                                       "x-request-id",  "x-tidegate-decided-by"};
  // Content-Encoding and similar fields describe the body of the upstream. Caches must not keep
  // denials, whichever of the cache-control fields they obey.
  const bool of_body = name.starts_with("content-") && !name.starts_with("content-security-policy");
  return of_body || name.ends_with("cache-control") || name.starts_with("grpc-") ||
         name.starts_with("ratelimit-") || name.starts_with("x-ratelimit-") ||
         std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace tidegate
