// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>

#include "decision/pipeline.hpp"
#include "identity/request_view.hpp"
#include "net/http1_parser.hpp"
#include "net/reactor.hpp"
#include "net/timer.hpp"

namespace tidegate {

/// Renews the `concurrency` leases of a reactor's requests, and releases them when requests end.
class LeaseKeeper final : private net::Timer, private DecisionListener {
 public:
  LeaseKeeper(net::Reactor& reactor, DecisionPipeline& pipeline)
      : net::Timer(reactor.timers()), pipeline_(pipeline) {}
  ~LeaseKeeper() override;

  /// Takes over the leases among the charges of `decided`. Returns a call that holds these leases,
  /// or nullptr if there are no leases. REQUIRES: the lease ids are unique to the request.
  [[nodiscard]] DecisionCall* Hold(const DecisionCall& decided);
  /// Ends the leases. The caller must not use `held`, which Hold returned, afterwards.
  void Release(DecisionCall& held) {
    Held& state = held.Attached<Held>();
    state.released = true;
    // Wait for a renewal in progress: if the store executed the renewal after the release, the
    // lease would be taken again.
    if (!state.renewing) StartRelease(held);
  }

 private:
  using Renewals = std::multimap<net::Timer::Clock::time_point, DecisionCall*>;
  /// The renewal state of one call that holds leases. It is attached to that call.
  struct Held {
    Renewals::iterator due;
    bool renewing = false;  ///< A renewal is in progress.
    bool released = false;  ///< Release was called; a renewal in progress is awaited first.
  };

  void OnTimer(net::Timer::Clock::time_point now) override;
  void OnDecided(DecisionCall& call) noexcept override {
    Held& state = call.Attached<Held>();
    state.renewing = false;
    if (state.released) StartRelease(call);
  }
  void Renew(DecisionCall& held);
  void StartRelease(DecisionCall& held) {
    renewals_.erase(held.Attached<Held>().due);
    ArmNext();
    held.kind = Call::Kind::kRelease;
    held.Start(nullptr);
  }
  /// Schedules the next renewal.
  [[nodiscard]] Renewals::iterator Schedule(DecisionCall& held);
  void ArmNext() {
    if (renewals_.empty()) {
      Disarm();
    } else {
      ArmAt(renewals_.begin()->first);
    }
  }

  DecisionPipeline& pipeline_;
  Renewals renewals_;
};

/// The quotas of one request: the decision, the leases held until its end, and the costs that rules
/// take from the response. Serves one request after another, each from Begin to Settle.
class QuotaAccounting {
 public:
  QuotaAccounting(DecisionPipeline& pipeline, LeaseKeeper& leases) noexcept
      : pipeline_(pipeline), leases_(leases) {}
  ~QuotaAccounting();
  QuotaAccounting(const QuotaAccounting&) = delete;
  QuotaAccounting& operator=(const QuotaAccounting&) = delete;

  /// Begins a request with a new call and the current snapshot. `id` names leases and refunds: it
  /// must be unique to the request, so that a release never ends the lease of another request.
  void Begin(std::string_view id);
  /// REQUIRES: between Begin and Settle.
  [[nodiscard]] const Snapshot& snapshot() const noexcept { return call_->snapshot(); }
  /// Finds the charges of the request.
  [[nodiscard]] Result<void> Match(const RequestView& request);
  /// Starts the decision in the store. `listener` is called when the store has answered, perhaps
  /// before Decide returns.
  void Decide(DecisionListener& listener) { call_->Start(&listener); }

  /// Returns the decision; an empty answer before OnDecided, and if the store failed.
  [[nodiscard]] Answer Decided() const noexcept {
    if (state_ != State::kDecided || call_->error) return {};
    return call_->answer();
  }
  /// Returns the decision as Decided does, without the parts that a client must not see. `trusted`:
  /// the client is a trusted proxy.
  [[nodiscard]] Answer ShownTo(bool trusted);
  /// Call when the store has answered. Returns the status of the decision: 200 if the request is
  /// admitted, 0 if the store failed (error()). Holds the leases of an admitted request, even if a
  /// failure policy decided: the store may have granted the leases although no reply arrived.
  [[nodiscard]] int OnDecided();
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return call_->error; }

  /// Notes the costs in the head or in the trailers of the response.
  void NoteCosts(std::span<const net::HttpField> fields);
  /// Forgets the costs of a response that the client will not get.
  void ForgetCosts() noexcept { costs_ = {}; }
  /// Returns true if a rule takes its cost from the response, but has found none so far.
  [[nodiscard]] bool OwesCost() const noexcept;

  /// Ends the request: debits and refunds the costs, releases the leases and drops the call.
  void Settle();

 private:
  enum class State : std::uint8_t { kIdle, kUndecided, kDecided };

  void Adjust(std::size_t charge, Call::Kind kind, std::int64_t cost);

  DecisionPipeline& pipeline_;
  LeaseKeeper& leases_;
  State state_ = State::kIdle;
  DecisionCall* call_ = nullptr;   ///< Set unless the state is kIdle.
  DecisionCall* held_ = nullptr;   ///< The leases, held by the LeaseKeeper; nullptr: none.
  std::span<std::int64_t> costs_;  ///< Costs from the response, by charge; -1: none yet.
  std::string_view id_;
};

}  // namespace tidegate
