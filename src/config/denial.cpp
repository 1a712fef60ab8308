// SPDX-License-Identifier: Apache-2.0
// denial: what a client sees when a request is denied; and the header fields that routes and
// denials set or remove.
#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/ascii.hpp"
#include "config/sections.hpp"

namespace tidegate {
namespace {

constexpr std::size_t kMaxBody = 64u << 10;
constexpr std::size_t kMaxLink = 2'048;
constexpr std::size_t kMaxValue = 4'096;

/// Fields of one connection. Editing them would mislead the peer about where a body ends.
constexpr std::array<std::string_view, 8> kFraming = {
    "connection", "keep-alive",        "proxy-connection", "te",
    "trailer",    "transfer-encoding", "upgrade",          "content-length"};
/// Fields of a request that describe the client to upstreams; the gateway writes all of them.
constexpr std::array<std::string_view, 8> kForwarding = {"x-forwarded-for",  "x-forwarded-proto",
                                                         "x-forwarded-host", "x-forwarded-port",
                                                         "forwarded",        "via",
                                                         "x-request-id",     "expect"};

bool Holds(std::span<const std::string_view> names, std::string_view name) noexcept {
  return std::ranges::find(names, name) != names.end();
}

/// Returns why a configuration cannot edit the field, if so. Many upstreams read `_` as `-`.
std::string WhyOwned(std::string name, Direction direction) {
  std::replace(name.begin(), name.end(), '_', '-');
  const bool request = direction == Direction::kRequest;
  if (direction == Direction::kDenial && (name == "content-type" || name == "link")) {
    return "has a key of its own: write `" + std::string(name == "link" ? "link" : "content_type") +
           "` beside `headers`";
  }
  if (direction == Direction::kDenial && !Holds(kFraming, name) && IsDenialField(name)) {
    return "cannot be set in a denial: Tidegate writes it, or it describes another body; remove it";
  }
  if (name == "host") {
    return request ? "is set by the route's `host`: write `host: target`, or a name"
                   : "is a header of requests, not of responses; remove it";
  }
  if (Holds(kFraming, name))
    return "belongs to each connection, so the gateway writes it itself; remove it";
  if (request && Holds(kForwarding, name)) {
    return "is written by the gateway itself, so that upstreams can trust it; remove it";
  }
  return {};
}

using Names = std::unordered_set<std::string>;

/// Returns the name of a field that may be changed. Reports other names and repeated names.
std::optional<std::string> ReadFieldName(const ConfigValue& value, const std::string& text,
                                         Direction direction, Names& listed) {
  auto name = HeaderName(text);
  if (!name) {
    value.Error("this is not the name of a header");
  } else if (const std::string why = WhyOwned(*name, direction); !why.empty()) {
    value.Error(Backticked(*name) + " " + why);
  } else if (!listed.insert(*name).second) {
    value.Error("the header " + Backticked(*name) + " is listed twice");
  } else {
    return name;
  }
  return std::nullopt;
}

/// Returns true if `text` is a valid header value. No message shows it, since it may be a password.
bool CheckValue(const ConfigValue& value, const std::string& text) {
  if (std::ranges::any_of(text, IsControl)) {
    value.Error("has a line break or another control character, which no header may hold");
  } else if (Trim(text).size() != text.size()) {
    value.Error("begins or ends with a space, which HTTP does not allow; remove it");
  } else if (text.size() > kMaxValue) {
    value.Error("is longer than 4,096 bytes");
  } else {
    return true;
  }
  return false;
}

std::vector<HeaderEdits::Set> ReadHeaderValues(const ConfigValue& value, Direction direction) {
  std::vector<HeaderEdits::Set> headers;
  Names listed;
  value.EachEntry([&](const std::string& key, const ConfigValue& name, const ConfigValue& set) {
    auto field = ReadFieldName(name, key, direction, listed);
    auto text = set.Text("the header's value");
    if (!text || !CheckValue(set, *text) || !field) return;
    headers.push_back({*std::move(field), *std::move(text)});
  });
  return headers;
}

void ReadRemove(const ConfigValue& value, Direction direction, HeaderEdits& edits) {
  Names listed;
  value.EachItemOrOne("names nothing to remove; leave the key out", [&](const ConfigValue& item) {
    const auto text = item.Text("the name of a header");
    if (!text) return;
    auto name = ReadFieldName(item, *text, direction, listed);
    if (!name) return;
    if (std::ranges::find(edits.set, *name, &HeaderEdits::Set::name) != edits.set.end()) {
      item.Error(Backticked(*name) +
                 " is under `set` too, which replaces all fields of that name; remove it here");
    }
    edits.remove.push_back(*std::move(name));
  });
}

constexpr ValueType kValuesType{
    R"({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}})",
    "a map from name to value"};

// ReadHeaderEdits reads both keys, since it knows the direction.
constexpr auto kEditFields = Fields({
    Later<HeaderEdits>("set", kValuesType,
                       "Header fields and their values; each replaces all fields of that name."),
    Later<HeaderEdits>("remove", kTextsType, "Names of header fields to remove."),
});
constexpr Section<HeaderEdits> kEditTable("header_edits", kEditFields);

/// Reads a media type. Adds the charset to that of a text, because some browsers guess without it.
void ReadContentType(const ConfigValue& value, DenialSpec& denial) {
  const auto text = value.Text("a media type, as in `text/html`");
  if (!text) return;
  const std::size_t essence_end = std::min(text->find(';'), text->size());
  const std::string_view essence = Trim(std::string_view(*text).substr(0, essence_end));
  const std::size_t slash = essence.find('/');
  if (slash == std::string_view::npos || !IsToken(essence.substr(0, slash)) ||
      !IsToken(essence.substr(slash + 1))) {
    return value.Error("should be a media type, as in `text/html`, but is " + Backticked(*text));
  }
  const std::string parameters =
      Lowered(Trim(std::string_view(*text).substr(std::min(essence_end + 1, text->size()))));
  if (!parameters.empty() && parameters != "charset=utf-8") {
    return value.Error("has the parameter " + Backticked(parameters) +
                       ", but only `charset=utf-8` is allowed: bodies are UTF-8");
  }
  denial.content_type = essence;
  const bool text_type = Lower(essence.front()) == 't' || essence.ends_with("xml");
  if (text_type || !parameters.empty()) denial.content_type += "; charset=utf-8";
}

std::optional<std::int64_t> ReadDenialStatus(const ConfigValue& value) {
  const auto status = value.Integer(400, 599);
  if (status != 401 && status != 407) return status;
  return value.Invalid("needs a challenge, which a denial does not have; choose another status");
}

/// Reads the body, whose escaping depends on the media type.
void ReadBody(const ConfigValue& value, DenialSpec& denial) {
  // Not a secret, but read like one: the text itself, or `file:PATH`.
  auto text = value.Secret(0, kMaxBody, Secrecy::kPublic);
  if (!text) return;
  if (text->size() > kMaxBody) {
    return value.Error("has " + std::to_string(text->size()) +
                       " bytes, but at most 65,536 (64 KiB) are allowed: shorten it");
  }
  if (denial.content_type.empty()) return;
  auto body = BodyTemplate::Parse(*std::move(text), BodyTemplate::EscapingOf(denial.content_type));
  if (!body) return value.Error(body.error());
  denial.body = *std::move(body);
}

void CheckDenial(const ConfigValue& section, DenialSpec& denial) {
  const ConfigValue body = section["body"];
  const bool has_type = section["content_type"].written();
  if (body.written()) ReadBody(body, denial);
  if (body.written() && !has_type) {
    section.Error("has a `body`, so it needs a `content_type`, as in `content_type: text/html`");
  }
  if (has_type && !body.written()) {
    section.Error("has a `content_type` but no `body`: remove `content_type`, or add a `body`");
  }
}

std::optional<std::string> ReadLink(const ConfigValue& value) {
  auto text = value.Text("a URL, as in `https://example.com/limits`");
  if (!text) return std::nullopt;
  const bool url = text->starts_with("https://") || text->starts_with("http://") ||
                   (text->starts_with('/') && !text->starts_with("//"));
  const bool plain = IsPrintable(*text) && text->find_first_of("<>\"\\`") == text->npos;
  if (!url || !plain || text->size() > kMaxLink) {
    return value.Invalid(
        "should be a URL that begins with `https://`, `http://` or `/`, without spaces, of at most "
        "2,048 characters, but is " +
        Backticked(*text));
  }
  return text;
}

constexpr auto kDenialFields = Fields({
    Value<&DenialSpec::status, ReadDenialStatus>(
        "status",
        ValueType{R"({"type": "integer", "minimum": 400, "maximum": 599})",
                  "400 to 599, but not 401 and 407"},
        "The status in place of 429; 403 and 503 stay as they are. Envoy (ext_authz) treats a 5xx "
        "as a failure of Tidegate. With `?deny_status=` of `/v1/auth`, the proxy gets that status, "
        "and `X-RateLimit-Status`, the problem document and `{status}` have this one.")
        .Otherwise("429"),
    Custom<ReadContentType>("content_type",
                            ValueType{R"({"type": "string", "minLength": 3})", "a media type"},
                            "The media type of `body`; texts are UTF-8. Placeholders are possible "
                            "in JSON, HTML, XML and text/plain.")
        .Otherwise("required with `body`"),
    Later<DenialSpec>("body", kSecretType,
                      "The body, at most 64 KiB. Placeholders: `{rule}`, `{limit}`, `{remaining}`, "
                      "`{retry_after}`, `{request_id}`, `{link}`, `{status}`, `{title}`, "
                      "`{method}`, `{path}`; values are escaped for the media type.")
        .Otherwise("the problem document"),
    Value<&DenialSpec::headers,
          [](const ConfigValue& v) { return ReadHeaderValues(v, Direction::kDenial); }>(
        "headers", kValuesType,
        "Header fields to add. Not those that Tidegate writes itself (`Retry-After`, "
        "`Cache-Control: no-store`, RateLimit, `X-Request-Id`), nor those that describe a body or "
        "its caching (`Content-Encoding`, `ETag`, `CDN-Cache-Control`).")
        .Otherwise("none"),
    Value<&DenialSpec::link, ReadLink>(
        "link", ValueType{R"json({"type": "string", "pattern": "^(https?://|/)"})json", "a URL"},
        "A page about the limit: sent as `Link: <...>; rel=\"help\"`, and the value of `{link}`.")
        .Otherwise("none"),
});

}  // namespace

constinit const SectionInfo kHeaderEditsSection = kEditTable;
constinit const Section<DenialSpec> kDenialSection(
    "denial", kDenialFields, CheckDenial,
    R"("dependentRequired": {"body": ["content_type"], "content_type": ["body"]})");

HeaderEdits ReadHeaderEdits(const ConfigValue& value, Direction direction) {
  HeaderEdits edits;
  ReadSection(value, kEditTable, edits);
  if (value["set"].written()) edits.set = ReadHeaderValues(value["set"], direction);
  if (value["remove"].written()) ReadRemove(value["remove"], direction, edits);
  return edits;
}

}  // namespace tidegate
