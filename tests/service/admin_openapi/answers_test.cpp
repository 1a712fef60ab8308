// SPDX-License-Identifier: Apache-2.0
// Every answer of the admin port is documented, and every documented answer is given: all in one
// test, since what one scene shows another need not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/admin_openapi/admin_document.hpp"
#include "service/admin_openapi/scenes.hpp"
#include "service/admin_openapi/witness.hpp"

namespace tidegate::openapi_test {
namespace {

using testing::IsEmpty;

struct Scene {
  const char* name;
  void (*play)(Witness& witness);
};
constexpr Scene kScenes[] = {
    {"rules of every kind", EveryKindOfRule},
    {"overrides of every kind", EveryKindOfOverride},
    {"explanations of every outcome", EveryOutcome},
    {"hot keys", HotKeys},
    {"every listener", EveryListener},
    {"on its way out", OnItsWayOut},
    {"reloads", Reloads},
    {"bad requests", BadRequests},
    {"odd questions", OddQuestions},
    {"bad limits", BadLimits},
    {"missing credentials", MissingCredentials},
    {"too many rules", TooManyRules},
    {"too many connections", TooManyConnections},
    {"with Redis", WithRedis},
    {"a full table", FullTable},
    {"Redis is gone", RedisGone},
    {"Redis was never there", RedisNeverThere},
};

/// Documented answers that no scene shows, and why.
struct Unshown {
  const char* line;
  const char* why;
};
constexpr Unshown kUnshown[] = {
    {"RedisStore.mode=\"sentinel\"", "it needs sentinels: tests/redis has them"},
    {"RedisStore.mode=\"cluster\"", "it needs a cluster: tests/redis has it"},
    {"RedisStore.breaker=\"half_open\"", "a moment between two others"},
    {"DecisionReason=\"badresponse\"", "it needs a Redis that sends garbage: tests/redis has it"},
    {"DecisionReason=\"badtypes\"", "likewise"},
    {"DecisionReason=\"queue_full\"", "it needs a flood: tests/redis has it"},
};

/// Documented answers that scenes show in some runs only, and why.
constexpr Unshown kSometimesShown[] = {
    {"DecisionReason=\"rediserror\"", "soon after Redis was killed, until its breaker opens"},
    {"DecisionReason=\"timeout\"", "likewise"},
};

TEST(AdminOpenApiTest, DocumentsExactlyTheGivenAnswers) {
  Witness witness(AdminDocument());
  for (const Scene& scene : kScenes) {
    SCOPED_TRACE(scene.name);
    scene.play(witness);
  }
  std::set<std::string> unseen = witness.Unseen();
  for (const Unshown& unshown : kUnshown) {
    EXPECT_EQ(unseen.erase(unshown.line), 1u) << unshown.line << " is shown, or not documented";
  }
  for (const Unshown& sometimes : kSometimesShown) unseen.erase(sometimes.line);
  EXPECT_THAT(unseen, IsEmpty()) << "documented, and never answered";
}

}  // namespace
}  // namespace tidegate::openapi_test
