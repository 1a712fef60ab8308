// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "tidegate/error.hpp"

namespace tidegate {

/// How many certificates a PEM text holds. An Error where one cannot be read, or where there is
/// none; it shows nothing of the text.
[[nodiscard]] Result<std::size_t> CountCertificates(std::string_view pem);

/// Whether `key_pem` holds a private key, without a passphrase, and the first certificate of
/// `certificate_pem` is of that key. REQUIRES: that CountCertificates has read the latter.
[[nodiscard]] Result<void> CheckKey(std::string_view certificate_pem, std::string_view key_pem);

/// What to say of the first certificate in `pem` that is not valid now: that it has expired, or is
/// not valid yet, and the day. Nothing: all are. REQUIRES: as CheckKey.
[[nodiscard]] std::optional<std::string> OutOfDate(std::string_view pem);

/// Succeeds if `pem` holds one or more certificate revocation lists (CRLs) that can be read. The
/// error shows nothing of the text.
[[nodiscard]] Result<void> CheckCrls(std::string_view pem);

/// Returns a message about the first CRL in `pem` that is not valid now: its authority, and the
/// time at which it expired or becomes valid. Nothing if all are valid. REQUIRES: CheckCrls
/// succeeded.
[[nodiscard]] std::optional<std::string> CrlOutOfDate(std::string_view pem);

}  // namespace tidegate
