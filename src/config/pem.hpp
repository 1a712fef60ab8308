// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "tidegate/error.hpp"

namespace tidegate {

/// Returns the number of certificates in a PEM text. It is an error if there is none, or if one
/// cannot be read; the message shows nothing of the text.
[[nodiscard]] Result<std::size_t> CountCertificates(std::string_view pem);

/// Succeeds if `key_pem` is a private key without a passphrase, and the first certificate of
/// `certificate_pem` belongs to it. REQUIRES: CountCertificates succeeded for `certificate_pem`.
[[nodiscard]] Result<void> CheckKey(std::string_view certificate_pem, std::string_view key_pem);

/// Returns a message about the first certificate in `pem` that has expired or is not valid yet,
/// with the day; nothing if all are valid.
[[nodiscard]] std::optional<std::string> OutOfDate(std::string_view pem);

/// Succeeds if `pem` holds one or more certificate revocation lists (CRLs) that can be read. The
/// error shows nothing of the text.
[[nodiscard]] Result<void> CheckCrls(std::string_view pem);

/// Returns a message about the first CRL in `pem` that is not valid now: its authority, and the
/// time at which it expired or becomes valid. Nothing if all are valid. REQUIRES: CheckCrls
/// succeeded.
[[nodiscard]] std::optional<std::string> CrlOutOfDate(std::string_view pem);

}  // namespace tidegate
