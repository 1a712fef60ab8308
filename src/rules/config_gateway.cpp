// SPDX-License-Identifier: Apache-2.0
// gateway and access_log, and the values that routes and upstreams both have.
#include "rules/config_gateway.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory_resource>
#include <system_error>

#include "rules/ascii.hpp"
#include "rules/nearest.hpp"
#include "rules/path.hpp"
#include "rules/size_text.hpp"

namespace tidegate {
namespace {

constexpr std::int64_t kMaxBody = std::int64_t{1024} << 30;

using UnknownExpect = GatewaySpec::UnknownExpect;
constexpr std::array<Choice<UnknownExpect>, 2> kUnknownExpects = {
    {{"reject", UnknownExpect::kReject}, {"ignore", UnknownExpect::kIgnore}}};

constexpr std::array<ConfigKey<GatewaySpec>, 6> kGatewayKeys = {{
    {"body_bytes",
     [](const ConfigValue& v, GatewaySpec& g) { Put(g.body_bytes, ReadBodyBytes(v)); }},
    {"merge_slashes", [](const ConfigValue& v, GatewaySpec& g) { Put(g.merge_slashes, v.Bool()); }},
    {"underscores", [](const ConfigValue& v, GatewaySpec& g) { Put(g.underscores, v.Bool()); }},
    {"unknown_expect",
     [](const ConfigValue& v, GatewaySpec& g) { Put(g.unknown_expect, v.OneOf(kUnknownExpects)); }},
    {"response_header_bytes",
     [](const ConfigValue& v, GatewaySpec& g) {
       Put(g.response_header_bytes, v.Size(kKibibyte, kMebibyte));
     }},
    {"response_header_count",
     ReadNumber<&GatewaySpec::response_header_count, 1, 1'000, GatewaySpec>},
}};

constexpr std::array<std::string_view, 3> kLogWords = {"stdout", "stderr", "off"};

/// The part behind the host, `:8443` or nothing, without leading zeros. Nothing: no port.
std::optional<std::string> PortOf(std::string_view rest) {
  if (rest.empty()) return std::string{};
  rest.remove_prefix(1);
  int port = 0;
  const char* const end = rest.data() + rest.size();
  const auto [stop, error] = std::from_chars(rest.data(), end, port);
  if (error != std::errc{} || stop != end || port < 1 || port > 65'535) return std::nullopt;
  return ":" + std::to_string(port);
}

}  // namespace

bool IsOff(const ConfigValue& value) {
  if (!value.is_scalar()) return false;
  if (value.node().text.find("${") == std::string::npos) return value.node().text == "off";
  const auto text = Substitute(value.node().text, value.context().environment());
  return text && *text == "off";
}

std::optional<std::size_t> ReadBodyBytes(const ConfigValue& value) {
  if (IsOff(value)) return 0;
  const auto bytes = value.Size(0, kMaxBody);
  if (bytes && *bytes == 0) {
    value.Error("should be at least 1; for bodies of any length write `off`");
    return std::nullopt;
  }
  return bytes;
}

std::optional<std::string> ReadHostPort(const ConfigValue& value) {
  const auto text = value.Text("a host, as in `api.internal` or `api.internal:8443`");
  if (!text) return std::nullopt;
  std::string lower = *text;
  std::transform(lower.begin(), lower.end(), lower.begin(), Lower);
  std::pmr::monotonic_buffer_resource memory;
  const auto host = NormalizeHost(lower, memory);
  if (!host) {
    value.Error(Ticked(*text) +
                " is not a host: write a name or an address, with a port if need be, as in "
                "`api.internal:8443`; without scheme and path");
    return std::nullopt;
  }
  const std::size_t inside = lower.starts_with('[') ? lower.find(']') : 0;
  const auto port = PortOf(std::string_view{lower}.substr(std::min(lower.find(':', inside),  //
                                                                   lower.size())));
  if (!port) {
    value.Error("has a port that is not a number from 1 to 65535");
    return std::nullopt;
  }
  return std::string{*host} + *port;
}

void ReadGateway(const ConfigValue& value, ConfigDraft& draft) {
  draft.places.gateway_section = value.at();
  ReadSection(value, kGatewayKeys, draft.config.gateway);
}

/// A path that is not absolute begins in the folder of the file that it is in, as that of a secret.
void ReadAccessLog(const ConfigValue& value, ConfigDraft& draft) {
  draft.places.access_log = value.at();
  const auto text = value.Text("`stdout`, `stderr`, `off` or a file's path");
  if (!text) return;
  std::string& path = draft.config.access_log.path;
  if (std::find(kLogWords.begin(), kLogWords.end(), *text) != kLogWords.end()) {
    path = *text;
    return;
  }
  if (text->empty() || text->ends_with('/') || std::any_of(text->begin(), text->end(), IsControl)) {
    return value.Error("should be `stdout`, `stderr`, `off` or a file's path");
  }
  const std::string hint =
      text->find_first_of("/.") == std::string::npos ? DidYouMean(*text, kLogWords) : std::string{};
  if (!hint.empty()) {
    return value.Error("should be `stdout`, `stderr` or `off`, but is " + Ticked(*text) + hint +
                       " For a file of that name write " + Ticked("./" + *text));
  }
  const std::filesystem::path file =
      (std::filesystem::path{value.context().FolderOf(value.at())} / *text).lexically_normal();
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    return value.Error("there is no folder " + Ticked(folder) + "; make it first");
  }
  if (std::filesystem::is_directory(file, ignored)) {
    return value.Error(Ticked(file.string()) + " is a folder; name a file in it");
  }
  path = file.string();
}

void AppendGatewayKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("gateway", kGatewayKeys));
  AppendRouteKeys(sections);
  AppendHeaderEditKeys(sections);
  AppendUpstreamKeys(sections);
  AppendUpstreamCareKeys(sections);
  AppendUpstreamTlsKeys(sections);
}

}  // namespace tidegate
