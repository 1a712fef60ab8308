// SPDX-License-Identifier: Apache-2.0
// listen, responses, api, limits, log: how the server runs.
#include <charconv>
#include <chrono>

#include "rules/config_sections.hpp"

namespace tidegate {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr std::int64_t kKiB = 1 << 10;
constexpr std::int64_t kMiB = 1 << 20;

struct HostPort {
  std::string_view host;
  int port = -1;
};

/// Divides at the last colon outside brackets; a port of -1 where there is none.
HostPort Divide(std::string_view text) noexcept {
  HostPort divided{text};
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || text.ends_with(']')) return divided;
  const std::string_view digits = text.substr(colon + 1);
  int port = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, port);
  if (digits.empty() || error != std::errc{} || rest != end || digits.front() == '-' ||
      (digits.front() == '0' && digits.size() > 1) || port > 65'535) {
    return divided;
  }
  return {text.substr(0, colon), port};
}

/// Checks `address:port`; `off` becomes empty.
std::optional<std::string> ReadEndpoint(const ConfigValue& value) {
  auto text = value.Text("an address and a port, as in `127.0.0.1:8081`");
  if (!text) return std::nullopt;
  if (*text == "off") return std::string{};
  const HostPort divided = Divide(*text);
  std::string_view host = divided.host;
  if (divided.port < 0 || host.empty()) {
    value.Error(
        "should be an address and a port, as in `127.0.0.1:8081`, `[::1]:8081` or, for all "
        "addresses, `0.0.0.0:8081`; or `off`");
    return std::nullopt;
  }
  if (host == "localhost") return "127.0.0.1:" + std::to_string(divided.port);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  const auto address = Address::Parse(host);
  if (!address) {
    value.Error("`" + std::string{host} +
                "` is not an IP address; names other than `localhost` are not looked up");
    return std::nullopt;
  }
  if (bracketed != (host.find(':') != std::string_view::npos)) {
    value.Error("IPv6 addresses stand in brackets, as in `[::1]:8081`, and IPv4 without them");
    return std::nullopt;
  }
  return text;
}

constexpr std::array<ConfigKey<ConfigDraft>, 3> kListenKeys = {{
    {"api",
     [](const ConfigValue& v, ConfigDraft& d) {
       d.places.api = v.at();
       Put(d.config.listen.api.address, ReadEndpoint(v));
     }},
    {"admin",
     [](const ConfigValue& v, ConfigDraft& d) {
       d.places.admin = v.at();
       Put(d.config.listen.admin.address, ReadEndpoint(v));
     }},
    {"gateway",
     [](const ConfigValue& v, ConfigDraft& d) {
       d.places.gateway = v.at();
       const auto endpoint = ReadEndpoint(v);
       d.places.has_gateway = !endpoint || !endpoint->empty();
       Put(d.config.listen.gateway.address, endpoint);
     }},
}};
constexpr std::array<AbsentKey, 2> kListenAbsent = {
    {{"grpc", "has no gRPC door"}, {"resp", "has no RESP door"}}};

enum class HeaderSet : std::uint8_t { kRateLimit, kLegacy, kX };
constexpr std::array<Choice<HeaderSet>, 3> kHeaderSets = {{{"ratelimit", HeaderSet::kRateLimit},
                                                           {"ratelimit-legacy", HeaderSet::kLegacy},
                                                           {"x-ratelimit", HeaderSet::kX}}};

void ReadHeaders(const ConfigValue& value, Config::Responses& responses) {
  responses.ratelimit = responses.ratelimit_legacy = responses.x_ratelimit = false;
  value.EachItem([&](const ConfigValue& item) {
    const auto set = item.OneOf(kHeaderSets);
    if (!set) return;
    bool& wanted = *set == HeaderSet::kRateLimit ? responses.ratelimit
                   : *set == HeaderSet::kLegacy  ? responses.ratelimit_legacy
                                                 : responses.x_ratelimit;
    if (wanted) item.Error("stands here twice");
    wanted = true;
  });
}

using XReset = Config::Responses::XReset;
constexpr std::array<Choice<XReset>, 2> kResets = {
    {{"delta", XReset::kDelta}, {"epoch", XReset::kEpoch}}};

