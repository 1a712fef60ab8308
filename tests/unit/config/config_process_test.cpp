// SPDX-License-Identifier: Apache-2.0
#include "config/config.hpp"
#include "unit/config/config_reading.hpp"

namespace tidegate {
namespace {

using Seccomp = Config::Process::Seccomp;

TEST(ConfigProcessTest, KeepsUserAndAllSystemCallsByDefault) {
  const Config::Process process = Good("rules: []\n").process;
  EXPECT_FALSE(process.user);
  EXPECT_EQ(process.seccomp, Seccomp::kOff);
  EXPECT_FALSE(process.dumpable);
}

TEST(ConfigProcessTest, ReadsAllKeys) {
  const Config::Process process =
      Good("process: { user: '4242:4343', seccomp: kill, dumpable: true }\n").process;
  ASSERT_TRUE(process.user);
  EXPECT_EQ(process.user->text, "4242:4343");
  EXPECT_EQ(process.user->uid, 4242u);
  EXPECT_EQ(process.user->gid, 4343u);
  EXPECT_EQ(process.user->groups, SystemUser::Groups::kOnlyOne);
  EXPECT_EQ(process.seccomp, Seccomp::kKill);
  EXPECT_TRUE(process.dumpable);
  EXPECT_EQ(Good("process: { seccomp: off }\n").process.seccomp, Seccomp::kOff);
  EXPECT_EQ(Good("process: { seccomp: log }\n").process.seccomp, Seccomp::kLog);
  EXPECT_EQ(Good("process: { seccomp: deny }\n").process.seccomp, Seccomp::kDeny);
}

TEST(ConfigProcessTest, ReportsInvalidSettings) {
  const BadCase cases[] = {
      {"process: { user: no-such-user }\n",
       "1:18: error: process.user: there is no user `no-such-user` on this machine; create it"},
      {"process: { user: 'nobody:no-such-group' }\n",
       "1:18: error: process.user: there is no group `no-such-group` on this machine"},
      {"process: { user: '' }\n", "process.user: should be `NAME` or `NAME:GROUP`"},
      {"process: { user: ':adm' }\n", "process.user: should be `NAME` or `NAME:GROUP`"},
      {"process: { user: 'nobody:' }\n", "process.user: there is no group ``"},
      {"process: { user: 4242424 }\n",
       "process.user: no user of this machine has the number 4242424, so its group is unknown; "
       "write `4242424:GROUP`"},
      {"process: { user: root }\n", "process.user: is root; name a user without privileges"},
      {"process: { user: '0:4242' }\n", "process.user: is root"},
      {"process: { user: 4294967295 }\n", "process.user: there is no user `4294967295`"},
      {"process: { seccomp: on }\n",
       "1:21: error: process.seccomp: should be `off`, `log`, `deny` or `kill`, but is `on`"},
      {"process: { dumpable: 1 }\n", "1:22: error: process.dumpable: "},
      {"process: { secomp: kill }\n", "did you mean `seccomp`?"},
      {"process: []\n", "1:10: error: process: "},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
}

TEST(SystemUserTest, FindsUsersAndGroupsByNameAndNumber) {
  const auto user = FindSystemUser("nobody");
  ASSERT_TRUE(user) << user.error();
  EXPECT_EQ(user->name, "nobody");
  EXPECT_NE(user->uid, 0u);
  EXPECT_EQ(user->groups, SystemUser::Groups::kOfUser);
  const auto by_number = FindSystemUser(std::to_string(user->uid));
  ASSERT_TRUE(by_number) << by_number.error();
  EXPECT_EQ(by_number->name, "nobody");
  EXPECT_EQ(by_number->gid, user->gid);
  const auto with_group = FindSystemUser("nobody:daemon");
  ASSERT_TRUE(with_group) << with_group.error();
  EXPECT_EQ(with_group->uid, user->uid);
  EXPECT_NE(with_group->gid, user->gid);
}

}  // namespace
}  // namespace tidegate
