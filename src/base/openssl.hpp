// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

// Helpers for source files that call OpenSSL.

namespace tidegate {

/// A deleter for std::unique_ptr that calls `Free`.
template <auto Free>
struct FreedBy {
  template <class T>
  void operator()(T* pointer) const noexcept {
    Free(pointer);
  }
};

/// Removes the errors of its lifetime from this thread's OpenSSL queue, which TLS code reads too.
class ErrorMark {
 public:
  ErrorMark() noexcept { ERR_set_mark(); }
  ErrorMark(const ErrorMark&) = delete;
  ErrorMark& operator=(const ErrorMark&) = delete;
  ~ErrorMark() { ERR_pop_to_mark(); }
};

/// A passphrase callback that provides none. Without it, OpenSSL would ask on the terminal.
inline int NoPassphrase(char*, int, int, void*) noexcept { return 0; }

namespace openssl {

using Bio = std::unique_ptr<BIO, FreedBy<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, FreedBy<X509_free>>;
using Crl = std::unique_ptr<X509_CRL, FreedBy<X509_CRL_free>>;
using Key = std::unique_ptr<EVP_PKEY, FreedBy<EVP_PKEY_free>>;

/// Returns a read-only BIO over `pem`, which must outlive it.
[[nodiscard]] inline Bio Memory(std::string_view pem) {
  return Bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(std::min<std::size_t>(pem.size(), INT_MAX))));
}
/// Return the next certificate or CRL of a PEM text; nullptr at its end, which OpenSSL reports as
/// an error too.
[[nodiscard]] inline Certificate NextCertificate(BIO* pem) {
  return Certificate(PEM_read_bio_X509(pem, nullptr, NoPassphrase, nullptr));
}
[[nodiscard]] inline Crl NextCrl(BIO* pem) {
  return Crl(PEM_read_bio_X509_CRL(pem, nullptr, NoPassphrase, nullptr));
}
/// Returns the private key in `pem`; nullptr if there is none without a passphrase.
[[nodiscard]] inline Key ReadKey(std::string_view pem) {
  return Key(PEM_read_bio_PrivateKey(Memory(pem).get(), nullptr, NoPassphrase, nullptr));
}
/// Returns a name as RFC 2253 writes it, in printable ASCII; empty if that fails.
[[nodiscard]] inline std::string NameText(const X509_NAME* name) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253) < 0) return {};
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return size <= 0 ? std::string() : std::string(data, static_cast<std::size_t>(size));
}

}  // namespace openssl

}  // namespace tidegate
