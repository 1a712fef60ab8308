// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/message_text.hpp"
#include "config/config.hpp"
#include "config/field.hpp"

// The sections of a configuration, and the functions that their readers share.

namespace tidegate {

/// The section of the whole file, whose table leads to the tables of all other sections.
extern const Section<Config> kConfigSection;

extern const Section<Config::Store> kStoreSection;
extern const Section<Config::Listen> kListenSection;
extern const Section<Config::Access> kAccessSection;
extern const Section<Config::ClientIp> kClientIpSection;
extern const Section<Config::Identity> kIdentitySection;
extern const Section<PathPolicy> kPathsSection;
extern const Section<Config::Responses> kResponsesSection;
extern const Section<Config::Api> kApiSection;
extern const Section<Config::Resp> kRespSection;
extern const Section<Config::Limits> kLimitsSection;
extern const Section<Config::Log> kLogSection;
extern const Section<Config::Metrics> kMetricsSection;
extern const Section<Config::Process> kProcessSection;
extern const Section<GatewaySpec> kGatewaySection;
extern const Section<DenialSpec> kDenialSection;
extern const Section<ListenTls> kListenTlsSection;
/// The sections `tls` of the store and of upstreams, which differ only in the words of messages.
extern const Section<TlsClientSpec> kStoreTlsSection;
extern const Section<TlsClientSpec> kUpstreamTlsSection;
extern const SectionInfo kMatchSection;

// Types of values that tables share.
inline constexpr ValueType kIdType{
    .schema = R"({"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"})",
    .shown = "1 to 64 of `A-Z a-z 0-9 . _ -`",
    .name = "id"};
inline constexpr ValueType kNotEmptyType{R"({"type": "string", "minLength": 1})", "a text"};
inline constexpr ValueType kSecretType{R"({"type": "string"})", "a text, or `file:PATH`"};
inline constexpr ValueType kPemType{R"({"type": "string"})", "PEM, or `file:PATH`"};
inline constexpr ValueType kTextsType{
    .schema = R"({"description": "One text, or a list of which any will do.",
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]})",
    .shown = "a text or a list",
    .name = "texts"};
inline constexpr ValueType kLimitType{
    .schema = R"({"description": "A count and a period, as in 100/s or 1000/24h; 1us to 366d.",
        "anyOf": [{"type": "string", "pattern": "^[1-9][0-9]*/([0-9]+)?(us|ms|s|m|h|d)$"},
                  {"$ref": "#/$defs/environment"}]})",
    .shown = "a count and a period, as in `100/s`",
    .name = "limit"};
inline constexpr ValueType kBodyBytesType{
    .schema = R"({"description": "A size of at least 1, or off for bodies of any length.",
        "anyOf": [{"$ref": "#/$defs/size"}, {"$ref": "#/$defs/off"}]})",
    .shown = "1 to 1024GiB, or `off`",
    .name = "body_bytes"};
extern const ValueType kSomeMatchType;
inline constexpr ValueType kMatchesType{
    R"({"type": "array", "items": {"$ref": "#/$defs/some_match"}})", "a list of matches", nullptr,
    &kSomeMatchType};

inline constexpr auto kOnFailureWords = Words<OnFailure>(
    {{"open", OnFailure::kOpen}, {"closed", OnFailure::kClosed}, {"local", OnFailure::kLocal}});
inline constexpr auto kEncodedSlashesWords =
    Words<EncodedSlashes>({{"reject", EncodedSlashes::kReject}, {"match", EncodedSlashes::kMatch}});
inline constexpr auto kMayWords =
    Words<TokenSpec::May>({{"ask", TokenSpec::May::kAsk}, {"all", TokenSpec::May::kAll}});

// Readers of the lists and maps of the file.
void ReadDeny(const ConfigValue& value, Config& config);
void ReadExempt(const ConfigValue& value, Config& config);
void ReadRules(const ConfigValue& value, Config& config);
void ReadRoutes(const ConfigValue& value, Config& config);
void ReadUpstreams(const ConfigValue& value, Config& config);
void ReadAccessLog(const ConfigValue& value, Config& config);
extern const SectionInfo kRuleSection;
extern const SectionInfo kRouteSection;
extern const SectionInfo kUpstreamSection;

// Readers of values that several sections have.
[[nodiscard]] MatchSpec ReadMatch(const ConfigValue& value);
[[nodiscard]] std::optional<Network> ReadNetwork(const ConfigValue& value);
/// Reads the name of a rule, a route or an upstream. `what` completes "should be ...".
[[nodiscard]] std::optional<std::string> ReadId(const ConfigValue& value,
                                                std::string_view what = "a short name");
