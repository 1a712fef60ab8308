// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "unit/config/config_folder.hpp"
#include "unit/config/config_reading.hpp"

namespace tidegate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string RuleText(const std::string& id) {
  return "rules: [ { id: " + id + ", per: const, limit: 1/s } ]\n";
}

const std::string kListen = "listen: { api: '127.0.0.1:8081' }\n";

std::vector<std::string> IdsOf(const Config& config) {
  std::vector<std::string> ids;
  for (const RuleSpec& rule : config.rules) ids.push_back(rule.id);
  return ids;
}

class IncludeTest : public ConfigFolder {
 protected:
  void SetUp() override {
    ConfigFolder::SetUp();
    std::filesystem::create_directories(folder_ + "/rules");
  }
  /// Loads `yaml` as the main file. Adds a listener if neither `yaml` nor gateway.yaml has one.
  ConfigReading Load(const std::string& yaml) const {
    const bool listens = yaml.find("listen:") != yaml.npos || yaml.find("gateway") != yaml.npos;
    Write("main.yaml", yaml + (listens ? "" : kListen));
    return LoadConfig(folder_ + "/main.yaml");
  }
  /// Returns the problems, one on each line, with file names relative to the folder.
  std::string ProblemsOf(const ConfigReading& reading) const {
    std::string text;
    for (const Problem& problem : reading.problems) {
      text += problem.Text(folder_ + "/main.yaml") + "\n";
    }
    for (std::size_t at = 0; (at = text.find(folder_ + "/")) != std::string::npos;) {
      text.erase(at, folder_.size() + 1);
    }
    return text;
  }
  std::string ProblemsOf(const std::string& yaml) const { return ProblemsOf(Load(yaml)); }
};

TEST_F(IncludeTest, AppendsListsInTheOrderOfInclusion) {
  Write("rules/b.yaml", RuleText("b") + "deny: [ { path: /b } ]\n");
  Write("rules/a.yaml", "include: ../deep.yaml\n" + RuleText("a") + "deny: [ { path: /a } ]\n");
  Write("rules/a.yml", RuleText("other"));
  Write("rules/.hidden.yaml", RuleText("hidden"));
  Write("deep.yaml", RuleText("deep"));
  Write("last.yaml", RuleText("last") + "exempt: [ { path: /x } ]\n");
  const ConfigReading reading =
      Load("include: [rules/*.yaml, last.yaml]\n" + RuleText("main") + "deny: [ { path: /m } ]\n");
  ASSERT_TRUE(reading.config) << ProblemsOf(reading);
  EXPECT_THAT(IdsOf(*reading.config), ElementsAre("main", "a", "deep", "b", "last"));
  std::vector<std::string> denied;
  for (const MatchSpec& match : reading.config->deny) denied.push_back(match.paths.at(0));
  EXPECT_THAT(denied, ElementsAre("/m", "/a", "/b"));
  EXPECT_EQ(reading.config->exempt.size(), 1u);
}

TEST_F(IncludeTest, MergesSectionsAndRejectsDuplicates) {
  Write("gateway.yaml",
        "listen: { gateway: 127.0.0.1:8080 }\n"
        "routes: [ { upstream: one } ]\n"
        "upstreams: { one: { targets: http://127.0.0.1:1 } }\n");
  Write("more.yaml",
        "routes: [ { match: { path: /b }, upstream: two } ]\n"
        "upstreams: { two: { targets: http://127.0.0.1:2 } }\n");
  const std::string include = "include: [gateway.yaml, more.yaml]\n";
  const ConfigReading reading = Load(include + RuleText("r"));
  ASSERT_TRUE(reading.config) << ProblemsOf(reading);
  EXPECT_FALSE(reading.config->listen.gateway.off());
  EXPECT_EQ(reading.config->upstreams.size(), 2u);
  EXPECT_THAT(ProblemsOf(reading),
              HasSubstr("more.yaml:1:11: warning: routes[1]: is never used: the first route that "
                        "matches serves a request, and `one-1` on line 2 of " +
                        std::string("gateway.yaml matches")));
  EXPECT_THAT(ProblemsOf(include + "listen: { api: off }\n"),
              HasSubstr("gateway.yaml:1:1: error: the key `listen` is in two files, first on "
                        "line 2 of the main file"));
  EXPECT_THAT(ProblemsOf(include + "upstreams: { one: { targets: http://127.0.0.1:3 } }\n"),
              HasSubstr("gateway.yaml:3:14: error: upstreams.one: is the name of two upstreams; "
                        "the first is on line "
                        "2 of the main file"));
}

