// SPDX-License-Identifier: Apache-2.0
// Checks that every response of the admin port is documented and that the scenes produce every
// documented response. All scenes run in one test, because together they must cover the document.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/admin_openapi/admin_document.hpp"
#include "service/admin_openapi/response_coverage.hpp"
#include "service/admin_openapi/scenes.hpp"

namespace tidegate::openapi_test {
namespace {

using testing::IsEmpty;

struct Scene {
  const char* name;
  void (*play)(ResponseCoverage& coverage);
};
constexpr Scene kScenes[] = {
    {"rules of every kind", EveryKindOfRule},
    {"overrides of every kind", EveryKindOfOverride},
    {"explanations of every outcome", EveryOutcome},
    {"hot keys", HotKeys},
    {"every listener", EveryListener},
    {"draining", Draining},
    {"reloads", Reloads},
    {"bad requests", BadRequests},
    {"unusual requests", UnusualRequests},
    {"bad limits", BadLimits},
    {"missing credentials", MissingCredentials},
    {"too many rules", TooManyRules},
    {"too many connections", TooManyConnections},
    {"with Redis", WithRedis},
    {"a full table", FullTable},
    {"Redis dies", RedisDies},
    {"Redis never starts", RedisNeverStarts},
};

/// A documented response that no scene produces, and the reason.
struct Unshown {
  const char* line;
  const char* why;
};
constexpr Unshown kUnshown[] = {
    {"RedisStore.mode=\"sentinel\"", "it needs sentinels: tests/redis has them"},
    {"RedisStore.mode=\"cluster\"", "it needs a cluster: tests/redis has it"},
    {"RedisStore.breaker=\"half_open\"", "a moment between two others"},
    {"DecisionReason=\"badresponse\"", "it needs a Redis that sends garbage: tests/redis has it"},
    {"DecisionReason=\"badtypes\"", "as above"},
    {"DecisionReason=\"queue_full\"", "it needs a flood: tests/redis has it"},
};

/// Documented responses that the scenes produce in some runs only.
constexpr Unshown kSometimesShown[] = {
    {"DecisionReason=\"rediserror\"", "soon after Redis was killed, until its breaker opens"},
    {"DecisionReason=\"timeout\"", "as above"},
};

TEST(AdminOpenApiTest, DocumentsExactlyTheResponsesOfTheServer) {
  ResponseCoverage coverage(AdminDocument());
  for (const Scene& scene : kScenes) {
    SCOPED_TRACE(scene.name);
    scene.play(coverage);
  }
  std::set<std::string> unseen = coverage.Unseen();
  for (const Unshown& unshown : kUnshown) {
    EXPECT_EQ(unseen.erase(unshown.line), 1u)
        << unshown.line << " was produced by a scene, or is not documented";
  }
  for (const Unshown& sometimes : kSometimesShown) unseen.erase(sometimes.line);
  EXPECT_THAT(unseen, IsEmpty()) << "documented responses that no scene produced";
}

}  // namespace
}  // namespace tidegate::openapi_test
