// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "net/reactor.hpp"
#include "net/timer.hpp"
#include "store/call.hpp"
#include "store/fingerprint.hpp"
#include "store/redis/batch.hpp"
#include "store/redis/client_stats.hpp"
#include "store/redis/directory.hpp"
#include "store/redis/key_names.hpp"
#include "store/redis/node.hpp"
#include "store/redis/redis_error.hpp"
#include "store/redis/redis_url.hpp"

namespace tidegate::redis {

/// Calls that wait, in the order of their deadlines, which are all as long: the one that came first
/// is the first. They are linked by what they carry themselves.
class WaitingList {
 public:
  [[nodiscard]] Call* first() const noexcept { return first_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// REQUIRES: `record.since` is set. Quick where hardly any that waits came later.
  void Add(Call& call) noexcept {
    Call* before = last_;
    while (before != nullptr && before->record.since > call.record.since) {
      before = before->record.earlier;
    }
    Call*& next = before == nullptr ? first_ : before->record.later;
    call.record.earlier = before;
    call.record.later = next;
    (next == nullptr ? last_ : next->record.earlier) = &call;
    next = &call;
    ++size_;
  }
  void Remove(Call& call) noexcept {
    CallRecord& record = call.record;
    (record.earlier == nullptr ? first_ : record.earlier->record.later) = record.later;
    (record.later == nullptr ? last_ : record.later->record.earlier) = record.earlier;
    --size_;
  }

 private:
  Call* first_ = nullptr;
  Call* last_ = nullptr;
  std::size_t size_ = 0;
};

/// One reactor's client of a single Redis, of the master that sentinels name, or of a cluster.
///
/// A `Directory` knows which node serves a slot, a `Node` sends batches to it. The client gives
/// each call to its node, follows redirections and watches deadlines: every call submitted is
/// handed back exactly once, answered or failed, by its deadline.
class Client final : private Directory::Host, private net::Timer {
 public:
  using Clock = std::chrono::steady_clock;

  class Listener {
   public:
    /// `sent`: when the batch was sent; Redis read the keys later. `subscribed`: refunds and resets
    /// that come after this are reported by OnInvalidated.
    virtual void OnAnswered(Call& /*call*/, Clock::time_point /*sent*/, bool /*subscribed*/) {}
    virtual void OnFailed(Call& /*call*/, Reason /*reason*/) {}
    /// Nothing was executed, and the call must be divided: call Divide again, then Resume.
    virtual void OnSplit(Call& /*call*/) {}
    /// Units of a key were given back.
    virtual void OnInvalidated(std::string_view /*key*/) {}
    /// A connection was made or lost: some invalidations may have been missed.
    virtual void OnConnections() {}
    /// Something that people should know; repeated while it lasts. `where`: the node.
    enum class Notice : std::uint8_t { kUp, kDown, kError, kHealed, kFailedWrites };
    virtual void OnNotice(Notice notice, ErrorKind kind, const std::string& where,
                          const std::string& text) = 0;

   protected:
    ~Listener() = default;
  };
  struct Options {
    RedisUrl url;
    std::string prefix = "tg:";
    std::chrono::microseconds deadline = std::chrono::milliseconds{20};
    std::chrono::microseconds connect_timeout = std::chrono::milliseconds{250};
    std::size_t most_waiting = 20'000;
    std::string name = "tidegate";
    std::shared_ptr<const net::TlsClient> tls = nullptr;  ///< Where the url asks for TLS.
    std::string server_name = {};  ///< What certificates must be for; empty: the host of each.
    std::string sentinel_user = {};
    std::string sentinel_password = {};
  };

  Client(net::Reactor& reactor, const Options& options, const Fingerprinter& fingerprinter,
         Listener& listener);

  /// Connects, and keeps connecting. On the reactor's thread, as everything here.
  void Start();
  /// Fails all waiting calls and closes the connections, for good.
  void Stop();

  /// How a call is divided: the charges of one part are decided together.
  struct Parts {
    std::size_t count = 0;
    std::array<std::uint8_t, kMaxCharges> part;  ///< By charge.
    std::array<Slot, kMaxCharges> slot;          ///< By part.
  };
  /// Fills `parts`, and the call's slot if there is one part. REQUIRES: divides(), a checked call.
  void Divide(Call& call, Parts& parts);
  /// Whether calls may have to be divided at all.
  [[nodiscard]] bool divides() const noexcept { return slotted_; }

  /// REQUIRES: a checked call whose `record.request` and `record.slot` are set, of one part.
  void Submit(Call& call);
  /// As Submit, for a call that has waited since `record.since`.
  void Resume(Call& call);
  /// Runs a command on keys of that slot beside the batches; `done` gets the reply, or nothing.
  void Run(Slot slot, std::string_view command, Node::Done done);

