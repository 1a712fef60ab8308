// SPDX-License-Identifier: Apache-2.0
// deploy/systemd/tidegate.service removes all privileges that the server does not need.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace tidegate {
namespace {

constexpr const char* kUnit = TIDEGATE_SOURCE "/deploy/systemd/tidegate.service";

/// Returns the lines of the unit that are neither empty nor comments.
std::vector<std::string> UnitLines() {
  std::vector<std::string> lines;
  std::ifstream in(kUnit);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && !line.starts_with('#')) lines.push_back(line);
  }
  return lines;
}

TEST(SystemdUnitTest, UnitHasDirectivesThatDropPrivileges) {
  const std::vector<std::string> lines = UnitLines();
  for (const char* const directive : {
           "CapabilityBoundingSet=",
           "AmbientCapabilities=",
           "DynamicUser=yes",
           "LockPersonality=yes",
           "MemoryDenyWriteExecute=yes",
           "NoNewPrivileges=yes",
           "PrivateDevices=yes",
           "PrivateTmp=yes",
           "PrivateUsers=yes",
           "ProcSubset=pid",
           "ProtectClock=yes",
           "ProtectControlGroups=yes",
           "ProtectHome=yes",
           "ProtectHostname=yes",
           "ProtectKernelLogs=yes",
           "ProtectKernelModules=yes",
           "ProtectKernelTunables=yes",
           "ProtectProc=invisible",
           "ProtectSystem=strict",
           "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK",
           "RestrictNamespaces=yes",
           "RestrictRealtime=yes",
           "RestrictSUIDSGID=yes",
           "SystemCallArchitectures=native",
           "SystemCallFilter=@system-service",
           "SystemCallFilter=~@privileged @resources",
           // Without these lines the service does not start, does not reload, or serves fewer
           // connections than it should.
           "ExecReload=/bin/kill -HUP $MAINPID",
           "LimitNOFILE=65536",
           "SystemCallFilter=sched_setaffinity prlimit64 capset seccomp",
           "RestartPreventExitStatus=2",
           "ConfigurationDirectory=tidegate",
           "LogsDirectory=tidegate",
       }) {
    EXPECT_THAT(lines, testing::Contains(directive));
  }
}

TEST(SystemdUnitTest, UnitScoresBelowTwoInSystemdAnalyze) {
  const std::string command =
      "systemd-analyze security --offline=true --no-pager '" + std::string(kUnit) + "' 2>/dev/null";
  std::FILE* const pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string said;
  std::array<char, 4096> piece{};
  while (std::fgets(piece.data(), piece.size(), pipe) != nullptr) said += piece.data();
  pclose(pipe);
  constexpr std::string_view kResult = "Overall exposure level for tidegate.service: ";
  const std::size_t at = said.find(kResult);
  if (at == std::string::npos) GTEST_SKIP() << "systemd-analyze is not installed or too old";
  EXPECT_LT(std::stod(said.substr(at + kResult.size())), 2.0) << said;
}

}  // namespace
}  // namespace tidegate
