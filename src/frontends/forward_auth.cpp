// SPDX-License-Identifier: Apache-2.0
#include "frontends/forward_auth.hpp"

#include <array>
#include <charconv>
#include <string>

#include "net/http1_tokens.hpp"
#include "rules/printable.hpp"

namespace tidegate {
namespace {

using net::HttpField;

enum Name : std::size_t {
  kForwardedUri,
  kForwardedMethod,
  kForwardedHost,
  kOriginalUri,
  kOriginalUrl,
  kOriginalMethod,
  kRewriteUrl,
  kNames,
};
constexpr std::array<std::string_view, kNames> kNameText = {
    "X-Forwarded-Uri", "X-Forwarded-Method", "X-Forwarded-Host", "X-Original-URI",
    "X-Original-URL",  "X-Original-Method",  "X-Rewrite-URL"};

/// The header fields that describe the client's request, by Name; nullptr: absent.
using Fields = std::array<const HttpField*, kNames>;

/// Returns the field's Name, or kNames if it is none of them.
std::size_t NameOf(std::string_view name) noexcept {
  if (name.size() < 13 || name.size() > 18 || (name[0] != 'X' && name[0] != 'x')) return kNames;
  for (std::size_t i = 0; i < kNames; ++i) {
    // Comparing the lengths first avoids most of the calls.
    if (name.size() == kNameText[i].size() && EqualsIgnoreCase(name, kNameText[i])) return i;
  }
  return kNames;
}

std::optional<Objection> FindFields(const net::HttpHead& head, Fields& fields) {
  for (const HttpField& field : head.all()) {
    const std::size_t name = NameOf(field.name);
    if (name == kNames) continue;
    if (fields[name] != nullptr) {
      return Objection{400,
                       std::string(kNameText[name]) +
                           " occurs twice: the client may have sent one of the two; the proxy must "
                           "overwrite the field instead of adding to it",
                       {}};
    }
    fields[name] = &field;
  }
  return std::nullopt;
}

/// The client's request as one of the three forms describes it: completely, in part, or not at all.
struct Voice {
  std::string_view name;
  bool has_uri = false;
  bool has_method = false;
  /// The form has a host of its own, apart from the Host of the proxy's request. If that host is
  /// empty, rules with a host would not match, although the proxy may forward to some host.
  bool names_host = false;
  ToldRequest told;