constexpr std::array<ConfigKey<Config::Responses>, 3> kResponsesKeys = {{
    {"headers", ReadHeaders},
    {"x_ratelimit_reset",
     [](const ConfigValue& v, Config::Responses& r) { Put(r.x_reset, v.OneOf(kResets)); }},
    {"retry_after_jitter",
     [](const ConfigValue& v, Config::Responses& r) {
       Put(r.retry_after_jitter, v.Duration(Micros{0}, hours{1}));
     }},
}};

constexpr std::array<ConfigKey<Config::Api>, 1> kApiKeys = {{
    {"inline_quotas", [](const ConfigValue& v, Config::Api& a) { Put(a.inline_quotas, v.Bool()); }},
}};

template <std::size_t Config::Limits::*Member, std::int64_t Min, std::int64_t Max>
void ReadCount(const ConfigValue& value, Config::Limits& limits) {
  if (const auto n = value.Integer(Min, Max)) limits.*Member = static_cast<std::size_t>(*n);
}

template <std::size_t Config::Limits::*Member, std::int64_t Min, std::int64_t Max>
void ReadBytes(const ConfigValue& value, Config::Limits& limits) {
  Put(limits.*Member, value.Size(Min, Max));
}

/// Below 100 ms slow but honest clients would be cut off; above an hour nothing is protected.
template <Micros Config::Limits::*Member>
void ReadTimeout(const ConfigValue& value, Config::Limits& limits) {
  Put(limits.*Member, value.Duration(milliseconds{100}, hours{1}));
}

template <Micros Config::Limits::*Member>
void ReadDrain(const ConfigValue& value, Config::Limits& limits) {
  Put(limits.*Member, value.Duration(Micros{0}, minutes{10}));
}

using L = Config::Limits;
constexpr std::array<ConfigKey<L>, 9> kLimitsKeys = {{
    {"connections", ReadCount<&L::connections, 1, 1'000'000>},
    {"header_bytes", ReadBytes<&L::header_bytes, kKiB, kMiB>},
    {"header_count", ReadCount<&L::header_count, 1, 128>},
    {"body_bytes", ReadBytes<&L::body_bytes, 0, 64 * kMiB>},
    {"header_timeout", ReadTimeout<&L::header_timeout>},
    {"body_timeout", ReadTimeout<&L::body_timeout>},
    {"idle_timeout", ReadTimeout<&L::idle_timeout>},
    {"drain_timeout", ReadDrain<&L::drain_timeout>},
    {"drain_delay", ReadDrain<&L::drain_delay>},
}};

using Format = Config::Log::Format;
using Level = Config::Log::Level;
constexpr std::array<Choice<Format>, 2> kFormats = {
    {{"text", Format::kText}, {"json", Format::kJson}}};
constexpr std::array<Choice<Level>, 4> kLevels = {{{"debug", Level::kDebug},
                                                   {"info", Level::kInfo},
                                                   {"warning", Level::kWarning},
                                                   {"error", Level::kError}}};
constexpr std::array<ConfigKey<Config::Log>, 2> kLogKeys = {{
    {"format", [](const ConfigValue& v, Config::Log& l) { Put(l.format, v.OneOf(kFormats)); }},
    {"level", [](const ConfigValue& v, Config::Log& l) { Put(l.level, v.OneOf(kLevels)); }},
}};

}  // namespace

void ReadListen(const ConfigValue& value, ConfigDraft& draft) {
  ReadSection(value, kListenKeys, draft, kListenAbsent);
}

void ReadResponses(const ConfigValue& value, ConfigDraft& draft) {
  ReadSection(value, kResponsesKeys, draft.config.responses);
}

void ReadApi(const ConfigValue& value, ConfigDraft& draft) {
  ReadSection(value, kApiKeys, draft.config.api);
}

void ReadLimits(const ConfigValue& value, ConfigDraft& draft) {
  ReadSection(value, kLimitsKeys, draft.config.limits);
}

void ReadLog(const ConfigValue& value, ConfigDraft& draft) {
  ReadSection(value, kLogKeys, draft.config.log);
}

void AppendServerKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("listen", kListenKeys));
  sections.push_back(KeysOf("responses", kResponsesKeys));
  sections.push_back(KeysOf("api", kApiKeys));
  sections.push_back(KeysOf("limits", kLimitsKeys));
  sections.push_back(KeysOf("log", kLogKeys));
}

}  // namespace tidegate