[[nodiscard]] bool IsId(std::string_view text) noexcept;
inline constexpr std::size_t kMaxId = 64;
inline constexpr std::string_view kIdGrammar =
    "should have 1 to 64 of the characters A-Z a-z 0-9 . _ -";
/// Returns a header's name in lower case; nothing if `text` is not a token or is too long.
[[nodiscard]] std::optional<std::string> HeaderName(std::string_view text);
/// Returns true if `text` is a token of RFC 9110, as methods, header names and media types are.
[[nodiscard]] bool IsToken(std::string_view text) noexcept;
/// Returns true if all characters are printable ASCII and not less than `least`.
[[nodiscard]] bool IsPrintable(std::string_view text, char least = '!') noexcept;
/// Reads the size of the longest body; returns 0 for `off`.
[[nodiscard]] std::optional<std::size_t> ReadBodyBytes(const ConfigValue& value);
/// Reads the `address:port` of a listener; returns an empty text for `off`.
[[nodiscard]] std::optional<std::string> ReadEndpoint(const ConfigValue& value);
/// Reads `http://host[:port]` or `https://host[:port]`; the port is 80 or 443 if it is left out. No
/// message shows the text, since it may contain a password.
[[nodiscard]] std::optional<UpstreamSpec::Target> ReadTargetUrl(const ConfigValue& value);
/// Reads a host such as `api.internal:8443` or `[::1]`, and returns it in lower case.
[[nodiscard]] std::optional<std::string> ReadHostPort(const ConfigValue& value);
/// Reads certificates in PEM form.
[[nodiscard]] std::optional<std::string> ReadCertificates(const ConfigValue& value);
/// Reads a certificate that this process presents, with its chain; warns if it is not valid now.
[[nodiscard]] std::optional<std::string> ReadCertificate(const ConfigValue& value);
[[nodiscard]] std::optional<std::string> ReadPrivateKey(const ConfigValue& value);
enum class KeyPair : bool { kOptional, kRequired };
/// Reports an error unless `certificate` and `key` of `section` are both written and belong
/// together. With KeyPair::kOptional, both may be absent.
void CheckKeyPair(const ConfigValue& section, const std::string& certificate_pem,
                  const std::string& key_pem, KeyPair needed);

enum class Direction : std::uint8_t { kRequest, kResponse, kDenial };
[[nodiscard]] HeaderEdits ReadHeaderEdits(const ConfigValue& value, Direction direction);
extern const SectionInfo kHeaderEditsSection;

/// The parts of a rule that its overrides must fit, as far as they have been read.
struct OverrideContext {
  const Per& per;
  const QuotaSpec& quota;
  const CostSpec& cost;
};
[[nodiscard]] std::vector<OverrideSpec> ReadOverrides(const ConfigValue& value,
                                                      const OverrideContext& rule);
extern const SectionInfo kOverrideSection;
/// Reads `limit` of a rule or an override.
void ReadLimit(const ConfigValue& value, QuotaSpec& quota);

/// A configuration file and the files that it includes, as one document. Owns its nodes.
struct ConfigDocument {
  std::deque<YamlDocument> files;  ///< In the order of inclusion, the main file first.
  std::deque<YamlNode> merged;     ///< Nodes that join the sections of several files.
  const YamlNode* root = nullptr;  ///< nullptr: a file cannot be read; the problems say why.
};

/// The main file of a configuration.
struct MainFile {
  std::string_view yaml;
  std::string path = {};  ///< Empty: the text did not come from a file.
  Includes includes = Includes::kRead;
};

/// Parses a configuration file and all files that it includes, and merges their sections. The lists
/// `rules`, `routes`, `deny` and `exempt` and the map `upstreams` are concatenated: the entries of
/// a file before those of the files that it includes. The caller reports other sections that two
/// files have. Reports problems to `context`, and notes every included file and pattern there.
[[nodiscard]] ConfigDocument ReadConfigDocument(const MainFile& main, ReadContext& context);

/// Returns true for a listener that the file opens, valid or not.
[[nodiscard]] bool IsOpened(const ConfigValue& listener);

// Checks that involve several sections. `root` is the whole file.
void CheckListen(const ConfigValue& root, const Config& config);
void CheckGateway(const ConfigValue& root);

// Warnings about configurations that work, but probably do not do what was meant. REQUIRES: there
// were no errors, so that entry i of a list of the Config is item i of the file.
void WarnAbout(const ConfigValue& root, const Config& config);
void WarnAboutListen(const ConfigValue& root, const Config& config);
void WarnAboutGateway(const ConfigValue& root, const Config& config);

}  // namespace tidegate
