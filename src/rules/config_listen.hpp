// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "rules/config_sections.hpp"

// What the files that read and judge `listen` share; only they, and those that judge the whole,
// include this.

namespace tidegate {

void ReadListenTls(const ConfigValue& value, ListenSpec& door, ConfigPlaces::Door& place);

/// What no door can see by itself: other doors, tokens, trusted proxies.
void CheckListen(const ConfigDraft& draft, ReadContext& context);
/// As WarnAbout: what is sound, but lets more people in than it seems to, or fewer.
void WarnAboutListen(const Config& config, const ConfigPlaces& places, ReadContext& context);

void AppendListenTlsKeys(std::vector<SectionKeys>& sections);

}  // namespace tidegate
