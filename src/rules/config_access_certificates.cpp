// SPDX-License-Identifier: Apache-2.0
// access.certificates: the rights of callers that present a client certificate.
#include <algorithm>
#include <map>
#include <utility>

#include "rules/ascii.hpp"
#include "rules/config_access.hpp"

namespace tidegate {
namespace {

using Field = CertificateSpec::Field;
using May = TokenSpec::May;

constexpr std::size_t kMaxListed = 1'000;
/// Subjects of connections are cut to 256 bytes; none that is cut can equal a shorter text.
constexpr std::size_t kMaxSubject = 252;
constexpr std::size_t kMaxUri = 2048;
constexpr std::size_t kMaxDnsName = 253;

/// One entry as it was read. `fields` counts subject, uri and dns, valid or not.
struct CertificateDraft {
  CertificateSpec spec;
  int fields = 0;
  bool has_name = false;
  bool valid = true;
};

bool IsPrintableAscii(std::string_view text, char least) noexcept {
  return std::ranges::all_of(text, [&](char c) { return c >= least && c < '\x7f'; });
}

/// True if a blank follows a comma that separates two parts, which RFC 2253 never writes.
bool HasBlankAfterComma(std::string_view text) noexcept {
  for (std::size_t i = text.find(", "); i != std::string_view::npos; i = text.find(", ", i + 1)) {
    if (i == 0 || text[i - 1] != '\\') return true;
  }
  return false;
}

/// Returns the problem of an invalid subject; empty if the subject is valid.
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
  return odd || !IsPrintableAscii(text, ' ') ? kPrinted : std::string_view{};
}

void ReadField(const ConfigValue& value, CertificateDraft& draft, Field field) {
  ++draft.fields;
  draft.valid = false;
  auto text = value.Text();
  if (!text) return;
  if (field == Field::kSubject) {
    if (const std::string_view problem = SubjectProblem(*text); !problem.empty()) {
      return value.Error(problem);
    }
  } else if (field == Field::kUri) {
    const std::size_t scheme = text->find("://");
    if (scheme == 0 || scheme == std::string::npos || text->size() > kMaxUri ||
        !IsPrintableAscii(*text, '!')) {
      return value.Error(
          "should be a URI of at most 2048 bytes, as in `spiffe://example.org/billing`");
    }
  } else {
    if (text->empty() || text->size() > kMaxDnsName || !IsPrintableAscii(*text, '!')) {
      return value.Error("should be a DNS name, as in `billing.example.org`");
    }
    std::ranges::transform(*text, text->begin(), [](char c) { return Lower(c); });
  }
  draft.valid = true;
  draft.spec.field = field;
  draft.spec.value = *std::move(text);
}

constexpr std::array<Choice<May>, 2> kMayWords = {{{"ask", May::kAsk}, {"all", May::kAll}}};

constexpr std::array<ConfigKey<CertificateDraft>, 5> kCertificateKeys = {{
    {"name",
     [](const ConfigValue& v, CertificateDraft& d) {
       d.has_name = true;
       auto name = v.Text("a short name");
       if (name && !IsId(*name)) v.Error(kIdGrammar);
       d.spec.name = std::move(name).value_or("");
     }},
    {"subject",
     [](const ConfigValue& v, CertificateDraft& d) { ReadField(v, d, Field::kSubject); }},
    {"uri", [](const ConfigValue& v, CertificateDraft& d) { ReadField(v, d, Field::kUri); }},
    {"dns", [](const ConfigValue& v, CertificateDraft& d) { ReadField(v, d, Field::kDns); }},
    {"may", [](const ConfigValue& v, CertificateDraft& d) { Put(d.spec.may, v.OneOf(kMayWords)); }},
}};

}  // namespace

std::vector<CertificateSpec> ReadAccessCertificates(const ConfigValue& value) {
  std::vector<CertificateSpec> specs;
  std::map<std::string, Position> names;
  std::map<std::pair<Field, std::string>, Position> values;
  if (value.is_list() && value.node().children.empty()) {
    value.Error(
        "names no certificate, so that none would have rights; write one, as in `- { name: ops, "
        "subject: \"CN=ops,O=Example\" }`, or remove the key to give all rights to every "
        "certificate that is accepted");
  }
  if (value.is_list() && value.node().children.size() > kMaxListed) {
    value.Error("names more than 1,000 certificates");
    return specs;
  }
  value.EachItem([&](const ConfigValue& item) {
    CertificateDraft draft;
    ReadSection(item, kCertificateKeys, draft);
    if (!item.is_map()) return;
    if (!draft.has_name)
      item.Error("needs a `name`, which identifies the certificate in the audit");
    if (draft.fields != 1) {
      item.Error("needs exactly one of `subject`, `uri` and `dns`, by which it is recognized");
    }
    if (!draft.valid || draft.fields != 1 || draft.spec.name.empty()) return;
    const auto [named, new_name] = names.emplace(draft.spec.name, item.at());
    if (!new_name) {
      item.Error(Ticked(draft.spec.name) + " is the name of two certificates; the first is on " +
                 LineOf(named->second, item.at()));
    }
    const auto [listed, fresh] =
        values.emplace(std::pair(draft.spec.field, draft.spec.value), item.at());
    if (!fresh) {
      item.Error(Ticked(draft.spec.value) + " is listed already, on " +
                 LineOf(listed->second, item.at()));
    }
    specs.push_back(std::move(draft.spec));
  });
  return specs;
}

void AppendAccessCertificateKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("access_certificate", kCertificateKeys));
}

}  // namespace tidegate
