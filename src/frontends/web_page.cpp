// SPDX-License-Identifier: Apache-2.0
#include "frontends/web_page.hpp"

#include "rules/address.hpp"
#include "rules/request_view.hpp"

namespace tidegate {

bool IsJson(const net::HttpHead& head) noexcept {
  for (const net::HttpField& field : head.all()) {
    if (field.name != "Content-Type" && !EqualsIgnoreCase(field.name, "content-type")) continue;
    if (field.value == "application/json") return true;
    const std::string_view type = field.value.substr(0, field.value.find(';'));
    return EqualsIgnoreCase(type.substr(0, type.find_last_not_of(" \t") + 1), "application/json");
  }
  return false;
}

bool NamesAddress(std::string_view host) noexcept {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end != std::string_view::npos && Address::Parse(host.substr(1, end - 1)).has_value();
  }
  host = host.substr(0, host.find(':'));
  return EqualsIgnoreCase(host, "localhost") || Address::Parse(host).has_value();
}

Page PageOf(const net::HttpHead& head) noexcept {
  for (const net::HttpField& field : head.all()) {
    if (field.name.size() != 6 || !EqualsIgnoreCase(field.name, "origin")) continue;
    std::string_view origin = field.value;
    for (const std::string_view scheme : {"http://", "https://"}) {
      if (origin.starts_with(scheme)) {
        origin.remove_prefix(scheme.size());
        return EqualsIgnoreCase(origin, head.host) && NamesAddress(origin) ? Page::kOwn
                                                                           : Page::kForeign;
      }
    }
    return Page::kForeign;
  }
  return Page::kNone;
}

}  // namespace tidegate
