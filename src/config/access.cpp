// SPDX-License-Identifier: Apache-2.0
// access: how callers authenticate, by tokens and by client certificates.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/ascii.hpp"
#include "config/sections.hpp"

namespace tidegate {
namespace {

using Access = Config::Access;
using May = TokenSpec::May;
using CertificateField = CertificateSpec::Field;

constexpr std::size_t kMaxListed = 1'000;
constexpr std::size_t kMinAccessToken = 16;
constexpr std::size_t kMaxAccessToken = 128;
/// A connection's subject is cut to 256 bytes; one that was cut never equals so short a text.
constexpr std::size_t kMaxSubject = 252;
constexpr std::size_t kMaxUri = 2048;
constexpr std::size_t kMaxDnsName = 253;

/// Takes the first word off `line`; empty: there is none.
std::string_view TakeWord(std::string_view& line) noexcept {
  constexpr std::string_view kBlanks = " \t";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

std::string_view TakeLine(std::string_view& text) noexcept {
  std::string_view line = TakeUntil(text, '\n');
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// Returns the problem of a token; empty if it is valid.
std::string TokenProblem(std::string_view token) {
  if (token.empty()) return "has a name, but no token; write `NAME TOKEN`";
  if (token.size() < kMinAccessToken || token.size() > kMaxAccessToken) {
    return "the token has " + std::to_string(token.size()) +
           " characters, and should have 16 to 128; `openssl rand -hex 32` makes a good one";
  }
  if (!IsPrintable(token)) return "the token should have printable ASCII characters only";
  return {};
}

/// Where each word was first seen, by line. The words point into the text, which is not copied.
using Lines = std::unordered_map<std::string_view, std::size_t>;

/// Reads tokens line by line. Messages show no word: if words are swapped, any may be the token.
std::optional<std::vector<TokenSpec>> ReadTokens(const ConfigValue& value) {
  const auto content = value.Secret(0, kMaxBundleFile);
  if (!content) return std::nullopt;
  std::vector<TokenSpec> tokens;
  Lines names;
  Lines secrets;
  std::string_view text = *content;
  for (std::size_t line = 1; !text.empty() && !value.context().full(); ++line) {
    const auto refuse = [&](const std::string& why) {
      value.Error("line " + std::to_string(line) + ": " + why);
    };
    const auto refuse_second = [&](Lines& lines, std::string_view word, const std::string& what) {
      const auto [first, is_new] = lines.emplace(word, line);
      if (!is_new) refuse("has the same " + what + " as line " + std::to_string(first->second));
    };
    std::string_view rest = TakeLine(text);
    const std::string_view name = TakeWord(rest);
    if (name.empty() || name.starts_with('#')) continue;
    if (tokens.size() == kMaxListed) {
      refuse("there are more than 1,000 tokens");
      break;
    }
    const std::string_view secret = TakeWord(rest);
    const std::string_view may = TakeWord(rest);
    if (!IsId(name)) refuse("the name " + std::string{kIdGrammar});
    if (const std::string problem = TokenProblem(secret); !problem.empty()) refuse(problem);
    if (may != "ask" && may != "all" && !may.empty()) {
      refuse("the third word should be `ask` or `all`");
    }
    if (!TakeWord(rest).empty()) {
      refuse("has more than three words; write `NAME TOKEN`, `NAME TOKEN ask` or `NAME TOKEN all`");
    }
    refuse_second(names, name, "name");
    if (!secret.empty()) refuse_second(secrets, secret, "token");
    // Invalid tokens are added too, so that the messages about the number of tokens are right.
    tokens.push_back({.name = std::string{name},
                      .secret = std::string{secret},
                      .may = may == "ask" ? May::kAsk : May::kAll});
  }
  if (tokens.empty()) {
    value.Error(
        "has no token, so every caller would be rejected; write one per line, as in `NAME TOKEN`");
  }
  return tokens;
}

/// True if a blank follows a comma that separates two parts, which RFC 2253 never writes.
bool HasBlankAfterComma(std::string_view text) noexcept {
  for (std::size_t i = text.find(", "); i != std::string_view::npos; i = text.find(", ", i + 1)) {
    if (i == 0 || text[i - 1] != '\\') return true;
  }
  return false;
}

/// Returns what is wrong with a subject; empty if it is valid.
std::string_view SubjectProblem(std::string_view text) noexcept {
  constexpr std::string_view kPrinted =
      "should be the subject as RFC 2253 writes it, as in `CN=ops,O=Example`; this prints it: "
      "`openssl x509 -in client.pem -noout -subject -nameopt RFC2253` (without its `subject=`)";
  if (text.size() > kMaxSubject) {
    return "has more than 252 bytes; name the certificate by its `uri` or `dns` instead";
  }
  const std::size_t equals = text.find('=');
  const bool odd = equals == std::string_view::npos || equals == 0 || text[equals - 1] == ' ' ||
                   text.starts_with('/') || text.starts_with("subject=") ||
                   HasBlankAfterComma(text);
  return odd || !IsPrintable(text, ' ') ? kPrinted : std::string_view{};
}

template <CertificateField kField>
void ReadCertificateName(const ConfigValue& value, CertificateSpec& spec) {
  auto text = value.Text();
  if (!text) return;
  if (kField == CertificateField::kSubject) {
    if (const std::string_view problem = SubjectProblem(*text); !problem.empty()) {
      return value.Error(problem);
    }
  } else if (kField == CertificateField::kUri) {
    const std::size_t scheme = text->find("://");
    if (scheme == 0 || scheme == text->npos || text->size() > kMaxUri || !IsPrintable(*text)) {
      return value.Error(
          "should be a URI of at most 2048 bytes, as in `spiffe://example.org/billing`");
    }
  } else {
    if (text->empty() || text->size() > kMaxDnsName || !IsPrintable(*text)) {
      return value.Error("should be a DNS name, as in `billing.example.org`");
    }
    text = Lowered(*text);
  }
  spec.field = kField;
  spec.value = *std::move(text);
}

constexpr auto kCertificateFields = Fields({
    Value<&CertificateSpec::name, [](const ConfigValue& v) { return ReadId(v); }>(
        "name", kIdType, "Identifies the certificate in the audit log; unique in the list.")
        .Required("needs a `name`, which identifies the certificate in the audit log"),
    Custom<ReadCertificateName<CertificateField::kSubject>>(
        "subject",
        ValueType{R"({"type": "string", "maxLength": 252})", "a text of at most 252 bytes"},
        "The whole subject as RFC 2253 writes it, as in `CN=ops,O=Example`. Exactly one of "
        "`subject`, `uri` and `dns` is needed."),
    Custom<ReadCertificateName<CertificateField::kUri>>(
        "uri", ValueType{R"({"type": "string", "maxLength": 2048})", "a URI"},
        "A URI among the alternative names, such as the SPIFFE ID `spiffe://example.org/billing`."),
    Custom<ReadCertificateName<CertificateField::kDns>>(
        "dns", ValueType{R"({"type": "string", "maxLength": 253})", "a DNS name"},
        "A DNS name among the alternative names; case does "
        "not count, and `*` is an ordinary character."),
    OneOf<&CertificateSpec::may>("may", kMayWords,
                                 "`ask` for all operations but those that give quota back, debit, "
                                 "renew leases or change something; `all` for everything."),
});
constexpr Section<CertificateSpec> kCertificateSection(
    "access_certificate", kCertificateFields, nullptr,
    R"("oneOf": [{"required": ["subject"]}, {"required": ["uri"]}, {"required": ["dns"]}])");

void ReadCertificateList(const ConfigValue& value, Access& access) {
  std::map<std::string, Position> names;
  std::map<std::pair<CertificateField, std::string>, Position> values;
  if (value.is_empty_list()) {
    value.Error(
        "names no certificate, so that none would have rights; write one, as in `- { name: ops, "
        "subject: \"CN=ops,O=Example\" }`, or remove the key to give all rights to every "
        "certificate that is accepted");
  }
  if (value.items() > kMaxListed) return value.Error("names more than 1,000 certificates");
  value.EachItem([&](const ConfigValue& item) {
    CertificateSpec spec;
    ReadSection(item, kCertificateSection, spec);
    if (!item.is_map()) return;
    const int fields = static_cast<int>(item["subject"].written()) +
                       static_cast<int>(item["uri"].written()) +
                       static_cast<int>(item["dns"].written());
    if (fields != 1) {
      item.Error("needs exactly one of `subject`, `uri` and `dns`, by which it is recognized");
    }
    if (spec.value.empty() || fields != 1 || spec.name.empty()) return;
    const auto [named, new_name] = names.emplace(spec.name, item.at());
    if (!new_name) {
      item.Error(Backticked(spec.name) + " is the name of two certificates; the first is on " +
                 LineOf(named->second, item.at()));
    }
    const auto [listed, is_new] = values.emplace(std::pair(spec.field, spec.value), item.at());
    if (!is_new) {
      item.Error(Backticked(spec.value) + " is listed already, on " +
                 LineOf(listed->second, item.at()));
    }
    access.certificates.push_back(std::move(spec));
  });
}

void CheckAccess(const ConfigValue& section, Access&) {
  if (section["tokens"].written() || section["certificates"].written()) return;
  section.Error("needs `tokens`, as in `tokens: file:PATH`, or `certificates`");
}

constexpr auto kAccessFields = Fields({
    Value<&Access::tokens, ReadTokens>(
        "tokens", ValueType{R"({"type": "string"})", "a text, or `file:PATH`"},
        "The tokens of callers, one per line: `NAME TOKEN`, or `NAME TOKEN ask` for "
        "callers that may not give quota back."),
    Custom<ReadCertificateList>(
        "certificates",
        ValueType{
            R"({"type": "array", "minItems": 1, "maxItems": 1000, "items": {"$ref": "#/$defs/access_certificate"}})",
            "a list of 1 to 1,000 maps", &kCertificateSection},
        "The client certificates that have rights; others have none.")
        .Otherwise("every certificate that is accepted has all rights"),
});

}  // namespace

constinit const Section<Access> kAccessSection(
    "access", kAccessFields, CheckAccess,
    R"("anyOf": [{"required": ["tokens"]}, {"required": ["certificates"]}])");

}  // namespace tidegate
