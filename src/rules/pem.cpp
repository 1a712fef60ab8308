// SPDX-License-Identifier: Apache-2.0
#include "rules/pem.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <array>
#include <ctime>
#include <memory>
#include <string>

#include "core/refuse.hpp"

namespace tidegate {
namespace {

template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* pointer) const noexcept {
    kFree(pointer);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Crl = std::unique_ptr<X509_CRL, Free<X509_CRL_free>>;

/// Leaves OpenSSL's error queue of this thread as it was: TLS code reads it too.
class ErrorMark {
 public:
  ErrorMark() noexcept { ERR_set_mark(); }
  ErrorMark(const ErrorMark&) = delete;
  ErrorMark& operator=(const ErrorMark&) = delete;
  ~ErrorMark() { ERR_pop_to_mark(); }
};

Bio Open(std::string_view pem) {
  return Bio{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
}

/// Without a callback OpenSSL would ask for a passphrase on the terminal.
int NoPassphrase(char*, int, int, void*) noexcept { return 0; }

Certificate Next(BIO* bio) {
  return Certificate{PEM_read_bio_X509(bio, nullptr, NoPassphrase, nullptr)};
}

Crl NextCrl(BIO* bio) { return Crl{PEM_read_bio_X509_CRL(bio, nullptr, NoPassphrase, nullptr)}; }

/// The name of a CRL's authority as RFC 2253 writes it.
std::string IssuerOf(const X509_CRL* crl) {
  const Bio bio{BIO_new(BIO_s_mem())};
  if (X509_NAME_print_ex(bio.get(), X509_CRL_get_issuer(crl), 0, XN_FLAG_RFC2253) < 0) return {};
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return size <= 0 ? std::string{} : std::string{data, static_cast<std::size_t>(size)};
}

/// `2026-01-31 12:00 UTC`; empty if OpenSSL cannot read it.
std::string Minute(const ASN1_TIME* time) {
  std::tm minute{};
  std::array<char, 32> text{};
  if (ASN1_TIME_to_tm(time, &minute) != 1) return {};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &minute)};
}

/// `2026-01-31`, in UTC; empty: OpenSSL cannot say.
std::string Day(const ASN1_TIME* time) {
  std::tm day{};
  std::array<char, 16> text{};
  if (ASN1_TIME_to_tm(time, &day) != 1) return {};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d", &day)};
}

}  // namespace

Result<std::size_t> CountCertificates(std::string_view pem) {
  const ErrorMark mark;
  const Bio bio = Open(pem);
  std::size_t count = 0;
  while (Next(bio.get()) != nullptr) ++count;
  // At the end of the text it says that no further one begins; all else is a certificate that is
  // broken.
  const bool ended = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (count == 0 || !ended) {
    return Refuse(
        ErrorCode::kBadConfig,
        "should be certificates in PEM form, which begin with `-----BEGIN CERTIFICATE-----`, or "
        "`file:PATH` of them");
  }
  return count;
}

Result<void> CheckKey(std::string_view certificate_pem, std::string_view key_pem) {
  const ErrorMark mark;
  const Bio bio = Open(key_pem);
  const Key key{PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr)};
  if (key == nullptr) {
    return Refuse(ErrorCode::kBadConfig,
                  "should be a private key in PEM form without a passphrase, which begins with "
                  "`-----BEGIN PRIVATE KEY-----`, or `file:PATH` of one");
  }
  const Certificate certificate = Next(Open(certificate_pem).get());
  if (certificate == nullptr || X509_check_private_key(certificate.get(), key.get()) != 1) {
    return Refuse(ErrorCode::kBadConfig, "is not the key of `certificate`");
  }
  return {};
}

std::optional<std::string> OutOfDate(std::string_view pem) {
  const ErrorMark mark;
  const Bio bio = Open(pem);
  for (std::size_t i = 0; const Certificate certificate = Next(bio.get()); ++i) {
    const ASN1_TIME* const from = X509_get0_notBefore(certificate.get());
    const ASN1_TIME* const until = X509_get0_notAfter(certificate.get());
    const std::string which =
        i == 0 ? "" : "certificate " + std::to_string(i + 1) + " of its chain ";
    if (X509_cmp_current_time(from) > 0) {
      return which + "is not valid before " + Day(from) +
             ": until then who checks it will refuse it";
    }
    if (X509_cmp_current_time(until) < 0) {
      return which + "has expired on " + Day(until) + ": who checks it will refuse it";
    }
  }
  return std::nullopt;
}

Result<void> CheckCrls(std::string_view pem) {
  const ErrorMark mark;
  const Bio bio = Open(pem);
  std::size_t count = 0;
  while (NextCrl(bio.get()) != nullptr) ++count;
  const bool ended = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (count == 0 || !ended) {
    return Refuse(ErrorCode::kBadConfig,
                  "should be certificate revocation lists in PEM form, which begin with "
                  "`-----BEGIN X509 CRL-----`, or `file:PATH` of them; for one in DER form, run "
                  "`openssl crl -inform DER -in FILE`");
  }
  return {};
}

std::optional<std::string> CrlOutOfDate(std::string_view pem) {
  const ErrorMark mark;
  const Bio bio = Open(pem);
  while (const Crl crl = NextCrl(bio.get())) {
    const ASN1_TIME* const from = X509_CRL_get0_lastUpdate(crl.get());
    const ASN1_TIME* const until = X509_CRL_get0_nextUpdate(crl.get());
    const std::string refused =
        ": until there is a valid one, clients with certificates of that "
        "authority are refused";
    if (X509_cmp_current_time(from) > 0) {
      return "the CRL of `" + IssuerOf(crl.get()) + "` is not valid before " + Minute(from) +
             refused;
    }
    if (until != nullptr && X509_cmp_current_time(until) < 0) {
      return "the CRL of `" + IssuerOf(crl.get()) + "` expired on " + Minute(until) + refused;
    }
  }
  return std::nullopt;
}

}  // namespace tidegate
