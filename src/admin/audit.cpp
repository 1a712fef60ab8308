// SPDX-License-Identifier: Apache-2.0
#include "admin/audit.hpp"

#include "admin/admin_call.hpp"
#include "base/message_text.hpp"
#include "identity/address.hpp"
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
  return {.node = node,
          .by = by,
          .from = Address(exchange.peer().bytes).Text(),
          .action = std::string(action)};
}

boost::json::object AuditEntry::Json() const {
  boost::json::object object;
  for (const auto& [name, member] : kMembers) object[name] = this->*member;
  return object;
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
  Log::Info("an operator made a change", {{"action", action},
                                          {"rule", rule},
                                          {"key", key},
                                          {"detail", detail},
                                          {"by", by},
                                          {"from", from},
                                          {"applied", applied ? "true" : "false"}});
}

void AuditEntry::LogFailed(const std::string& why, std::string_view outcome) const {
  Log::Warning("a change by an operator failed", {{"action", action},
                                                  {"rule", rule},
                                                  {"key", key},
                                                  {"by", by},
                                                  {"from", from},
                                                  {"outcome", std::string(outcome)},
                                                  {"why", why}});
}

void AuthAudit::Add(const std::string& listener, const AuthFailure& failure) {
  {
    const std::lock_guard lock(mutex_);
    ++summary_.total;
    ++summary_.counts[{listener, failure.reason}];
    summary_.peer = failure.peer;
    summary_.by = failure.by;
    if (std::exchange(posted_, true)) return;
  }
  reactor_.Post([this] { OnTimer(Clock::now()); });
}

void AuthAudit::OnTimer(Clock::time_point now) {
  if (now < next_) return ArmAt(next_);
  Summary summary;
  {
    const std::lock_guard lock(mutex_);
    posted_ = false;
    summary = std::exchange(summary_, {});
  }
  if (summary.total == 0) return;
  next_ = now + kInterval;
  // If Redis does not answer, the record is lost; the node's log and metrics still have it.
  register_.NoteFailure(RecordOf(summary), [](const Result<SharedOverrides::Change>&) {});
}

std::string AuthAudit::RecordOf(const Summary& summary) const {
  AuditEntry entry;
  entry.node = node_;
  entry.by = Printable(summary.by);
  entry.from = Address(summary.peer.bytes).Text();
  entry.action = "auth_failed";
  entry.detail = std::to_string(summary.total) + (summary.total == 1 ? " failure:" : " failures:");
  std::string_view separator = " ";
  for (const auto& [key, count] : summary.counts) {
    entry.detail.append(separator).append(key.first).append(" ");
    entry.detail.append(AuthFailure::Name(key.second)).append(" ").append(std::to_string(count));
    separator = ", ";
  }
  return entry.Text();
}

}  // namespace tidegate
