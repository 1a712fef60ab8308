// SPDX-License-Identifier: Apache-2.0
// Addresses of listeners, hosts with ports, and URLs of servers.
#include <algorithm>
#include <memory_resource>

#include "base/ascii.hpp"
#include "base/units.hpp"
#include "config/sections.hpp"
#include "identity/path.hpp"

namespace tidegate {
namespace {

constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";

/// Returns a port from 0 to 65535; nothing if `digits` is not one, or has leading zeros.
std::optional<std::uint16_t> ParsePort(std::string_view digits) noexcept {
  if (digits.size() > 1 && digits.starts_with('0')) return std::nullopt;
  return ParseNumber<std::uint16_t>(digits);
}

/// Returns what is wrong if `rest`, a URL without its scheme, names more than a server; else empty.
std::string_view ExcessProblem(std::string_view rest) noexcept {
  if (rest.contains('@')) {
    return "has an `@`: a target has no user or password; to send them, set `authorization` in the "
           "route's `request_headers`";
  }
  if (rest.find_first_of("?#") != std::string_view::npos) {
    return "has a `?` or `#`: a target is a server alone, as in `http://127.0.0.1:9001`";
  }
  if (rest.contains('/')) {
    return "has a `/` after the server: a target has no path, not even `/`; a route's `rewrite` "
           "changes paths";
  }
  return {};
}

/// Returns a lower-case name, or an address, IPv6 without brackets; nothing if `text` is neither.
std::optional<std::string> HostOf(std::string_view text) {
  if (text.starts_with('[')) {
    const auto address = Address::Parse(text.substr(1, text.size() - 2));
    if (!text.ends_with(']') || !address || !text.contains(':')) {
      return std::nullopt;
    }
    return address->Text();
  }
  std::pmr::monotonic_buffer_resource memory;
  const auto name = NormalizeHost(text, memory);
  // The port was removed before. Host and TLS would need the name without a final dot.
  if (!name || name->size() != text.size()) return std::nullopt;
  const std::string_view label = name->substr(name->rfind('.') + 1);
  // DNS has no top-level name of digits: that is an address or a mistake.
  const bool numeric = std::ranges::all_of(label, IsDigit);
  if (numeric && !Address::Parse(*name)) return std::nullopt;
  return std::string{*name};
}

}  // namespace

std::optional<std::string> ReadEndpoint(const ConfigValue& value) {
  auto text = value.Text("an address and a port, as in `127.0.0.1:8081`");
  if (!text) return std::nullopt;
  if (*text == "off") return std::string{};
  const std::string_view all = *text;
  const std::size_t colon = all.rfind(':');
  const auto port = colon == all.npos ? std::nullopt : ParsePort(all.substr(colon + 1));
  std::string_view host = all.substr(0, colon);
  if (!port || host.empty()) {
    return value.Invalid(
        "should be an address and a port, as in `127.0.0.1:8081`, `[::1]:8081` or, for all "
        "addresses, `0.0.0.0:8081`; or `off`");
  }
  if (host == "localhost") return "127.0.0.1:" + std::to_string(*port);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  const auto address = Address::Parse(host);
  if (!address) {
    return value.Invalid(Backticked(host) +
                         " is not an IP address; names other than `localhost` are not looked up");
  }
  if (bracketed != (host.contains(':'))) {
    return value.Invalid(
        "IPv6 addresses are written in brackets, as in `[::1]:8081`, and IPv4 without them");
  }
  return text;
}

std::optional<std::string> ReadHostPort(const ConfigValue& value) {
  const auto text = value.Text("a host, as in `api.internal` or `api.internal:8443`");
  if (!text) return std::nullopt;
  const std::string lower = Lowered(*text);
  std::pmr::monotonic_buffer_resource memory;
  const auto host = NormalizeHost(lower, memory);
  if (!host) {
    return value.Invalid(
        Backticked(*text) +
        " is not a host: write a name or an address, with a port if need be, as in "
        "`api.internal:8443`; without scheme and path");
  }
  const std::size_t colon = lower.find(':', lower.starts_with('[') ? lower.find(']') : 0);
  if (colon == std::string::npos) return std::string{*host};
  const auto port = ParseNumber<int>(std::string_view{lower}.substr(colon + 1), 1, 65'535);
  if (!port) return value.Invalid("has a port that is not a number from 1 to 65535");
  return std::string{*host} + ":" + std::to_string(*port);
}

std::optional<UpstreamSpec::Target> ReadTargetUrl(const ConfigValue& value) {
  const auto text = value.Text("a server, as in `http://127.0.0.1:9001`");
  if (!text) return std::nullopt;
  UpstreamSpec::Target target;
  target.tls = text->starts_with(kHttps);
  if (!target.tls && !text->starts_with(kHttp)) {
    return value.Invalid(
        "should begin with `http://` or `https://`, as in `http://127.0.0.1:9001` or "
        "`https://api.internal:8443`");
  }
  const std::string_view rest =
      std::string_view{*text}.substr(target.tls ? kHttps.size() : kHttp.size());
  if (const std::string_view why = ExcessProblem(rest); !why.empty()) return value.Invalid(why);
  const std::size_t inside = rest.starts_with('[') ? std::min(rest.find(']'), rest.size()) : 0;
  const std::size_t colon = std::min(rest.find(':', inside), rest.size());
  if (!rest.starts_with('[') && rest.find(':', colon + 1) != std::string_view::npos) {
    return value.Invalid(
        "has several `:`; an IPv6 address is written in brackets, as in `http://[::1]:9001`");
  }
  auto host = HostOf(rest.substr(0, colon));
  if (!host) {
    return value.Invalid(
        "has a host that is neither a name nor an IP address; international names are "
        "written in their `xn--` form, and without a final dot");
  }
  target.host = *std::move(host);
  target.port = target.tls ? 443 : 80;
  if (colon == rest.size()) return target;
  const auto port = ParsePort(rest.substr(colon + 1));
  if (port.value_or(0) == 0)
    return value.Invalid("has a port that is not a number from 1 to 65535");
  target.port = *port;
  return target;
}

}  // namespace tidegate
