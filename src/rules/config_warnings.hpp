// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/config.hpp"

namespace tidegate {

struct ConfigPlaces;
class ReadContext;

/// Tells what a sound configuration probably does not mean: limits that clients can step around,
/// addresses that many share, trust that anybody can claim. None of them stops a start.
void WarnAbout(const Config& config, const ConfigPlaces& places, ReadContext& context);

/// Warns about requests that escape the rules that seem to limit them.
void WarnAboutEscapes(const Config& config, const ConfigPlaces& places, ReadContext& context);

}  // namespace tidegate
