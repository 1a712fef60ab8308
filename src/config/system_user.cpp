// SPDX-License-Identifier: Apache-2.0
#include <grp.h>
#include <pwd.h>

#include <cstdint>
#include <expected>
#include <optional>
#include <vector>

#include "base/message_text.hpp"
#include "base/units.hpp"
#include "config/config.hpp"

namespace tidegate {
namespace {

/// The size of the buffer for the entry of a user or a group; a group's entry lists its members.
constexpr std::size_t kEntryBytes = 1u << 20;

/// Returns a user or group number. It is below 2^32 - 1, which the system reads as "no change".
std::optional<std::uint32_t> IdNumber(std::string_view text) noexcept {
  return ParseNumber<std::uint32_t>(text, 0, UINT32_MAX - 1);
}

std::optional<passwd> FindUser(const std::string& text, std::vector<char>& memory) {
  passwd entry{};
  passwd* found = nullptr;
  (void)getpwnam_r(text.c_str(), &entry, memory.data(), memory.size(), &found);
  if (found == nullptr) {
    if (const auto number = IdNumber(text)) {
      (void)getpwuid_r(*number, &entry, memory.data(), memory.size(), &found);
    }
  }
  if (found == nullptr) return std::nullopt;
  return entry;
}

std::optional<gid_t> FindGroup(const std::string& text) {
  std::vector<char> memory(kEntryBytes);
  group entry{};
  group* found = nullptr;
  (void)getgrnam_r(text.c_str(), &entry, memory.data(), memory.size(), &found);
  if (found != nullptr) return entry.gr_gid;
  return IdNumber(text);
}

}  // namespace

std::expected<SystemUser, std::string> FindSystemUser(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string user{text.substr(0, colon)};
  if (user.empty()) return std::unexpected("should be `NAME` or `NAME:GROUP`");
  SystemUser result;
  result.text = text;
  std::vector<char> memory(kEntryBytes);
  const auto entry = FindUser(user, memory);
  if (entry) {
    result.name = entry->pw_name;
    result.uid = entry->pw_uid;
    result.gid = entry->pw_gid;
  } else if (const auto number = IdNumber(user); !number) {
    return std::unexpected("there is no user " + Backticked(user) +
                           " on this machine; create it with `" +
                           "useradd --system --no-create-home " + user + "`, or name another");
  } else if (colon == std::string_view::npos) {
    return std::unexpected("no user of this machine has the number " + user +
                           ", so its group is unknown; write `" + user + ":GROUP`");
  } else {
    result.uid = *number;
  }
  if (colon != std::string_view::npos) {
    const std::string group{text.substr(colon + 1)};
    const auto gid = FindGroup(group);
    if (!gid) return std::unexpected("there is no group " + Backticked(group) + " on this machine");
    result.gid = *gid;
    result.groups = SystemUser::Groups::kOnlyOne;
  }
  if (result.uid == 0) {
    return std::unexpected("is root; name a user without privileges, or leave it out");
  }
  return result;
}

}  // namespace tidegate
