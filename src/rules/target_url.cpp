// SPDX-License-Identifier: Apache-2.0
#include "rules/target_url.hpp"

#include <algorithm>
#include <charconv>
#include <memory_resource>
#include <optional>
#include <string>

#include "core/refuse.hpp"
#include "rules/address.hpp"
#include "rules/ascii.hpp"
#include "rules/path.hpp"

namespace tidegate {
namespace {

constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";

bool IsDigit(char c) noexcept { return c >= '0' && c <= '9'; }

/// What is there beside a server; empty: nothing.
std::string_view WhatIsTooMuch(std::string_view rest) noexcept {
  if (rest.find('@') != std::string_view::npos) {
    return "has an `@`: there is no user or password here; to send them, set `authorization` in "
           "the "
           "route's `request_headers`";
  }
  if (rest.find_first_of("?#") != std::string_view::npos) {
    return "has a `?` or `#`: a target is a server alone, as in `http://127.0.0.1:9001`";
  }
  if (rest.find('/') != std::string_view::npos) {
    return "has a `/` after the server: a target has no path, not even `/`; a route's `rewrite` "
           "changes paths";
  }
  return {};
}

/// A name in lower case or an address, IPv6 without brackets.
std::optional<std::string> HostOf(std::string_view text) {
  if (text.starts_with('[')) {
    const auto address = Address::Parse(text.substr(1, text.size() - 2));
    if (!text.ends_with(']') || !address || text.find(':') == std::string_view::npos) {
      return std::nullopt;
    }
    return address->Text();
  }
  std::pmr::monotonic_buffer_resource memory;
  const auto name = NormalizeHost(text, memory);
  // A port is off already; a final dot would have to be taken away again for Host and TLS.
  if (!name || name->size() != text.size()) return std::nullopt;
  const std::string_view label = name->substr(name->rfind('.') + 1);
  // DNS has no top-level name of digits: that is an address or a mistake.
  const bool numeric = std::all_of(label.begin(), label.end(), IsDigit);
  if (numeric && !Address::Parse(*name)) return std::nullopt;
  return std::string{*name};
}

std::optional<std::uint16_t> PortOf(std::string_view digits) noexcept {
  int port = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, port);
  if (error != std::errc{} || rest != end || port < 1 || port > 65'535 || digits.front() == '0') {
    return std::nullopt;
  }
  return static_cast<std::uint16_t>(port);
}

}  // namespace

Result<UpstreamSpec::Target> ParseTargetUrl(std::string_view text) {
  UpstreamSpec::Target target;
  target.tls = text.starts_with(kHttps);
  if (!target.tls && !text.starts_with(kHttp)) {
    return Refuse(ErrorCode::kBadConfig,
                  "should begin with `http://` or `https://`, as in `http://127.0.0.1:9001` or "
                  "`https://api.internal:8443`");
  }
  const std::string_view rest = text.substr(target.tls ? kHttps.size() : kHttp.size());
  if (const std::string_view why = WhatIsTooMuch(rest); !why.empty())
    return Refuse(ErrorCode::kBadConfig, std::string(why));
  const std::size_t inside = rest.starts_with('[') ? std::min(rest.find(']'), rest.size()) : 0;
  const std::size_t colon = std::min(rest.find(':', inside), rest.size());
  if (!rest.starts_with('[') && rest.find(':', colon + 1) != std::string_view::npos) {
    return Refuse(ErrorCode::kBadConfig,
                  "has several `:`; an IPv6 address stands in brackets, as in `http://[::1]:9001`");
  }
  auto host = HostOf(rest.substr(0, colon));
  if (!host) {
    return Refuse(
        ErrorCode::kBadConfig,
        "has a host that is neither a name nor an IP address; international names are written in "
        "their `xn--` form, and without a final dot");
  }
  target.host = *std::move(host);
  target.port = target.tls ? 443 : 80;
  if (colon == rest.size()) return target;
  const auto port = PortOf(rest.substr(colon + 1));
  if (!port)
    return Refuse(ErrorCode::kBadConfig, "has a port that is not a number from 1 to 65535");
  target.port = *port;
  return target;
}

}  // namespace tidegate
