// SPDX-License-Identifier: Apache-2.0
#include "frontends/forward_auth.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/message_text.hpp"
#include "base/units.hpp"
#include "net/http1_syntax.hpp"

namespace tidegate {
namespace {

using net::HttpField;

enum FieldName : std::size_t {
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

/// The header fields that describe the client's request, indexed by FieldName; nullptr: absent.
using Fields = std::array<const HttpField*, kNames>;

/// Returns the FieldName of a field, or kNames if the field has another name.
std::size_t NameOf(std::string_view name) noexcept {
  if (name.size() < 13 || name.size() > 18 || (name[0] != 'X' && name[0] != 'x')) return kNames;
  for (std::size_t i = 0; i < kNames; ++i) {
    // Comparing the lengths first avoids most calls of EqualsIgnoreCase.
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
                           "overwrite the field instead of adding to it"};
    }
    fields[name] = &field;
  }
  return std::nullopt;
}

/// The client's request in one of the three forms: complete, incomplete, or absent.
struct Description {
  std::string_view name;
  bool has_uri = false;
  bool has_method = false;
  /// True if the form has a host of its own, separate from the Host of the proxy's request. Such a
  /// host must not be empty: rules with a host would not match, although the proxy may forward the
  /// request to some host.
  bool names_host = false;
  ClientRequest request;

  [[nodiscard]] bool complete() const noexcept { return has_uri && has_method; }
  [[nodiscard]] bool absent() const noexcept { return !has_uri && !has_method; }
  void TakeUri(std::string_view uri) noexcept {
    const std::size_t mark = uri.find('?');
    request.path = uri.substr(0, mark);
    request.query = mark == std::string_view::npos ? std::string_view{} : uri.substr(mark + 1);
    has_uri = true;
  }
  void TakeMethod(const HttpField* field) noexcept {
    if (field == nullptr) return;
    request.method = field->value;
    has_method = true;
  }
  [[nodiscard]] bool Contradicts(const Description& other) const noexcept {
    if (has_uri && other.has_uri &&
        (request.path != other.request.path || request.query != other.request.query)) {
      return true;
    }
    return has_method && other.has_method && request.method != other.request.method;
  }
};

Description Forwarded(const Fields& fields, std::string_view own_host) noexcept {
  Description description{.name = "X-Forwarded-Uri and X-Forwarded-Method", .request = {}};
  if (fields[kForwardedUri] != nullptr) description.TakeUri(fields[kForwardedUri]->value);
  description.TakeMethod(fields[kForwardedMethod]);
  description.names_host = fields[kForwardedHost] != nullptr;
  description.request.host = description.names_host ? fields[kForwardedHost]->value : own_host;
  return description;
}

/// Reads X-Original-URI or X-Original-URL, which may contain a whole URL with its own host.
Description Original(std::string_view name, const HttpField* uri, const HttpField* method,
                     std::string_view own_host) noexcept {
  Description description{.name = name, .request = {}};
  description.TakeMethod(method);
  description.request.host = own_host;
  if (uri == nullptr) return description;
  std::string_view text = uri->value;
  const std::size_t scheme = text.starts_with('/') ? std::string_view::npos : text.find("://");
  if (scheme == std::string_view::npos) {
    description.TakeUri(text);
    return description;
  }
  text.remove_prefix(scheme + 3);
  description.names_host = true;
  description.request.host = text.substr(0, text.find_first_of("/?"));
  description.TakeUri(text.substr(description.request.host.size()));
  if (description.request.path.empty()) description.request.path = "/";
  return description;
}

Description InPath(const net::HttpHead& head) noexcept {
  Description description{.name = "the path after /v1/auth", .request = {}};
  if (head.path.size() <= kAuthPath.size()) return description;
  description.request = {head.method, head.host, head.path.substr(kAuthPath.size()), head.query};
  description.has_uri = description.has_method = true;
  return description;
}

Objection Contradiction(const Description& one, const Description& other) {
  std::string text(one.name);
  text.append(" describe another request than ").append(other.name);
  return {400,
          text +
              ": the client may have smuggled one of them past the proxy, which must overwrite or "
              "remove both"};
}

Objection Incomplete() {
  return {400,
          "the client's request is not described: the proxy must send X-Forwarded-Uri and "
          "X-Forwarded-Method, or X-Original-URI (or -URL) and X-Original-Method, or append the "
          "path of the client's request to /v1/auth"};
}

}  // namespace

bool IsForwardAuth(std::string_view path) noexcept {
  return path.starts_with(kAuthPath) &&
         (path.size() == kAuthPath.size() || path[kAuthPath.size()] == '/');
}

std::optional<Objection> ReadClientRequest(const net::HttpHead& head, ClientRequest& request) {
  Fields fields{};
  if (auto bad = FindFields(head, fields)) return bad;
  // The form with the path comes first: only the proxy can write it, while clients can send fields.
  const Description descriptions[] = {
      InPath(head),
      Forwarded(fields, head.host),
      Original("X-Original-URL and X-Original-Method", fields[kOriginalUrl],
               fields[kOriginalMethod], head.host),
      Original("X-Original-URI and X-Original-Method", fields[kOriginalUri],
               fields[kOriginalMethod], head.host),
  };
  const Description* const chosen = std::ranges::find_if(descriptions, &Description::complete);
  if (chosen == std::end(descriptions)) return Incomplete();
  // No proxy describes the request by X-Rewrite-URL, but some servers serve its path instead.
  const Description rewrite = Original("X-Rewrite-URL", fields[kRewriteUrl], nullptr, head.host);
  if (rewrite.Contradicts(*chosen)) return Contradiction(rewrite, *chosen);
  for (const Description& other : descriptions) {
    if (&other == chosen || other.absent()) continue;
    if (other.Contradicts(*chosen)) return Contradiction(other, *chosen);
    // Both forms are complete but differ in their host, and it is unknown which of them the proxy
    // wrote.
    if (chosen != &descriptions[0] && other.complete() &&
        !EqualsIgnoreCase(other.request.host, chosen->request.host)) {
      return Contradiction(other, *chosen);
    }
  }
  if (chosen->request.path.find('#') != std::string_view::npos ||
      chosen->request.query.find('#') != std::string_view::npos) {
    return Objection{400, "the URI of the client's request has a fragment (`#`)"};
  }
  if (chosen->request.method.empty() ||
      !net::http1::All(chosen->request.method, net::http1::kToken)) {
    return Objection{400, "\"" + Printable(chosen->request.method) + "\" is not a method"};
  }
  if (!IsUpperCaseMethod(chosen->request.method)) {
    return Objection{400, LowerCaseMethod(chosen->request.method)};
  }
  if (chosen->names_host && chosen->request.host.empty()) {
    return Objection{400, "X-Forwarded-Host, or the host of X-Original-URL, is present but empty"};
  }
  request = chosen->request;
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
              "\": /v1/auth accepts only deny_status; if the parameter is the client's, the proxy "
              "must not forward it here (Caddy: `/v1/auth?`)"};
    }
    const auto value = ParseNumber(pair.substr(kName.size()), 400, 599);
    if (!value || status != 0) {
      return Objection{500, "deny_status must occur once, with a status from 400 to 599"};
    }
    status = *value;
  }
  return std::nullopt;
}

}  // namespace tidegate
