// SPDX-License-Identifier: Apache-2.0
#include "admin/auth_audit.hpp"

#include <utility>

#include "admin/audit.hpp"
#include "rules/address.hpp"
#include "rules/printable.hpp"

namespace tidegate {

void AuthFailureSummary::Add(const std::string& listener, const AuthFailure& failure) {
  ++total_;
  ++counts_[{listener, failure.reason}];
  peer_ = failure.peer;
  by_ = failure.by;
}

std::string AuthFailureSummary::Record(const std::string& node) const {
  AuditEntry entry;
  entry.node = node;
  entry.by = Printable(by_);
  entry.from = Address(peer_.bytes).Text();
  entry.action = kAction;
  entry.detail = std::to_string(total_) + (total_ == 1 ? " failure:" : " failures:");
  std::string_view separator = " ";
  for (const auto& [key, count] : counts_) {
    entry.detail.append(separator).append(key.first).append(" ");
    entry.detail.append(AuthFailure::Name(key.second)).append(" ").append(std::to_string(count));
    separator = ", ";
  }
  return entry.Text();
}

AuthAudit::AuthAudit(net::Reactor& reactor, FleetRegister& fleet_register, std::string node)
    : net::Timer(reactor.timers()),
      reactor_(reactor),
      register_(fleet_register),
      node_(std::move(node)) {}

void AuthAudit::Add(const std::string& listener, const AuthFailure& failure) {
  {
    const std::lock_guard lock(mutex_);
    summary_.Add(listener, failure);
    if (std::exchange(posted_, true)) return;
  }
  reactor_.Post([this] { OnTimer(Clock::now()); });
}

void AuthAudit::OnTimer(Clock::time_point now) {
  if (now < next_) return ArmAt(next_);
  AuthFailureSummary summary;
  {
    const std::lock_guard lock(mutex_);
    posted_ = false;
    summary = std::exchange(summary_, {});
  }
  if (summary.empty()) return;
  next_ = now + kInterval;
  // If Redis does not answer, the record is lost; the node's log and metrics still have it.
  register_.NoteFailure(summary.Record(node_), [](const Result<FleetRegister::Change>&) {});
}

}  // namespace tidegate
