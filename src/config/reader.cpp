// SPDX-License-Identifier: Apache-2.0
#include <expected>
#include <filesystem>

#include "config/files.hpp"
#include "config/sections.hpp"

namespace tidegate {
namespace {

constexpr auto kFields = Fields({
    Sub<&Config::store>("store", kStoreSection, "Where the counters are stored."),
    Sub<&Config::listen>(
        "listen", kListenSection,
        "Where the server listens: only the listeners that are named here are opened."),
    Sub<&Config::access>("access", kAccessSection,
                         "How callers of the API, RESP and admin listeners authenticate."),
    Sub<&Config::client_ip>(
        "client_ip", kClientIpSection,
        "Which proxies are trusted to send a client's address; by default none."),
    Sub<&Config::identity>("identity", kIdentitySection, "Keys for secrets and tokens."),
    Sub<&Config::paths>("paths", kPathsSection,
                        "How the paths of requests are read, by every listener."),
    Sub<&Config::responses>("responses", kResponsesSection, "What HTTP responses contain."),
    Sub<&Config::api>("api", kApiSection, "What callers of the HTTP API may do."),
    Sub<&Config::resp>("resp", kRespSection, "What callers over the Redis protocol may do."),
    Sub<&Config::limits>("limits", kLimitsSection,
                         "Limits on the connections, memory and time that clients can use."),
    Sub<&Config::log>("log", kLogSection, "How the server logs."),
    Sub<&Config::metrics>("metrics", kMetricsSection, "What the metrics record about decisions."),
    Sub<&Config::process>("process", kProcessSection,
                          "Privileges of the process. A change needs a restart."),
    Custom<ReadDeny>("deny", kMatchesType,
                     "Requests that are refused with 403, before anything else.")
        .Otherwise("none"),
    Custom<ReadExempt>("exempt", kMatchesType, "Requests that no rule counts.").Otherwise("none"),
    Bool<&Config::exempt_preflights>("exempt_preflights",
                                     "Whether CORS preflight requests pass uncounted: OPTIONS with "
                                     "Origin and Access-Control-Request-Method."),
    Custom<ReadRules>("rules",
                      ValueType{R"({"type": "array", "items": {"$ref": "#/$defs/rule"}})",
                                "a list of maps", &kRuleSection},
                      "The rules. A request is charged to every rule that matches it, or to none.")
        .Otherwise("none"),
    Sub<&Config::gateway>("gateway", kGatewaySection,
                          "Settings for all requests that pass the gateway."),
    Custom<ReadAccessLog>(
        "access_log",
        ValueType{R"({"type": "string", "minLength": 1})",
                  "`stdout`, `stderr`, `off` or a file's path"},
        "Where one line of JSON per request of the gateway goes: `stdout`, `stderr`, `off`, or a "
        "file in a folder that exists, relative to the configuration's folder.")
        .Default("stdout"),
    Custom<ReadRoutes>(
        "routes",
        ValueType{R"({"type": "array", "items": {"$ref": "#/$defs/route"}})", "a list of maps",
                  &kRouteSection},
        "Where the gateway sends requests; the first route that matches serves a request.")
        .Otherwise("none"),
    Custom<ReadUpstreams>(
        "upstreams",
        ValueType{R"({"type": "object", "propertyNames": {"pattern": "^[A-Za-z0-9._-]{1,64}$"},
        "additionalProperties": {"$ref": "#/$defs/upstream"}})",
                  "a map from name to map", &kUpstreamSection},
        "The servers behind the gateway, by name.")
        .Otherwise("none"),
    Later<Config>("include", kTextsType,
                  "Other files of this configuration, by path or pattern (`rules/*.yaml`), "
                  "relative to this file.")
        .Otherwise("none"),
});

/// Reports a missing `on_failure`. There is no silent default for a store that can fail: to let
/// every request pass and to refuse every request are both wrong for some services.
void CheckOnFailure(const ConfigValue& root, const Config& config) {
  // Callers of CL.THROTTLE bring their own quotas too.
  const bool throttles = !config.listen.resp.off() && config.resp.throttle;
  const bool inline_quotas = config.api.inline_quotas || throttles;
  const ConfigValue store = root["store"];
  if (!config.store.redis || store["on_failure"].written()) return;
  const ConfigValue rules = root["rules"];
  std::string undecided;
  for (std::size_t i = 0; i < rules.items() && undecided.empty(); ++i) {
    const ConfigValue rule = rules[i];
    if (rule.is_map() && !rule["on_failure"].written()) undecided = rule.where();
  }
  if (undecided.empty() && !inline_quotas) return;
  const std::string where = undecided.empty()
                                ? "here, since inline quotas have no rule that could set it"
                                : "here, or in every rule (" + Backticked(undecided) + " has none)";
  store.Error(
      "needs `on_failure`, which defines what happens to requests while Redis does not answer: "
      "`open` (they pass, uncounted), `closed` (they are refused with 503) or `local` (each node "
      "counts by itself, with its share of the limit); write it " +
      where);
}

