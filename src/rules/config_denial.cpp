// SPDX-License-Identifier: Apache-2.0
// denial: what a client sees when a request is denied. A section of rules, routes and `responses`.
#include <algorithm>
#include <array>

#include "rules/ascii.hpp"
#include "rules/config_gateway.hpp"
#include "rules/denial_spec.hpp"

namespace tidegate {
namespace {

constexpr std::size_t kMaxBody = 64u << 10;
constexpr std::size_t kMaxLink = 2'048;

/// The keys of a `denial` as they were read.
struct DenialDraft {
  DenialSpec spec;
  std::optional<std::string> body;
  const YamlNode* content_type = nullptr;
  const YamlNode* body_node = nullptr;
};

bool IsTokenCharacter(char c) noexcept {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (Lower(c) >= 'a' && Lower(c) <= 'z') ||
         kMarks.find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, IsTokenCharacter);
}

/// Reads a media type, and completes one of a text by its charset: without it, some browsers guess.
void ReadContentType(const ConfigValue& value, DenialDraft& draft) {
  draft.content_type = &value.node();
  const auto text = value.Text("a media type, as in `text/html`");
  if (!text) return;
  const std::size_t semicolon = text->find(';');
  const std::string_view essence = Trim(std::string_view(*text).substr(0, semicolon));
  const std::size_t slash = essence.find('/');
  if (slash == std::string_view::npos || !IsToken(essence.substr(0, slash)) ||
      !IsToken(essence.substr(slash + 1))) {
    return value.Error("should be a media type, as in `text/html`, but is " + Ticked(*text));
  }
  std::string parameters = semicolon == std::string::npos
                               ? std::string()
                               : std::string(Trim(std::string_view(*text).substr(semicolon + 1)));
  std::ranges::transform(parameters, parameters.begin(), Lower);
  if (!parameters.empty() && parameters != "charset=utf-8") {
    return value.Error("has the parameter " + Ticked(parameters) +
                       ", but only `charset=utf-8` is allowed: bodies are UTF-8");
  }
  draft.spec.content_type = essence;
  const bool text_type = Lower(essence.front()) == 't' || essence.ends_with("xml");
  if (text_type || !parameters.empty()) draft.spec.content_type += "; charset=utf-8";
}

void ReadBody(const ConfigValue& value, DenialDraft& draft) {
  draft.body_node = &value.node();
  // Not a secret, but read like one: the text itself, or `file:PATH`.
  draft.body = value.Secret(0, kMaxBody, Secrecy::kPublic);
  if (draft.body && draft.body->size() > kMaxBody) {
    value.Error("has " + std::to_string(draft.body->size()) +
                " bytes, but at most 65,536 (64 KiB) are allowed: shorten it");
    draft.body.reset();
  }
}

void ReadLink(const ConfigValue& value, DenialDraft& draft) {
  auto text = value.Text("a URL, as in `https://example.com/limits`");
  if (!text) return;
  const bool url = text->starts_with("https://") || text->starts_with("http://") ||
                   (text->starts_with('/') && !text->starts_with("//"));
  const bool plain = std::ranges::all_of(*text, [](char c) {
    return c > 0x20 && c < 0x7f && c != '<' && c != '>' && c != '"' && c != '\\' && c != '`';
  });
  if (!url || !plain || text->size() > kMaxLink) {
    return value.Error(
        "should be a URL that begins with `https://`, `http://` or `/`, without spaces, of at most "
        "2,048 characters, but is " +
        Ticked(*text));
  }
  draft.spec.link = *std::move(text);
}

constexpr std::array<ConfigKey<DenialDraft>, 5> kDenialKeys = {{
    {"status",
     [](const ConfigValue& v, DenialDraft& d) {
       const auto status = v.Integer(400, 599);
       if (!status) return;
       if (*status == 401 || *status == 407) {
         return v.Error("needs a challenge, which a denial does not have; choose another status");
       }
       d.spec.status = static_cast<int>(*status);
     }},
    {"content_type", ReadContentType},
    {"body", ReadBody},
    {"headers", [](const ConfigValue& v, DenialDraft& d) { ReadDenialHeaders(v, d.spec.headers); }},
    {"link", ReadLink},
}};

}  // namespace

void ReadDenial(const ConfigValue& value, std::optional<DenialSpec>& denial) {
  DenialDraft draft;
  ReadSection(value, kDenialKeys, draft);
  if (!value.is_map()) return;
  if (draft.body_node != nullptr && draft.content_type == nullptr) {
    value.Error("has a `body`, so it needs a `content_type`, as in `content_type: text/html`");
  }
  if (draft.content_type != nullptr && draft.body_node == nullptr) {
    value.Error("has a `content_type` but no `body`: remove `content_type`, or add a `body`");
  }
  if (draft.body && !draft.spec.content_type.empty()) {
    auto body = BodyTemplate::Parse(*std::move(draft.body),
                                    BodyTemplate::EscapingOf(draft.spec.content_type));
    if (body) {
      draft.spec.body = *std::move(body);
    } else {
      const Where where{.parent = &value.where(), .key = "body"};
      value.context().Error(draft.body_node->at, where, body.error());
    }
  }
  denial = std::move(draft.spec);
}

bool IsDenialField(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 14> kNames = {"accept-ranges", "age",
                                                       "date",          "etag",
                                                       "expires",       "last-modified",
                                                       "link",          "ratelimit",
                                                       "retry-after",   "surrogate-control",
                                                       "surrogate-key", "x-content-type-options",
                                                       "x-request-id",  "x-tidegate-decided-by"};
  // Content-Encoding and the like describe the body of the upstream, and caches must not keep
  // denials, whichever field they obey.
  const bool of_body = name.starts_with("content-") && !name.starts_with("content-security-policy");
  return of_body || name.ends_with("cache-control") || name.starts_with("grpc-") ||
         name.starts_with("ratelimit-") || name.starts_with("x-ratelimit-") ||
         std::ranges::find(kNames, name) != kNames.end();
}

void AppendDenialKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("denial", kDenialKeys));
}

}  // namespace tidegate
