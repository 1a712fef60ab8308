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

void AddAskOptions(CLI::App& app, AskOptions& options) {
  app.add_option("--token-file", options.token_file,
                 "A file with the caller's token, where the server asks for one (default: the "
                 "environment's TIDEGATE_TOKEN)")
      ->type_name("FILE");
  AddParsed(app, "--timeout", options.timeout, ParseDuration,
            "How long to wait for an answer (default: 2s)", "DURATION");
  app.add_flag("--json", options.json, "Print JSON: what the server answered, as it came");
}

void AddTlsOptions(CLI::App& app, TlsFiles& files) {
  app.add_option("--ca-file", files.ca,
                 "With https://: the authorities that are believed, in PEM form (default: the "
                 "environment's TIDEGATE_CA_FILE, else the system's)")
      ->type_name("FILE");
  app.add_option("--cert-file", files.certificate,
                 "With https://: the caller's certificate, where the server asks for one")
      ->type_name("FILE");
  app.add_option("--key-file", files.key, "Its key (default: in the same file)")->type_name("FILE");
}

void AddAdminOptions(CLI::App& app, AskOptions& options) {
  app.add_option("--admin", options.server,
                 "Where its admin port is; over TLS, https://HOST:PORT (default: 127.0.0.1:9180)")
      ->type_name("HOST:PORT");
  AddAskOptions(app, options);
  AddTlsOptions(app, options.tls);
}

void AddWhom(CLI::App& app, Whom& whom) {
  app.add_option("rule", whom.rule, "The rule's id")->type_name("RULE");
  app.add_option("identity", whom.identity, "Who is counted: the value of the rule's first source")
      ->type_name("IDENTITY");
  app.add_option("--key", whom.key, "Instead of IDENTITY: the key as `tidegate hot` shows it")
      ->type_name("KEY");
  app.add_option(
         "--part", whom.parts,
         "Instead of IDENTITY: a source and its value, once for each that the rule counts by")
      ->type_name("SOURCE=VALUE")
      ->expected(1)
      ->take_all();
}

}  // namespace tidegate::cli