  /// Returns true if a command on keys of that slot would be sent now: the node is connected, and
  /// its breaker lets calls through.
  [[nodiscard]] bool MayRun(Slot slot) {
    Node* const node = NodeFor(slot);
    return node != nullptr && node->MaySendCommand();
  }
  /// Returns true if the node that serves the slot is connected.
  [[nodiscard]] bool ready(Slot slot);
  /// Returns true if all nodes that serve a slot are connected.
  [[nodiscard]] bool ready();
  [[nodiscard]] const KeyNames& names() const noexcept { return names_; }
  /// Calls that are not answered yet.
  [[nodiscard]] std::size_t waiting() const noexcept { return fresh_.size() + resumed_.size(); }
  [[nodiscard]] std::size_t most_waiting() const noexcept { return options_.most_waiting; }
  [[nodiscard]] const ClientStats& stats() const noexcept { return stats_; }
  /// The last problem of a connection; empty: none since one was made.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  [[nodiscard]] Clock::time_point problem_at() const noexcept { return problem_at_; }

 private:
  struct Delayed {
    Clock::time_point until;
    std::unique_ptr<Batch> batch;
  };
  // Called by nodes.
  friend class Node;
  /// `sent`: when the batch was sent. `subscribed`: the node publishes refunds to us.
  void OnAnswered(Call& call, Clock::time_point sent, bool subscribed) {
    Leave(call);
    listener_.OnAnswered(call, sent, subscribed);
  }
  void OnFailed(Call& call, Reason reason) {
    Leave(call);
    listener_.OnFailed(call, reason);
  }
  /// Redis executed nothing of the batch and says that another node would, or that its slot is not
  /// available now (`kind`).
  void OnElsewhere(Node& node, std::unique_ptr<Batch> batch, ErrorKind kind,
                   std::string_view error);
  void OnNodeUp(Node& node);
  void OnNodeDown(Node& node, ErrorKind kind, const std::string& problem);
  /// Its breaker has opened or closed.
  void OnBreaker(Node& node);
  // Directory::Host
  Node& At(const Endpoint& endpoint) override;
  [[nodiscard]] Node* Any() override;
  [[nodiscard]] bool Troubled() override;
  void OnDirectory() override;
  void OnDirectoryProblem(const Endpoint& server, ErrorKind kind,
                          const std::string& problem) override;
  void OnTimer(net::Timer::Clock::time_point now) override;

  [[nodiscard]] std::unique_ptr<Directory> NewDirectory();
  [[nodiscard]] Link::Options LinkOptions() const;
  [[nodiscard]] Link::Options SentinelOptions() const;
  /// Returns nullptr if the node is not known.
  [[nodiscard]] Node* NodeFor(Slot slot);
  void Enter(Call& call, Clock::time_point now);
  [[nodiscard]] WaitingList& ListOf(const Call& call) noexcept {
    return call.record.resumed ? resumed_ : fresh_;
  }
  void Leave(Call& call) noexcept {
    ListOf(call).Remove(call);
    stats_.waiting.Set(waiting());
  }
  /// Sends the calls that came before the topology was known, or fails them.
  void EndDiscovery();
  /// Follows MOVED and ASK.
  void SendOn(Node& node, std::unique_ptr<Batch> batch, std::string_view error);
  void Split(std::unique_ptr<Batch> batch);
  /// Sends the batch again in some milliseconds; it fails the second time.
  void Delay(std::unique_ptr<Batch> batch);
  void SendDelayed(Clock::time_point now);
  /// REQUIRES: Redis did not execute the batch.
  void Fail(std::unique_ptr<Batch> batch, Reason reason);
  /// Fails a call that was not sent and does not wait.
  void FailUnsent(Call& call, Reason reason) {
    call.not_executed = true;
    listener_.OnFailed(call, reason);
  }
  void FailOverdue(WaitingList& list, Clock::time_point now);
  void Retire(Clock::time_point now);
  void Bury(std::unique_ptr<Node> node) {
    node->Stop();
    reactor_.Bury(node.release());  // One of its methods may be running.
  }
  void Arm();
  void NoteState();
  void NoteProblem(const std::string& problem) {
    problem_ = problem;
    problem_at_ = Clock::now();
  }

  net::Reactor& reactor_;
  const Options options_;
  Listener& listener_;
  const KeyNames names_;
  const std::string channel_;
  ClientStats stats_;
  BatchPool batches_;
  const bool slotted_;
  std::unique_ptr<Directory> directory_;
  std::map<Endpoint, std::unique_ptr<Node>> nodes_;
  std::vector<Node*> by_slot_;  ///< nullptr: look it up.
  std::uint64_t version_ = 0;   ///< The version of the directory that by_slot_ was filled from.
  MigratingSlots migrating_;
  std::vector<Delayed> delayed_;
  std::vector<Call*> pending_discovery_;
  bool discovering_ = true;  ///< Since the start no topology is known, and nothing went wrong.
  WaitingList fresh_;
  WaitingList resumed_;
  Clock::time_point retire_at_ = Clock::time_point::max();
  std::string problem_;
  Clock::time_point problem_at_{};
  Random random_;
  bool stopped_ = true;
};

}  // namespace tidegate::redis