  [[nodiscard]] bool complete() const noexcept { return has_uri && has_method; }
  [[nodiscard]] bool silent() const noexcept { return !has_uri && !has_method; }
  void TakeUri(std::string_view uri) noexcept {
    const std::size_t mark = uri.find('?');
    told.path = uri.substr(0, mark);
    told.query = mark == std::string_view::npos ? std::string_view{} : uri.substr(mark + 1);
    has_uri = true;
  }
  void TakeMethod(const HttpField* field) noexcept {
    if (field == nullptr) return;
    told.method = field->value;
    has_method = true;
  }
  [[nodiscard]] bool Contradicts(const Voice& other) const noexcept {
    if (has_uri && other.has_uri &&
        (told.path != other.told.path || told.query != other.told.query)) {
      return true;
    }
    return has_method && other.has_method && told.method != other.told.method;
  }
};

Voice Forwarded(const Fields& fields, std::string_view own_host) noexcept {
  Voice voice{.name = "X-Forwarded-Uri and X-Forwarded-Method", .told = {}};
  if (fields[kForwardedUri] != nullptr) voice.TakeUri(fields[kForwardedUri]->value);
  voice.TakeMethod(fields[kForwardedMethod]);
  voice.names_host = fields[kForwardedHost] != nullptr;
  voice.told.host = voice.names_host ? fields[kForwardedHost]->value : own_host;
  return voice;
}

/// X-Original-URI and X-Original-URL may both contain a whole URL, which has its own host.
Voice Original(std::string_view name, const HttpField* uri, const HttpField* method,
               std::string_view own_host) noexcept {
  Voice voice{.name = name, .told = {}};
  voice.TakeMethod(method);
  voice.told.host = own_host;
  if (uri == nullptr) return voice;
  std::string_view text = uri->value;
  const std::size_t scheme = text.starts_with('/') ? std::string_view::npos : text.find("://");
  if (scheme == std::string_view::npos) {
    voice.TakeUri(text);
    return voice;
  }
  text.remove_prefix(scheme + 3);
  voice.names_host = true;
  voice.told.host = text.substr(0, text.find_first_of("/?"));
  voice.TakeUri(text.substr(voice.told.host.size()));
  if (voice.told.path.empty()) voice.told.path = "/";
  return voice;
}

Voice Behind(const net::HttpHead& head) noexcept {
  Voice voice{.name = "the path after /v1/auth", .told = {}};
  if (head.path.size() <= kAuthPath.size()) return voice;
  voice.told = {head.method, head.host, head.path.substr(kAuthPath.size()), head.query};
  voice.has_uri = voice.has_method = true;
  return voice;
}

Objection Contradiction(const Voice& one, const Voice& other) {
  std::string text(one.name);
  text.append(" describe another request than ").append(other.name);
  return {400,
          text +
              ": the client may have smuggled one of them past the proxy, which must overwrite or "
              "remove both",
          {}};
}

Objection Incomplete() {
  return {400,
          "the client's request is not described: the proxy must send X-Forwarded-Uri and "
          "X-Forwarded-Method, or X-Original-URI (or -URL) and X-Original-Method, or append the "
          "path of the client's request to /v1/auth",
          {}};
}

}  // namespace

bool IsForwardAuth(std::string_view path) noexcept {
  return path.starts_with(kAuthPath) &&
         (path.size() == kAuthPath.size() || path[kAuthPath.size()] == '/');
}

std::optional<Objection> ReadToldRequest(const net::HttpHead& head, ToldRequest& told) {
  Fields fields{};
  if (auto bad = FindFields(head, fields)) return bad;
  // The path comes first: only the proxy can have written it, while fields may be the client's.
  const Voice voices[] = {
      Behind(head),
      Forwarded(fields, head.host),
      Original("X-Original-URL and X-Original-Method", fields[kOriginalUrl],
               fields[kOriginalMethod], head.host),
      Original("X-Original-URI and X-Original-Method", fields[kOriginalUri],
               fields[kOriginalMethod], head.host),
  };
  const Voice* heard = nullptr;
  for (const Voice& voice : voices) {
    if (heard == nullptr && voice.complete()) heard = &voice;
  }
  if (heard == nullptr) return Incomplete();
  // No proxy describes the request by X-Rewrite-URL, but some servers serve its path instead.
  const Voice rewrite = Original("X-Rewrite-URL", fields[kRewriteUrl], nullptr, head.host);
  if (rewrite.Contradicts(*heard)) return Contradiction(rewrite, *heard);
  for (const Voice& other : voices) {
    if (&other == heard || other.silent()) continue;
    if (other.Contradicts(*heard)) return Contradiction(other, *heard);
    // Both forms are complete but differ in their host, and it is unknown which is the proxy's.
    if (heard != &voices[0] && other.complete() &&
        !EqualsIgnoreCase(other.told.host, heard->told.host)) {
      return Contradiction(other, *heard);
    }
  }
  if (heard->told.path.find('#') != std::string_view::npos ||
      heard->told.query.find('#') != std::string_view::npos) {
    return Objection{400, "the URI of the client's request has a fragment (`#`)", {}};
  }
  if (heard->told.method.empty() || !net::http1::All(heard->told.method, net::http1::kToken)) {
    return Objection{400, "\"" + Printable(heard->told.method) + "\" is not a method", {}};
  }
  if (!IsUpperCaseMethod(heard->told.method)) {
    return Objection{400, LowerCaseMethod(heard->told.method), {}};
  }
  if (heard->names_host && heard->told.host.empty()) {
    return Objection{
        400, "X-Forwarded-Host, or the host of X-Original-URL, is present but empty", {}};
  }
  told = heard->told;
  return std::nullopt;
}

std::optional<Objection> ReadDenyStatus(std::string_view query, int& status) {
  status = 0;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    constexpr std::string_view kName = "deny_status=";
    if (!pair.starts_with(kName)) {
      return Objection{
          500,
          "unknown parameter \"" + Printable(pair.substr(0, pair.find('='))) +
              "\": /v1/auth takes only deny_status; if the parameter is the client's, the proxy "
              "must not forward it here (Caddy: `/v1/auth?`)",
          {}};
    }
    const std::string_view text = pair.substr(kName.size());
    const char* const end = text.data() + text.size();
    int value = 0;
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || rest != end || value < 400 || value > 599 || status != 0) {
      return Objection{500, "deny_status must occur once, with a status from 400 to 599", {}};
    }
    status = value;
  }
  return std::nullopt;
}

}  // namespace tidegate
