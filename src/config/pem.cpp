// SPDX-License-Identifier: Apache-2.0
// Certificates and keys in PEM form, and TLS of connections that this process opens.
#include "config/pem.hpp"

#include <array>
#include <ctime>
#include <memory_resource>
#include <string>

#include "base/ascii.hpp"
#include "base/failure.hpp"
#include "base/openssl.hpp"
#include "config/sections.hpp"
#include "identity/path.hpp"

namespace tidegate {
namespace {

constexpr const char* kDay = "%Y-%m-%d";
constexpr const char* kMinute = "%Y-%m-%d %H:%M UTC";

/// Succeeds if `next` reads at least one object from a PEM text, and no object is broken.
template <class Next>
Result<void> CheckPem(std::string_view pem, Next next, const char* should_be) {
  const ErrorMark mark;
  const openssl::Bio bio = openssl::Memory(pem);
  bool found = false;
  while (next(bio.get()) != nullptr) found = true;
  // With any other error, an object began but could not be read.
  if (found && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE) return {};
  return Failure(ErrorCode::kBadConfig, should_be);
}

/// A time in UTC as strftime writes it; empty if OpenSSL cannot read it.
std::string TimeText(const ASN1_TIME* time, const char* format) {
  std::tm utc{};
  std::array<char, 32> text{};
  if (ASN1_TIME_to_tm(time, &utc) != 1) return {};
  return {text.data(), std::strftime(text.data(), text.size(), format, &utc)};
}

/// Returns `is not valid before DATE` or `expired on DATE`; empty if it is valid now.
std::string WhyNotNow(const ASN1_TIME* from, const ASN1_TIME* until, const char* format) {
  if (X509_cmp_current_time(from) > 0) return "is not valid before " + TimeText(from, format);
  if (until == nullptr || X509_cmp_current_time(until) >= 0) return {};
  return "expired on " + TimeText(until, format);
}

/// How messages name the other end of the connection.
struct Peer {
  std::string_view example;  ///< `api.internal`
  std::string_view whose;    ///< "the target's"
  std::string_view between;  ///< "the gateway and its targets"
};
constexpr Peer kRedis{"redis.internal", "Redis's", "this node and Redis"};
constexpr Peer kTarget{"api.internal", "the target's", "the gateway and its targets"};

template <const Peer& kPeer>
std::optional<std::string> ReadServerName(const ConfigValue& value) {
  const std::string example = Backticked(kPeer.example);
  const auto text = value.Text("a name, as in " + example);
  if (!text) return std::nullopt;
  std::string name = Lowered(*text);
  std::pmr::monotonic_buffer_resource memory;
  const auto normal = NormalizeHost(name, memory);
  if (!normal || *normal != name || Address::ParseWithPort(name)) {
    return value.Invalid("should be the name in " + std::string{kPeer.whose} +
                         " certificate, as in " + example +
                         ": a name without a port, not an address");
  }
  return name;
}

template <const Peer& kPeer>
void CheckClientTls(const ConfigValue& section, TlsClientSpec& tls) {
  CheckKeyPair(section, tls.certificate_pem, tls.key_pem, KeyPair::kOptional);
  if (tls.verify) return;
  section["verify"].Warning("anyone between " + std::string{kPeer.between} +
                            " can read and change the traffic; to trust a certificate of your own, "
                            "give its authority as `ca`");
}

constexpr std::string_view kPairSchema =
    R"("dependentRequired": {"certificate": ["key"], "key": ["certificate"]})";

template <const Peer& kPeer>
constexpr auto kClientTlsFields = Fields({
    Value<&TlsClientSpec::ca_pem, ReadCertificates>("ca", kPemType,
                                                    "The authorities that are trusted.")
        .Otherwise("the system's"),
    Value<&TlsClientSpec::server_name, ReadServerName<kPeer>>(
        "server_name", kNotEmptyType, "The name that every certificate must have.")
        .Otherwise("the host of each"),
    Value<&TlsClientSpec::certificate_pem, ReadCertificate>(
        "certificate", kPemType,
        "The certificate of this node with its chain, if the other side requests one."),
    Value<&TlsClientSpec::key_pem, ReadPrivateKey>(
        "key", kPemType, "The key of `certificate`, without a passphrase."),
    Bool<&TlsClientSpec::verify>(
        "verify",
        "Whether certificates are checked. With `false`, any server is trusted, and can read and "
        "change the traffic."),
});

}  // namespace

Result<void> CheckCertificates(std::string_view pem) {
  return CheckPem(pem, openssl::NextCertificate,
                  "should be certificates in PEM form, which begin with `-----BEGIN "
                  "CERTIFICATE-----`, or `file:PATH` of them");
}

Result<void> CheckKey(std::string_view certificate_pem, std::string_view key_pem) {
  const ErrorMark mark;
  const openssl::Key key = openssl::ReadKey(key_pem);
  if (key == nullptr) {
    return Failure(ErrorCode::kBadConfig,
                   "should be a private key in PEM form without a passphrase, which begins with "
                   "`-----BEGIN PRIVATE KEY-----`, or `file:PATH` of one");
  }
  const auto certificate = openssl::NextCertificate(openssl::Memory(certificate_pem).get());
  if (certificate == nullptr || X509_check_private_key(certificate.get(), key.get()) != 1) {
    return Failure(ErrorCode::kBadConfig, "is not the key of `certificate`");
  }
  return {};
}

std::optional<std::string> OutOfDate(std::string_view pem) {
  const ErrorMark mark;
  const openssl::Bio bio = openssl::Memory(pem);
  for (std::size_t i = 0; const auto certificate = openssl::NextCertificate(bio.get()); ++i) {
    const std::string why = WhyNotNow(X509_get0_notBefore(certificate.get()),
                                      X509_get0_notAfter(certificate.get()), kDay);
    if (why.empty()) continue;
    return (i == 0 ? "" : "certificate " + std::to_string(i + 1) + " of its chain ") + why +
           (why.starts_with("expired") ? ": peers" : ": until then, peers") +
           " that verify it will reject it";
  }
  return std::nullopt;
}

Result<void> CheckCrls(std::string_view pem) {
  return CheckPem(pem, openssl::NextCrl,
                  "should be certificate revocation lists in PEM form, which begin with "
                  "`-----BEGIN X509 CRL-----`, or `file:PATH` of them; for one in DER form, run "
                  "`openssl crl -inform DER -in FILE`");
}

std::optional<std::string> CrlOutOfDate(std::string_view pem) {
  const ErrorMark mark;
  const openssl::Bio bio = openssl::Memory(pem);
  while (const auto crl = openssl::NextCrl(bio.get())) {
    const std::string why = WhyNotNow(X509_CRL_get0_lastUpdate(crl.get()),
                                      X509_CRL_get0_nextUpdate(crl.get()), kMinute);
    if (why.empty()) continue;
    return "the CRL of `" + openssl::NameText(X509_CRL_get_issuer(crl.get())) + "` " + why +
           ": until you provide a valid CRL, clients with certificates of that authority are "
           "rejected";
  }
  return std::nullopt;
}

constinit const Section<TlsClientSpec> kStoreTlsSection("store_tls", kClientTlsFields<kRedis>,
                                                        CheckClientTls<kRedis>, kPairSchema);
constinit const Section<TlsClientSpec> kUpstreamTlsSection("tls", kClientTlsFields<kTarget>,
                                                           CheckClientTls<kTarget>, kPairSchema);

std::optional<std::string> ReadCertificates(const ConfigValue& value) {
  auto pem = value.Secret(0, kMaxBundleFile, Secrecy::kPublic);
  if (!pem) return std::nullopt;
  if (const auto valid = CheckCertificates(*pem); !valid) {
    return value.Invalid(valid.error().message);
  }
  return pem;
}

std::optional<std::string> ReadCertificate(const ConfigValue& value) {
  auto pem = ReadCertificates(value);
  if (const auto dated = OutOfDate(pem.value_or(""))) value.Warning(*dated);
  return pem;
}

std::optional<std::string> ReadPrivateKey(const ConfigValue& value) {
  auto pem = value.Secret(0);
  // The file may be empty while it is being replaced.
  if (pem && pem->empty()) value.Error("is empty, and should be a private key in PEM form");
  return pem;
}

void CheckKeyPair(const ConfigValue& section, const std::string& certificate_pem,
                  const std::string& key_pem, KeyPair needed) {
  const ConfigValue certificate = section["certificate"];
  const ConfigValue key = section["key"];
  if (!certificate.written() && !key.written()) {
    if (needed == KeyPair::kRequired) section.Error("needs a `certificate` and its `key`");
    return;
  }
  if (!key.written()) return certificate.Error("needs its `key` too");
  if (!certificate.written()) return key.Error("needs its `certificate` too");
  if (certificate_pem.empty() || key_pem.empty()) return;
  if (const auto fits = CheckKey(certificate_pem, key_pem); !fits) key.Error(fits.error().message);
}

}  // namespace tidegate