TEST_F(IncludeTest, ReportsFileOfEachProblem) {
  Write("rules/a.yaml", "rules:\n  - id: a\n    limit: fast\n");
  EXPECT_THAT(ProblemsOf("include: rules/a.yaml\n" + RuleText("m")),
              HasSubstr("rules/a.yaml:3:12: error: rules[1].limit: "));
  Write("rules/a.yaml", RuleText("m"));
  EXPECT_THAT(ProblemsOf("include: rules/a.yaml\n" + RuleText("m")),
              HasSubstr("rules/a.yaml:1:16: error: rules[1].id: `m` is the id of two rules; the "
                        "first is on line 2 of the main file"));
  Write("rules/a.yaml", "rules: [\n");
  EXPECT_THAT(ProblemsOf("include: rules/a.yaml\n" + RuleText("m")),
              HasSubstr("rules/a.yaml:2:1: error: this is not valid YAML"));
  Write("rules/a.yaml", "");
  EXPECT_THAT(ProblemsOf("include: rules/a.yaml\n"),
              HasSubstr("rules/a.yaml: error: the file is empty"));
  Write("rules/a.yaml", "[ 1 ]");
  EXPECT_THAT(ProblemsOf("include: rules/a.yaml\n"),
              HasSubstr("rules/a.yaml:1:1: error: an included file should be a map"));
  Write("rules/a.yaml", "ruls: []\n");
  EXPECT_THAT(ProblemsOf("include: rules/a.yaml\n"),
              HasSubstr("rules/a.yaml:1:1: error: unknown key `ruls`; did you mean `rules`?"));
  Write("rules/a.yaml", "rules: {}\n");
  EXPECT_THAT(ProblemsOf("include: rules/a.yaml\n" + RuleText("m")),
              HasSubstr("rules/a.yaml:1:8: error: rules: should be a list, but is a map"));
  Write("rules/a.yaml", RuleText("a") + RuleText("b"));
  EXPECT_THAT(ProblemsOf("include: rules/a.yaml\n" + RuleText("m")),
              HasSubstr("the key `rules` is "));
}

TEST_F(IncludeTest, SortsProblemsByFile) {
  Write("a.yaml", "x: 1\n");
  Write("b.yaml", "y: 1\n");
  const std::string problems = ProblemsOf("include: [b.yaml, a.yaml]\n\n\nz: 1\n");
  EXPECT_THAT(problems,
              testing::MatchesRegex("main.yaml:4:1: .*\nb.yaml:1:1: .*\na.yaml:1:1: .*\n"));
}

TEST_F(IncludeTest, ReadsSecretsRelativeToTheirFile) {
  Write("key", "0123456789abcdef-main");
  Write("rules/key", "0123456789abcdef-rules");
  Write("rules/a.yaml", "identity: { hmac_key: file:key }\n");
  const ConfigReading reading = Load("include: rules/a.yaml\n");
  ASSERT_TRUE(reading.config) << ProblemsOf(reading);
  EXPECT_EQ(reading.config->identity.hmac_key, "0123456789abcdef-rules");
  std::vector<std::string> files;
  for (const WatchedFile& file : reading.files)
    files.push_back(file.path.substr(folder_.size() + 1));
  EXPECT_THAT(files, ElementsAre("main.yaml", "rules/a.yaml", "rules/key"));
}

