// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.hpp"

#include <charconv>
#include <utility>

#include "core/refuse.hpp"
#include "rules/duration.hpp"
#include "tidegate/charge.hpp"

namespace tidegate::cli {

Result<std::int64_t> ReadCount(const std::string& text) {
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error == std::errc{} && rest == end) return count;
  return Refuse(ErrorCode::kBadQuota, "\"" + text + "\" is not a whole number below 2^63, as 5 is");
}

Result<std::int64_t> ReadCost(const std::string& text) {
  auto cost = ReadCount(text);
  if (cost && (*cost < 1 || *cost > kMaxCost)) {
    return Refuse(ErrorCode::kBadQuota,
                  text + " is out of range: a cost is between 1 and 2147483647");
  }
  return cost;
}

Result<Micros> ReadWithin(const std::string& text, Micros least, Micros most,
                          const std::string& words) {
  const auto duration = ParseDuration(text);
  // Of a number beyond all bounds the bound that is told is this one, not that of the parser.
  const std::size_t unit = text.find_first_not_of("0123456789");
  const bool beyond =
      !duration && unit != 0 && unit != std::string::npos && ParseDuration("1" + text.substr(unit));
  if (!duration && !beyond) return duration;
  if (!beyond && *duration >= least && *duration <= most) return duration;
  return Refuse(ErrorCode::kBadQuota, text + " is out of range: " + words);
}

Result<std::string> ReadNotEmpty(const std::string& text) {
  if (!text.empty()) return text;
  return Refuse(ErrorCode::kBadConfig,
                "it is empty: give it a value, or leave the option out for what --help names");
}

namespace {

Result<Micros> ReadTimeout(const std::string& text) {
  return ReadWithin(text, std::chrono::milliseconds{1}, std::chrono::hours{24},
                    "wait between 1ms and 24h");
}

void AddFile(CLI::App& app, const std::string& name, std::string& file, const std::string& help) {
  AddParsed(app, name, file, ReadNotEmpty, help, "FILE");
}

}  // namespace

void AddAskOptions(CLI::App& app, AskOptions& options) {
  AddFile(app, "--token-file", options.token_file,
          "A file with the caller's token, where the server asks for one (default: the "
          "environment's TIDEGATE_TOKEN)");
  AddParsed(app, "--timeout", options.timeout, ReadTimeout,
            "How long to wait for an answer (default: 2s)", "DURATION");
  app.add_flag("--json", options.json, "Print JSON: what the server answered, as it came");
}

void AddTlsOptions(CLI::App& app, TlsFiles& files) {
  AddFile(app, "--ca-file", files.ca,
          "With https://: the authorities that are believed, in PEM form (default: the "
          "environment's TIDEGATE_CA_FILE, else the system's)");
  AddFile(app, "--cert-file", files.certificate,
          "With https://: the caller's certificate, where the server asks for one");
  AddFile(app, "--key-file", files.key, "Its key (default: in the same file)");
}

void AddAdminOptions(CLI::App& app, AskOptions& options) {
  AddParsed(app, "--admin", options.server, ReadNotEmpty,
            "Where its admin port is; over TLS, https://HOST:PORT (default: the environment's "
            "TIDEGATE_ADMIN, else 127.0.0.1:9180)",
            "HOST:PORT");
  AddAskOptions(app, options);
  AddTlsOptions(app, options.tls);
}

CLI::Option* AddWhom(CLI::App& app, Whom& whom) {
  CLI::Option* const rule = app.add_option("rule", whom.rule, "The rule's id")->type_name("RULE");
  // Not without RULE; there are rules without IDENTITY.
  app.add_option("identity", whom.identity,
                 "Who is counted: the value of the rule's first source; none for a rule that "
                 "counts by `const`")
      ->needs(rule)
      ->type_name("IDENTITY");
  app.add_option("--key", whom.key, "Instead of IDENTITY: the key as `tidegate hot` shows it")
      ->type_name("KEY");
  app.add_option(
         "--part", whom.parts,
         "Instead of IDENTITY: a source and its value, once for each that the rule counts by")
      ->type_name("SOURCE=VALUE")
      ->expected(1)
      ->take_all();
  return rule;
}

}  // namespace tidegate::cli
