// SPDX-License-Identifier: Apache-2.0
#include "config/files.hpp"

#include <sys/stat.h>

#include "unit/config/config_folder.hpp"
#include "unit/config/config_reading.hpp"

namespace tidegate {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(FilePermissionsTest, WarnsAboutFilesThatOtherUsersCanAccess) {
  const struct {
    mode_t mode;
    Secrecy secrecy;
    std::string_view warning;  ///< Expected warning; empty: none.
  } cases[] = {
      {0600, Secrecy::kSecret, ""},
      {0640, Secrecy::kSecret, ""},
      {0660, Secrecy::kSecret, ""},
      {0644, Secrecy::kPublic, ""},
      {0755, Secrecy::kPublic, ""},
      {0644, Secrecy::kSecret,
       "the file `/f` has a secret, and every user of this machine can read it (mode 0644); run "
       "`chmod o-r /f`"},
      {0604, Secrecy::kSecretInFile, "can read it (mode 0604); run `chmod o-r /f`"},
      {0666, Secrecy::kSecret, "can read and change it (mode 0666); run `chmod o-rw /f`"},
      {0602, Secrecy::kSecret,
       "every user of this machine can change the file `/f` (mode 0602); run `chmod o-w /f`"},
      {0666, Secrecy::kPublic, "can change the file `/f` (mode 0666); run `chmod o-w /f`"},
  };
  for (const auto& c : cases) {
    const auto warning = FilePermissionWarning("/f", S_IFREG | c.mode, c.secrecy);
    EXPECT_EQ(warning.has_value(), !c.warning.empty()) << std::oct << c.mode;
    EXPECT_THAT(warning.value_or(""), HasSubstr(c.warning)) << std::oct << c.mode;
  }
}

TEST(FilePermissionsTest, WarnsAboutFoldersInWhichOthersCanReplaceFiles) {
  EXPECT_FALSE(FolderPermissionWarning("/d", S_IFDIR | 0755));
  EXPECT_FALSE(FolderPermissionWarning("/d", S_IFDIR | 0775));
  EXPECT_FALSE(FolderPermissionWarning("/tmp", S_IFDIR | 01777));
  EXPECT_THAT(FolderPermissionWarning("/d", S_IFDIR | 0777).value_or(""),
              HasSubstr("in the folder `/d` (mode 0777); run `chmod o-w /d`"));
}

TEST(FilePermissionsTest, QuotesPathsForTheShell) {
  EXPECT_THAT(FilePermissionWarning("/a b'c", 0602, Secrecy::kPublic).value_or(""),
              HasSubstr("run `chmod o-w '/a b'\\''c'`"));
  EXPECT_THAT(FilePermissionWarning("-f", 0602, Secrecy::kPublic).value_or(""),
              HasSubstr("run `chmod o-w -- '-f'`"));
}

class ConfigPermissionsTest : public ConfigFolder {
 protected:
  /// Returns the warnings about the main file `yaml` with the permissions `mode`.
  std::string Warned(const std::string& yaml, mode_t mode = 0644) {
    Write("main.yaml", "rules: [{ id: r, limit: 1/s, per: const }]\n" + yaml +
                           "listen: { api: '127.0.0.1:8081' }\n");
    SetMode("main.yaml", mode);
    const ConfigReading reading = LoadConfig(folder_ + "/main.yaml");
    EXPECT_TRUE(reading.config) << ProblemText(reading);
    return ProblemText(reading);
  }
  void SetMode(const std::string& name, mode_t mode) const {
    ASSERT_EQ(chmod((folder_ + "/" + name).c_str(), mode), 0);
  }
  void WriteSecret(mode_t mode) const {
    Write("key", "0123456789abcdef0123456789abcdef");
    SetMode("key", mode);
  }
};

constexpr std::string_view kReadable = "has a secret, and every user of this machine can read it";

TEST_F(ConfigPermissionsTest, WarnsAboutReadableSecretFiles) {
  WriteSecret(0644);
  const std::string warned = Warned("identity: { hmac_key: file:key }\n");
  EXPECT_THAT(warned, HasSubstr("2:23: warning: identity.hmac_key: the file `" + folder_ +
                                "/key` has a secret, and every user of this machine can read it "
                                "(mode 0644); run `chmod o-r " +
                                folder_ + "/key`"));
  EXPECT_EQ(warned.find(kReadable), warned.rfind(kReadable)) << warned;
  WriteSecret(0640);
  EXPECT_EQ(Warned("identity: { hmac_key: file:key }\n").find("warning: identity"),
            std::string::npos);
}

TEST_F(ConfigPermissionsTest, WarnsAboutEachKindOfSecretFile) {
  WriteSecret(0644);
  Write("url", "redis://:secret@127.0.0.1:6379");
  SetMode("url", 0644);
  Write("tokens", "alice 0123456789abcdef0123456789abcdef\n");
  SetMode("tokens", 0644);
  const std::string warned = Warned(
      "identity: { hmac_key: file:key, jwt: { secret: file:key } }\n"
      "store: { url: file:url, on_failure: open }\n"
      "access: { tokens: file:tokens }\n");
  EXPECT_THAT(warned, HasSubstr("identity.hmac_key: the file"));
  // The JWT secret is in the same file as another secret, about which there is a warning already.
  EXPECT_THAT(warned, Not(HasSubstr("identity.jwt.secret: the file")));
  EXPECT_THAT(warned, HasSubstr("store.url: the file"));
  EXPECT_THAT(warned, HasSubstr("access.tokens: the file"));
}

TEST_F(ConfigPermissionsTest, WarnsAboutReadableConfigurationWithInlineSecret) {
  const std::string key = "identity: { hmac_key: 0123456789abcdef0123 }\n";
  EXPECT_THAT(Warned(key), HasSubstr("main.yaml` " + std::string(kReadable)));
  EXPECT_THAT(Warned("store: { url: 'redis://:pw@127.0.0.1', on_failure: open }\n"),
              HasSubstr(kReadable));
  EXPECT_THAT(Warned("access: { tokens: 'alice 0123456789abcdef' }\n"), HasSubstr(kReadable));
  EXPECT_THAT(Warned(key, 0640), Not(HasSubstr(kReadable)));
  EXPECT_THAT(Warned(""), Not(HasSubstr(kReadable)));
  EXPECT_THAT(Warned("store: { url: 'redis://127.0.0.1', on_failure: open }\n"),
              Not(HasSubstr(kReadable)));
  EXPECT_THAT(Warned("identity: { hmac_key: '${HOME:-}0123456789abcdef0123' }\n"),
              Not(HasSubstr(kReadable)));
}

TEST_F(ConfigPermissionsTest, WarnsAboutIncludedFileWithInlineSecret) {
  Write("more.yaml", "identity: { hmac_key: 0123456789abcdef0123 }\n");
  SetMode("more.yaml", 0644);
  const std::string warned = Warned("include: [more.yaml]\n");
  EXPECT_THAT(warned, HasSubstr("more.yaml` " + std::string(kReadable)));
  EXPECT_THAT(warned, Not(HasSubstr("main.yaml` " + std::string(kReadable))));
}

TEST_F(ConfigPermissionsTest, WarnsAboutWritableFilesAndFolders) {
  EXPECT_THAT(Warned("", 0646),
              HasSubstr("can change the file `" + folder_ + "/main.yaml` (mode 0646)"));
  Write("more.yaml", "deny: []\n");
  SetMode("more.yaml", 0646);
  EXPECT_THAT(Warned("include: [more.yaml]\n"), HasSubstr("/more.yaml` (mode 0646)"));
  WriteSecret(0602);
  EXPECT_THAT(Warned("identity: { hmac_key: file:key }\n"), HasSubstr("/key` (mode 0602)"));
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  const std::string warned = Warned("");
  EXPECT_THAT(warned, HasSubstr("in the folder `" + folder_ + "` (mode 0777)"));
  ASSERT_EQ(chmod(folder_.c_str(), 01777), 0);
  EXPECT_THAT(Warned(""), Not(HasSubstr("in the folder")));
}

}  // namespace
}  // namespace tidegate
