// SPDX-License-Identifier: Apache-2.0
#include "store/redis/redis_error.hpp"

#include <gtest/gtest.h>

namespace tidegate::redis {
namespace {

struct Case {
  std::string_view error;
  ErrorKind kind;
  Remedy remedy;
};

TEST(RedisErrorTest, ClassifiesErrorsAndRemedies) {
  const Case cases[] = {
      {"NOSCRIPT No matching script. Please use EVAL.", ErrorKind::kNoScript, Remedy::kSendText},
      {"LOADING Redis is loading the dataset in memory", ErrorKind::kLoading, Remedy::kRetryOnce},
      {"BUSY Redis is busy running a script.", ErrorKind::kBusy, Remedy::kRetryOnce},
      {"TRYAGAIN Multiple keys request during rehashing of slot", ErrorKind::kTryAgain,
       Remedy::kElsewhere},
      {"CLUSTERDOWN The cluster is down", ErrorKind::kClusterDown, Remedy::kElsewhere},
      {"MASTERDOWN Link with MASTER is down", ErrorKind::kMasterDown, Remedy::kRetryOnce},
      {"READONLY You can't write against a read only replica.", ErrorKind::kReadOnly,
       Remedy::kReconnect},
      {"OOM command not allowed when used memory > 'maxmemory'.", ErrorKind::kOutOfMemory,
       Remedy::kGiveUp},
      {"ERR Error running script (call to f_ab): @user_script:1: -OOM command not allowed when",
       ErrorKind::kOutOfMemory, Remedy::kGiveUp},
      {"MISCONF Redis is configured to save RDB snapshots", ErrorKind::kMisconf, Remedy::kGiveUp},
      {"NOREPLICAS Not enough good replicas to write.", ErrorKind::kNoReplicas, Remedy::kGiveUp},
      {"NOPERM this user has no permissions to run the 'evalsha' command", ErrorKind::kNoPerm,
       Remedy::kGiveUp},
      {"ERR The user executing the script can't run this command or subcommand", ErrorKind::kNoPerm,
       Remedy::kGiveUp},
      {"NOAUTH Authentication required.", ErrorKind::kNoAuth, Remedy::kReconnect},
      {"WRONGPASS invalid username-password pair", ErrorKind::kWrongPass, Remedy::kGiveUp},
      {"ERR unknown", ErrorKind::kOther, Remedy::kGiveUp},
      {"", ErrorKind::kOther, Remedy::kGiveUp},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(KindOf(c.error), c.kind) << c.error;
    EXPECT_EQ(RemedyOf(KindOf(c.error)), c.remedy) << c.error;
  }
}

}  // namespace
}  // namespace tidegate::redis