/// Runs the checks that involve several sections.
void CheckAcross(const ConfigValue& root, Config& config) {
  CheckListen(root, config);
  CheckGateway(root);
  CheckOnFailure(root, config);
}

/// Reports a file without listeners: a server would start and serve nothing.
void CheckAnyListener(const ConfigValue& root) {
  const auto opened = [&](const FieldInfo& field) { return IsOpened(root["listen"][field.key]); };
  if (std::ranges::any_of(kListenSection.fields, opened)) return;
  root.context().Add(Problem::Severity::kError, root["listen"].at(), "listen",
                     "no listener is configured, so nothing would be served; name at least one, as "
                     "in `listen: { api: 127.0.0.1:8081, admin: 127.0.0.1:9180 }`");
}

ConfigReading Failure(std::string message) {
  ConfigReading reading;
  reading.problems.push_back({.at = {}, .where = {}, .message = std::move(message)});
  return reading;
}

/// Returns the files whose permissions are checked: the configuration's, and those of its values.
std::vector<CheckedFile> FilesToCheck(const MainFile& main, const ConfigDocument& document,
                                      const ReadContext& context) {
  std::vector<CheckedFile> files;
  for (const YamlDocument& document_file : document.files) {
    const SourceFile file = document_file.root->at.file;
    const std::string path = file.is_main() ? main.path : std::string{file.path()};
    if (path.empty()) continue;
    files.push_back({.path = path,
                     .secrecy = context.HasInlineSecret(file) ? Secrecy::kSecret : Secrecy::kPublic,
                     .at = {.file = file}});
  }
  files.insert(files.end(), context.value_files().begin(), context.value_files().end());
  return files;
}

ConfigReading Parse(const MainFile& main, const std::string& folder, Environment environment) {
  ReadContext context(environment, folder);
  const ConfigDocument document = ReadConfigDocument(main, context);
  ConfigReading reading;
  if (document.root != nullptr) {
    context.set_root(*document.root);
    const ConfigValue root(context, *document.root);
    Config config;
    ReadSection(root, kConfigSection, config);
    if (!main.path.empty()) CheckAnyListener(root);
    if (!context.has_errors()) {
      WarnAbout(root, config);
      WarnAboutPermissions(FilesToCheck(main, document, context), context);
    }
    if (!context.has_errors()) reading.config = std::move(config);
  }
  reading.problems = context.TakeSorted();
  reading.files = context.TakeFiles();
  return reading;
}

ConfigReading ParseSafely(const MainFile& main, const std::string& folder,
                          Environment environment) {
  try {
    return Parse(main, folder, environment);
  } catch (const std::exception& error) {  // Only a lack of memory is expected.
    return Failure(error.what());
  }
}

/// Returns the text of a configuration file, or why it cannot be read.
std::expected<std::string, std::string> ReadText(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    return std::unexpected("this is a folder, not a file");
  }
  auto text = ReadFileUpTo(file, kMaxYamlBytes);
  if (!text) return std::unexpected("the file cannot be read: " + text.error());
  return text;
}

}  // namespace

constinit const Section<Config> kConfigSection("config", kFields, CheckAcross);

ConfigReading ParseConfig(std::string_view yaml, const std::string& folder, Environment environment,
                          Includes includes) {
  return ParseSafely({.yaml = yaml, .includes = includes}, folder, environment);
}

ConfigReading LoadConfig(const std::string& file) {
  const auto text = ReadText(file);
  ConfigReading reading =
      text ? ParseSafely({.yaml = *text, .path = file}, FolderOfFile(file), ProcessEnvironment)
           : Failure(text.error());
  reading.files.insert(reading.files.begin(),
                       {.path = file, .content = text ? DigestOf(*text) : ContentDigest{}});
  return reading;
}

}  // namespace tidegate
