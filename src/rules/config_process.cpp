// SPDX-License-Identifier: Apache-2.0
// process: the privileges of the server's process.
#include "rules/config_sections.hpp"

namespace tidegate {
namespace {

using Seccomp = Config::Process::Seccomp;
constexpr std::array<Choice<Seccomp>, 4> kSeccompWords = {{{"off", Seccomp::kOff},
                                                           {"log", Seccomp::kLog},
                                                           {"deny", Seccomp::kDeny},
                                                           {"kill", Seccomp::kKill}}};

void ReadUser(const ConfigValue& value, Config::Process& process) {
  const auto text = value.Text("a user, as in `tidegate` or `tidegate:adm`");
  if (!text) return;
  auto user = FindSystemUser(*text);
  if (!user) return value.Error(user.error());
  process.user = *std::move(user);
}

constexpr std::array<ConfigKey<Config::Process>, 3> kProcessKeys = {{
    {"user", ReadUser},
    {"seccomp",
     [](const ConfigValue& v, Config::Process& p) { Put(p.seccomp, v.OneOf(kSeccompWords)); }},
    {"dumpable", [](const ConfigValue& v, Config::Process& p) { Put(p.dumpable, v.Bool()); }},
}};

}  // namespace

std::optional<Config::Process::Seccomp> SeccompOf(std::string_view word) noexcept {
  for (const Choice<Seccomp>& choice : kSeccompWords) {
    if (choice.word == word) return choice.value;
  }
  return std::nullopt;
}

void ReadProcess(const ConfigValue& value, ConfigDraft& draft) {
  ReadSection(value, kProcessKeys, draft.config.process);
}

void AppendProcessKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("process", kProcessKeys));
}

}  // namespace tidegate
