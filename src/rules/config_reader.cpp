// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>
#include <expected>
#include <filesystem>
#include <fstream>

#include "rules/config.hpp"
#include "rules/config_gateway.hpp"
#include "rules/config_include.hpp"
#include "rules/config_listen.hpp"
#include "rules/config_sections.hpp"
#include "rules/config_warnings.hpp"
#include "rules/file_permissions.hpp"
#include "rules/yaml_text.hpp"

namespace tidegate {
namespace {

constexpr std::array<ConfigKey<ConfigDraft>, 22> kConfigKeys = {{
    {"store", ReadStore},
    {"listen", ReadListen},
    {"access", ReadAccess},
    {"client_ip", ReadClientIp},
    {"identity", ReadIdentity},
    {"paths", ReadPaths},
    {"responses", ReadResponses},
    {"api", ReadApi},
    {"resp", ReadResp},
    {"limits", ReadLimits},
    {"log", ReadLog},
    {"metrics", ReadMetrics},
    {"process", ReadProcess},
    {"deny", ReadDeny},
    {"exempt", ReadExempt},
    {"exempt_preflights",
     [](const ConfigValue& v, ConfigDraft& d) { Put(d.config.exempt_preflights, v.Bool()); }},
    {"rules", ReadRules},
    {"gateway", ReadGateway},
    {"access_log", ReadAccessLog},
    {"routes", ReadRoutes},
    {"upstreams", ReadUpstreams},
    {"include", [](const ConfigValue&, ConfigDraft&) {}},  // config_include.cpp has read it.
}};

void Tell(ReadContext& context, Position at, std::string where, std::string_view message) {
  context.Add(Problem::Severity::kError, at, std::move(where), message);
}

/// With a store that can fail there is no silent default: to pass everybody and to refuse everybody
/// are both wrong for somebody.
void CheckOnFailure(const ConfigDraft& draft, ReadContext& context) {
  // CL.THROTTLE brings its quota too.
  const bool throttles = !draft.config.listen.resp.off() && draft.config.resp.throttle;
  const bool inline_quotas = draft.config.api.inline_quotas || throttles;
  if (!draft.config.store.redis || draft.places.on_failure.line > 0) return;
  if (!draft.places.undecided && !inline_quotas) return;
  const std::string who = draft.places.undecided
                              ? "here, or in every rule (`rules[" +
                                    std::to_string(*draft.places.undecided) + "]` has none)"
                              : "here, since quotas that callers bring have no rule to say it";
  Tell(context, draft.places.store, "store",
       "needs `on_failure`, which says what becomes of requests while Redis does not answer: "
       "`open` (they pass, uncounted), `closed` (they are refused with 503) or `local` (each node "
       "counts by itself, with its share of the limit); write it " +
           who);
}

/// What no section can see by itself.
void CheckAcross(const ConfigDraft& draft, ReadContext& context) {
  const Config& config = draft.config;
  CheckListen(draft, context);
  CheckGateway(draft, context);
  CheckOnFailure(draft, context);
  if (config.identity.jwt) return;
  for (std::size_t i = 0; i < config.rules.size(); ++i) {
    for (const Per::Part& part : config.rules[i].per.parts) {
      for (const Source& source : part) {
        if (source.kind != Source::Kind::kJwt) continue;
        Tell(context, draft.places.rules[i].per,
             "rules[" + std::to_string(draft.places.rules[i].index) + "].per",
             "counts by `" + source.Text() +
                 "`, but there is no `identity.jwt` that says how tokens are verified");
      }
    }
  }
}

ConfigReading Failure(Problem problem) {
  ConfigReading reading;
  reading.problems.push_back(std::move(problem));
  return reading;
}

/// The main file, included files and the files that values name.
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
    ConfigDraft draft;
    const Where top;
    ReadSection(ConfigValue(context, *document.root, top), kConfigKeys, draft);
    CheckAcross(draft, context);
    if (!context.has_errors()) {
      WarnAbout(draft.config, draft.places, context);
      WarnAboutPermissions(FilesToCheck(main, document, context), context);
    }
    if (!context.has_errors()) reading.config = std::move(draft.config);
  }
  reading.problems = context.TakeSorted();
  reading.files = context.TakeFiles();
  return reading;
}

ConfigReading ParseSafely(const MainFile& main, const std::string& folder,
                          Environment environment) {
  try {
    return Parse(main, folder, environment);
  } catch (const std::exception& error) {  // Out of memory, at most.
    return Failure({.at = {}, .where = {}, .message = error.what()});
  }
}

/// The text of a configuration's file, or why there is none.
std::expected<std::string, std::string> ReadText(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    return std::unexpected("this is a folder, not a file");
  }
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  std::string text(kMaxYamlBytes + 1, '\0');
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad()) {
    const std::string why = errno != 0 ? std::strerror(errno) : "unknown reason";
    return std::unexpected("the file cannot be read: " + why);
  }
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

}  // namespace

ConfigReading ParseConfig(std::string_view yaml, const std::string& folder, Environment environment,
                          Includes includes) {
  return ParseSafely({.yaml = yaml, .includes = includes}, folder, environment);
}

ConfigReading LoadConfig(const std::string& file) {
  const auto text = ReadText(file);
  const std::string folder = std::filesystem::path(file).parent_path().string();
  ConfigReading reading = text ? ParseSafely({.yaml = *text, .path = file},
                                             folder.empty() ? "." : folder, ProcessEnvironment)
                               : Failure({.at = {}, .where = {}, .message = text.error()});
  reading.files.insert(reading.files.begin(),
                       {.path = file, .content = text ? DigestOf(*text) : ContentDigest{}});
  return reading;
}

std::vector<SectionKeys> KnownKeys() {
  std::vector<SectionKeys> sections;
  sections.push_back(KeysOf("config", kConfigKeys));
  AppendStoreKeys(sections);
  AppendListenKeys(sections);
  AppendAccessKeys(sections);
  AppendServerKeys(sections);
  AppendMetricsKeys(sections);
  AppendProcessKeys(sections);
  AppendIdentityKeys(sections);
  AppendMatchKeys(sections);
  AppendDenialKeys(sections);
  AppendRuleKeys(sections);
  AppendOverrideKeys(sections);
  AppendGatewayKeys(sections);
  return sections;
}

}  // namespace tidegate
