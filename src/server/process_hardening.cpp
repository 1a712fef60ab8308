// SPDX-License-Identifier: Apache-2.0
#include "server/process_hardening.hpp"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <expected>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/failure.hpp"
#include "base/message_text.hpp"
#include "server/seccomp_filter.hpp"

namespace tidegate {
namespace {

/// Returns the error of the system call that has just failed: `what`, and the text of errno.
std::unexpected<Error> SystemError(std::string_view what) {
  return Failure(ErrorCode::kBadConfig, std::string(what) + ": " + std::strerror(errno));
}

/// Takes all capabilities out of the bounding set, which limits what executed files can grant.
/// Needs CAP_SETPCAP. Without it the set stays as it is, and no_new_privs still prevents grants.
void EmptyBoundingSet() noexcept {
  for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0;
       ++capability) {
    (void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
}

/// Returns whether the calling thread has no capability, now or for programs that it executes.
Result<bool> HasNoCapabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0)
    return SystemError("cannot read capabilities");
  return std::ranges::all_of(sets, [](const __user_cap_data_struct& set) {
    return (set.effective | set.permitted | set.inheritable) == 0;
  });
}

/// Empties the ambient, inheritable, permitted and effective sets of the calling thread.
Result<void> EmptyCapabilities() {
  // Kernels before 4.3 have no ambient set.
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL) {
    return SystemError("cannot clear the ambient capabilities");
  }
  // A supervisor that started the process without capabilities may forbid the call that drops them.
  auto empty = HasNoCapabilities();
  if (!empty) return std::unexpected(std::move(empty.error()));
  if (*empty) return {};
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  if (syscall(SYS_capset, &header, none.data()) != 0)
    return SystemError("cannot drop capabilities");
  empty = HasNoCapabilities();
  if (empty && !*empty) {
    return Failure(ErrorCode::kBadConfig,
                   "the process still has capabilities after it dropped them");
  }
  return {};
}

/// Checks that the switch is complete, and that it cannot be undone.
Result<void> VerifySwitch(const SystemUser& user) {
  std::array<uid_t, 3> uids{};
  std::array<gid_t, 3> gids{};
  if (getresuid(&uids[0], &uids[1], &uids[2]) != 0 ||
      getresgid(&gids[0], &gids[1], &gids[2]) != 0) {
    return SystemError("cannot read the user of the process");
  }
  if (std::ranges::count(uids, user.uid) != 3 || std::ranges::count(gids, user.gid) != 3) {
    return Failure(ErrorCode::kBadConfig,
                   "the process is not user " + Backticked(user.text) + " after the switch");
  }
  if (setresuid(0, 0, 0) == 0 || seteuid(0) == 0) {
    return Failure(
        ErrorCode::kBadConfig,
        "the process could become root again after the switch to " + Backticked(user.text));
  }
  // Not checked if the configured group is 0 itself.
  if (user.gid != 0 && (setresgid(0, 0, 0) == 0 || setegid(0) == 0)) {
    return Failure(
        ErrorCode::kBadConfig,
        "the process could join group 0 again after the switch to " + Backticked(user.text));
  }
  return {};
}

Result<void> SwitchTo(const SystemUser& user) {
  if (geteuid() != 0) {
    if (geteuid() == user.uid && getegid() == user.gid) return {};
    return Failure(ErrorCode::kBadConfig,
                   "cannot switch to process.user " + Backticked(user.text) +
                       ": only root can, and the process runs as user " +
                       std::to_string(geteuid()) +
                       "; start it as root or as that user, or remove `process.user`");
  }
  const bool all_groups = user.groups == SystemUser::Groups::kOfUser && !user.name.empty();
  if ((all_groups ? initgroups(user.name.c_str(), user.gid) : setgroups(1, &user.gid)) != 0) {
    return SystemError("cannot set the groups of user " + Backticked(user.text));
  }
  if (setresgid(user.gid, user.gid, user.gid) != 0) {
    return SystemError("cannot switch to the group of process.user " + Backticked(user.text));
  }
  if (setresuid(user.uid, user.uid, user.uid) != 0) {
    return SystemError("cannot switch to process.user " + Backticked(user.text));
  }
  return {};
}

}  // namespace

void ForbidNewPrivileges() noexcept { (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); }

Result<void> HardenProcess(const Config::Process& process) {
  // This comes before the switch of the user, which removes CAP_SETPCAP.
  EmptyBoundingSet();
  if (process.user) {
    if (auto switched = SwitchTo(*process.user); !switched) return switched;
  }
  if (auto emptied = EmptyCapabilities(); !emptied) return emptied;
  // This comes after the capabilities are empty, because a process may be set up to keep them when
  // its user changes.
  if (process.user) {
    if (auto verified = VerifySwitch(*process.user); !verified) return verified;
  }
  // This comes after the switch of the user, because the kernel then resets the dumpable flag.
  if (prctl(PR_SET_DUMPABLE, process.dumpable ? 1 : 0, 0, 0, 0) != 0) {
    return SystemError("cannot set whether the process is dumpable");
  }
  return InstallAllowList(process.seccomp, FilteredThreads::kAll);
}

std::vector<std::string> UnreadableFiles(const std::vector<WatchedFile>& seen) {
  std::vector<std::string> unreadable;
  for (const WatchedFile& file : seen) {
    if (!file.is_pattern && access(file.path.c_str(), R_OK) != 0) unreadable.push_back(file.path);
  }
  return unreadable;
}

bool CanOpenForAppending(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return true;  // Pipes are not rotated.
  const auto folder = std::filesystem::absolute(path, error).parent_path();
  return access(path.c_str(), W_OK) == 0 && access(folder.c_str(), W_OK | X_OK) == 0;
}

bool RunsAsRoot() noexcept { return geteuid() == 0; }

}  // namespace tidegate
