// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <boost/json.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/report_json.hpp"
#include "base/problem.hpp"
#include "decision/pipeline.hpp"
#include "frontends/question.hpp"
#include "limiter/redis_metrics.hpp"
#include "net/http_exchange.hpp"
#include "store/shared_overrides.hpp"
#include "store/store.hpp"

namespace tidegate {

/// The actions of operators. Each has a counter.
enum class AdminAction : std::uint8_t {
  kReset,
  kGrant,
  kRefund,
  kBan,
  kAllow,
  kOverride,
  kLift,
  kReload,
};
inline constexpr std::size_t kAdminActions = 8;
[[nodiscard]] std::string_view Name(AdminAction action) noexcept;

/// The number of actions since the start, by AdminAction. One thread counts; any thread may read.
using AdminCounters = std::array<std::atomic<std::uint64_t>, kAdminActions>;

/// The outcome of a reload.
struct ReloadReport {
  enum class Outcome : std::uint8_t {
    kApplied,
    kRefused,   ///< The new configuration has errors: the old one stays in force.
    kNoFile,    ///< The configuration in force was not read from a file.
    kStopping,  ///< The server is shutting down.
  };

  Outcome outcome = Outcome::kNoFile;
  std::size_t rules = 0;  ///< Number of rules in force from now on.
  std::vector<std::string> needs_restart = {};
  Problems problems = {};
};

/// Reloads the configuration for the operator `by` and reports the outcome later, on any thread.
using Reloader =
    std::function<void(const std::string& by, std::function<void(const ReloadReport&)>)>;

/// The state that all requests of the admin API share. Must be used on the first reactor's thread.
struct AdminContext {
  DecisionPipeline& pipeline;
  SharedOverrides& shared_overrides;
  std::string node;  ///< This node's name in the fleet.
  Store& store;      ///< The memory store: the only store, or that of `local` policies.
  redis::Client* redis_client =
      nullptr;                  ///< The first reactor's client; nullptr: the memory store decides.
  std::string key_prefix = {};  ///< The prefix of all keys in Redis.
  /// True if this node knows the fleet's HMAC key. Without the key no identity can be hashed.
  bool has_fleet_key = true;
  /// Handles reload requests. Empty: there is no configuration file to reload.
  Reloader reload = {};
  AdminCounters counters{};

  [[nodiscard]] const Snapshot& snapshot() const noexcept { return *pipeline.snapshot(); }
  /// Returns the name of a charge's key in Redis; empty if the key is not in Redis.
  [[nodiscard]] std::string StoredAs(const Charge& charge) const;
  /// Reads the state that the store holds for a charge's key, and calls `done` now or later.
  void ReadStored(const Charge& charge, std::function<void(Result<StoredState>)> done);
  /// Returns the last problem with the store as readable text; empty if the store works.
  [[nodiscard]] std::string StoreProblem() const {
    return redis_client == nullptr ? std::string() : redis_client->problem();
  }
  void Count(AdminAction action) noexcept {
    auto& counter = counters[static_cast<std::size_t>(action)];
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

/// The member `outcome` of a problem document: whether a failed change may have been applied.
enum class ChangeOutcome : std::uint8_t {
  kNotApplied,  ///< Certainly not carried out: it was not sent to the store, or was refused.
  kUnknown,     ///< It was sent, and the store did not answer.
};

[[nodiscard]] std::string_view Name(ChangeOutcome outcome) noexcept;  ///< The value of `outcome`.

/// Answers with a problem document to which `members` are appended.
void AnswerProblemWith(net::HttpExchange& exchange, int status, std::string_view detail,
                       const boost::json::object& members);

/// One request of an operator. Owns itself: Answer and Fail end the exchange and delete it.
class AdminCall : protected DecisionListener {
 public:
  AdminCall(AdminContext& context, net::HttpExchange& exchange);
  virtual ~AdminCall() { call_.Drop(); }
  AdminCall(const AdminCall&) = delete;
  AdminCall& operator=(const AdminCall&) = delete;

 protected:
  /// Adds the charge of the key that an operator names by `rule` and `identity`, or by `rule` and
  /// `key` (the key as reports show it). The charge has the quota in force.
  [[nodiscard]] std::optional<Objection> ResolveKey(const Question& question, Charges& charges);
  void Answer(const boost::json::object& body);
  /// `outcome` is set if a change failed. `why` is copied: it may belong to this object.
  void Fail(int status, std::string why, std::optional<ChangeOutcome> outcome = std::nullopt);
  [[nodiscard]] const Snapshot& snapshot() const noexcept { return call_.snapshot(); }

  AdminContext& context_;
  net::HttpExchange& exchange_;
  DecisionCall& call_;
  const std::shared_ptr<const OverrideTable> overrides_;  ///< The table when the request began.
};

/// Begins the request that `question` describes, or answers with the objection of Prepare. T is an
/// AdminCall with Prepare(question), which returns an optional Objection, and Begin().
template <class T, class Body, class... Args>
void BeginAdminCall(AdminContext& context, net::HttpExchange& exchange, Body& question,
                    Args&&... args) {
  auto call = std::make_unique<T>(context, exchange, std::forward<Args>(args)...);
  if (const auto bad = call->Prepare(question)) {
    call.reset();
    return net::AnswerProblem(exchange, bad->status, bad->message, bad->pointer);
  }
  call.release()->Begin();
}

/// Answers with 200 and JSON that must not be cached.
void AnswerJson(net::HttpExchange& exchange, std::string_view body);
void AnswerJson(net::HttpExchange& exchange, const boost::json::object& body);

// The POST operations of the admin API. Each answers the exchange, now or later.

/// Answers which decision a request would get, and why: the entries and rules that were considered,
/// their outcome, and the state in the store before and after. Charges nothing.
void Explain(AdminContext& context, net::HttpExchange& exchange, Question& question);

/// Answers with the state that the store holds for one key, and the decision of a peek.
void InspectKey(AdminContext& context, net::HttpExchange& exchange, const Question& question);

/// Changes a key in the store, or its override in the fleet's register. No failure policy applies:
/// the answer says that the change was made, was not made, or may have been made. Every change is
/// recorded in the audit log.
void ChangeKey(AdminContext& context, net::HttpExchange& exchange, const Question& question,
               AdminAction action, const std::string& by);

/// Reloads the configuration for the operator `by`, and records the reload. Answers the exchange
/// when the new configuration is in force on every reactor, or was rejected.
void ReloadFor(AdminContext& context, net::HttpExchange& exchange, const std::string& by);

}  // namespace tidegate
