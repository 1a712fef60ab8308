// SPDX-License-Identifier: Apache-2.0
#include "admin/audit.hpp"

#include <utility>

#include "admin/admin_call.hpp"
#include "rules/address.hpp"
#include "telemetry/log.hpp"

namespace tidegate {
namespace {

constexpr std::pair<const char*, std::string AuditEntry::*> kMembers[] = {
    {"node", &AuditEntry::node},     {"by", &AuditEntry::by},     {"from", &AuditEntry::from},
    {"action", &AuditEntry::action}, {"rule", &AuditEntry::rule}, {"key", &AuditEntry::key},
    {"detail", &AuditEntry::detail}};

}  // namespace

AuditEntry AuditEntry::Of(const std::string& node, const std::string& by,
                          const net::HttpExchange& exchange, std::string_view action) {
  AuditEntry entry;
  entry.node = node;
  entry.by = by;
  entry.from = Address(exchange.peer().bytes).Text();
  entry.action = action;
  return entry;
}

std::string AuditEntry::Text() const {
  boost::json::object object;
  for (const auto& [name, member] : kMembers) object[name] = this->*member;
  return boost::json::serialize(object);
}

std::optional<AuditEntry> AuditEntry::Parse(std::string_view text) {
  boost::system::error_code error;
  const auto root = boost::json::parse({text.data(), text.size()}, error);
  if (error || !root.is_object()) return std::nullopt;
  AuditEntry entry;
  for (const auto& [name, member] : kMembers) {
    const auto* const value = root.get_object().if_contains(name);
    if (value == nullptr || !value->is_string()) return std::nullopt;
    entry.*member = std::string(value->get_string());
  }
  return entry;
}

void AuditEntry::LogDone(bool applied) const {
  Log::Info("operator change", {{"action", action},
                                {"rule", rule},
                                {"key", key},
                                {"detail", detail},
                                {"by", by},
                                {"from", from},
                                {"applied", applied ? "true" : "false"}});
}

void AuditEntry::LogFailed(const std::string& why, std::string_view outcome) const {
  Log::Warning("operator change failed", {{"action", action},
                                          {"rule", rule},
                                          {"key", key},
                                          {"by", by},
                                          {"from", from},
                                          {"outcome", std::string(outcome)},
                                          {"why", why}});
}

}  // namespace tidegate
