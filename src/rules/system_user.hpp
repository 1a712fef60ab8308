// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <expected>
#include <string>
#include <string_view>

namespace tidegate {

/// A user and a group of this machine, as `process.user` names them.
struct SystemUser {
  std::string text;  ///< As it is written: `NAME`, `NAME:GROUP`, or with numbers.
  std::string name;  ///< The user's login name; empty if only a number is known.
  uid_t uid = 0;
  gid_t gid = 0;
  /// Where the groups of the process come from.
  enum class Groups : bool {
    kOfUser,   ///< The user's supplementary groups.
    kOnlyOne,  ///< `gid` alone, because `GROUP` is written.
  };
  Groups groups = Groups::kOfUser;

  friend bool operator==(const SystemUser&, const SystemUser&) = default;
};

/// Looks up `NAME` or `NAME:GROUP`; each may be a number. A number that no user has needs a group.
/// The error is a message that names the unknown user or group.
[[nodiscard]] std::expected<SystemUser, std::string> FindSystemUser(std::string_view text);

}  // namespace tidegate