TEST_F(IncludeTest, ReportsMissingFilesAsErrorsAndEmptyPatternsAsWarnings) {
  ConfigReading reading = Load("include: [gone.yaml]\n");
  EXPECT_FALSE(reading.config);
  EXPECT_THAT(ProblemsOf(reading), HasSubstr("main.yaml:1:11: error: include[0]: there is no file "
                                             "`gone.yaml`"));
  ASSERT_EQ(reading.files.size(), 2u);
  EXPECT_EQ(reading.files[1], (WatchedFile{.path = folder_ + "/gone.yaml"}));
  reading = Load("include: gone/*.yaml\n" + RuleText("r"));
  EXPECT_TRUE(reading.config);
  EXPECT_THAT(ProblemsOf(reading), HasSubstr("main.yaml:1:10: warning: include: no file matches"));
  ASSERT_EQ(reading.files.size(), 2u);
  EXPECT_TRUE(reading.files[1].is_pattern);
  EXPECT_EQ(CurrentDigest(reading.files[1]), reading.files[1].content);
  std::filesystem::create_directories(folder_ + "/gone");
  Write("gone/a.yaml", RuleText("a"));
  EXPECT_NE(CurrentDigest(reading.files[1]), reading.files[1].content);
  EXPECT_THAT(ProblemsOf("include: rules\n"),
              HasSubstr("is a folder; for its files write a pattern"));
  EXPECT_THAT(ProblemsOf("include: ''\n"),
              HasSubstr("error: include: should be a file or a pattern"));
  EXPECT_THAT(ProblemsOf("include: []\n"), HasSubstr("error: include: includes nothing"));
  EXPECT_THAT(ProblemsOf("include: { a: b }\n"),
              HasSubstr("error: include: should be a text or a list"));
  EXPECT_THAT(ProblemsOf("include: a.yaml\ninclude: b.yaml\n"),
              HasSubstr("2:1: error: the key `include` is repeated, first on line 1"));
}

TEST_F(IncludeTest, RejectsIncludeCyclesRepetitionsAndDeepNesting) {
  Write("a.yaml", "include: rules/b.yaml\n");
  Write("rules/b.yaml", "include: ../a.yaml\n");
  EXPECT_THAT(
      ProblemsOf("include: a.yaml\n"),
      HasSubstr("rules/b.yaml:1:10: error: include: a file cannot include itself: main.yaml "
                "-> a.yaml -> rules/b.yaml -> "));
  EXPECT_THAT(ProblemsOf("include: main.yaml\n"),
              HasSubstr("cannot include itself: main.yaml -> "));
  Write("c.yaml", RuleText("c"));
  std::filesystem::create_symlink("c.yaml", folder_ + "/link.yaml");
  EXPECT_THAT(ProblemsOf("include:\n- c.yaml\n- ./c.yaml\n"),
              HasSubstr("main.yaml:3:3: error: include[1]: `c.yaml` is included twice, first on "
                        "line 2"));
  EXPECT_THAT(ProblemsOf("include: [c.yaml, link.yaml]\n"),
              HasSubstr("`link.yaml` is included twice"));
  for (int i = 1; i <= 9; ++i) {
    Write("d" + std::to_string(i) + ".yaml",
          i == 9 ? RuleText("d") : "include: d" + std::to_string(i + 1) + ".yaml\n");
  }
  EXPECT_THAT(ProblemsOf("include: d1.yaml\n"),
              HasSubstr("d8.yaml:1:10: error: include: files include "
                        "each other more than 8 levels deep"));
  EXPECT_THAT(ProblemsOf("include: d2.yaml\n"), Not(HasSubstr("error")));
}

TEST_F(IncludeTest, LimitsSizeAndNumberOfIncludedFiles) {
  Write("a.yaml", RuleText("a") + "# " + std::string(9u << 20, 'x') + "\n");
  Write("b.yaml", RuleText("b") + "# " + std::string(9u << 20, 'x') + "\n");
  EXPECT_THAT(ProblemsOf("include: a.yaml\n"), Not(HasSubstr("error")));
  EXPECT_THAT(ProblemsOf("include: [a.yaml, b.yaml]\n"),
              HasSubstr("include[1]: the configuration and its included files are larger than 16"));
  for (int i = 0; i <= 1'000; ++i) {
    Write("rules/" + std::to_string(1'000 + i) + ".yaml", RuleText("r" + std::to_string(i)));
  }
  EXPECT_THAT(ProblemsOf("include: rules/*.yaml\n"),
              HasSubstr("more than 1,000 files are included"));
  std::filesystem::remove(folder_ + "/rules/2000.yaml");
  const ConfigReading reading = Load("include: rules/*.yaml\n");
  ASSERT_TRUE(reading.config);
  EXPECT_EQ(reading.config->rules.size(), 1'000u);
}

TEST_F(IncludeTest, RejectsIncludeWhenIncludesAreForbidden) {
  Write("a.yaml", RuleText("a"));
  const ConfigReading reading =
      ParseConfig("include: a.yaml\n", folder_, TestEnvironment, Includes::kRefuse);
  EXPECT_FALSE(reading.config);
  EXPECT_TRUE(reading.files.empty());
  EXPECT_THAT(ProblemText(reading),
              HasSubstr("1:10: error: include: no file can be included here"));
}

}  // namespace
}  // namespace tidegate
