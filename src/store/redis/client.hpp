// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/reactor.hpp"
#include "net/timer.hpp"
#include "store/fingerprint.hpp"
#include "store/redis/backoff.hpp"
#include "store/redis/batch_pool.hpp"
#include "store/redis/client_stats.hpp"
#include "store/redis/directory.hpp"
#include "store/redis/key_names.hpp"
#include "store/redis/node.hpp"
#include "store/redis/redis_error.hpp"
#include "store/redis/redis_url.hpp"
#include "store/redis/restless.hpp"
#include "store/redis/waiting_list.hpp"
#include "tidegate/call.hpp"

namespace tidegate::redis {

/// One reactor's way to Redis, whether that is one, one behind sentinels, or a cluster.
///
/// A `Directory` knows who serves a slot, a `Node` carries batches there; this gives each call to
/// its node, sends batches on that a node says belong elsewhere, and watches deadlines: every call
/// submitted is handed back exactly once, answered or failed, by its deadline.
class Client final : private Node::Listener, private Directory::Host, private net::Timer {
 public:
  using Clock = std::chrono::steady_clock;

  class Listener {
   public:
    /// `sent`: when the batch left; whatever Redis told was not true before. `told`: we are told
    /// of refunds and resets that come after this.
    virtual void OnAnswered(Call& call, Clock::time_point sent, bool told) = 0;
    virtual void OnFailed(Call& call, Reason reason) = 0;
    /// Nothing was done of it, and it has to go in parts: ask for them anew, then Resume.
    virtual void OnSplit(Call& call) = 0;
    /// A key was given something back.
    virtual void OnInvalidated(std::string_view key) = 0;
    /// A connection has come or gone: some of those may have been missed.
    virtual void OnConnections() = 0;
    /// Something that people should know; said again and again while it lasts. `where`: whom it
    /// is about.
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
  ~Client() override;

  /// Connects, and keeps connecting. On the reactor's thread, as everything here.
  void Start();
  /// Fails all that wait and closes the connections, for good.
  void Stop();

  /// In which parts a call has to go: charges of the same part are decided together.
  struct Parts {
    std::size_t count = 0;
    std::array<std::uint8_t, kMaxCharges> part;  ///< By charge.
    std::array<Slot, kMaxCharges> slot;          ///< By part.
  };
  /// Fills `parts`, and where it is but one, the call's slot. REQUIRES: divides(), a checked call.
  void Divide(Call& call, Parts& parts);
  /// Whether calls may have to be divided at all.
  [[nodiscard]] bool divides() const noexcept { return slotted_; }

  /// REQUIRES: a checked call whose `record.request` and `record.slot` are set, of one part.
  void Submit(Call& call);
  /// As Submit, for one that has waited since `record.since` already.
  void Resume(Call& call);
  /// Runs a command on keys of that slot beside the batches; `done` gets the reply, or nothing.
  void Run(Slot slot, std::string_view command, Node::Done done);

  /// Returns true if a command on keys of that slot would be sent now: the node is connected, and
  /// its breaker lets calls through.
  [[nodiscard]] bool MayRun(Slot slot);
  /// Connected to whoever serves that slot.
  [[nodiscard]] bool ready(Slot slot);
  /// Connected to all that serve something.
  [[nodiscard]] bool ready();
  [[nodiscard]] const KeyNames& names() const noexcept { return names_; }
  /// Calls that are not answered yet.
  [[nodiscard]] std::size_t waiting() const noexcept { return fresh_.size() + resumed_.size(); }
  /// More than so many are not let in.
  [[nodiscard]] std::size_t most_waiting() const noexcept { return options_.most_waiting; }
  [[nodiscard]] const ClientStats& stats() const noexcept { return stats_; }
  /// What went wrong with a connection last, for people; empty: nothing since one was made.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  [[nodiscard]] Clock::time_point problem_at() const noexcept { return problem_at_; }

 private:
  struct Delayed {
    Clock::time_point until;
    std::unique_ptr<Batch> batch;
  };
  // Node::Listener
  void OnAnswered(Call& call, Clock::time_point sent, bool told) override;
  void OnFailed(Call& call, Reason reason) override;
  void OnElsewhere(Node& node, std::unique_ptr<Batch> batch, ErrorKind kind,
                   std::string_view error) override;
  void OnInvalidated(std::string_view key) override { listener_.OnInvalidated(key); }
  void OnNodeUp(Node& node) override;
  void OnNodeDown(Node& node, ErrorKind kind, const std::string& problem) override;
  void OnRefused(Node& node, ErrorKind kind, const std::string& error) override;
  void OnHealed(Node& node, std::int64_t healed, std::int64_t failed_writes) override;
  void OnBreaker(Node& node) override;
  // Directory::Host
  Node& At(const Endpoint& endpoint) override;
  [[nodiscard]] Node* Any() override;
  [[nodiscard]] bool Troubled() override;
  void OnDirectory() override;
  void OnDirectoryProblem(const Endpoint& asked, ErrorKind kind,
                          const std::string& problem) override;
  void OnTimer(net::Timer::Clock::time_point now) override;

  [[nodiscard]] std::unique_ptr<Directory> NewDirectory();
  [[nodiscard]] Link::Options LinkOptions() const;
  [[nodiscard]] Link::Options SentinelOptions() const;
  /// nullptr: nobody is known to serve it.
  [[nodiscard]] Node* NodeFor(Slot slot);
  void Enter(Call& call, Clock::time_point now);
  [[nodiscard]] WaitingList& ListOf(const Call& call) noexcept {
    return call.record.resumed ? resumed_ : fresh_;
  }
  void Leave(Call& call) noexcept;
  /// Those that came before it was known who serves what: to their nodes, or away.
  void EmptyLobby();
  /// Where MOVED and ASK lead.
  void SendOn(Node& node, std::unique_ptr<Batch> batch, std::string_view error);
  void Split(std::unique_ptr<Batch> batch);
  /// Once; it fails the next time.
  void Delay(std::unique_ptr<Batch> batch);
  void SendDelayed(Clock::time_point now);
  /// REQUIRES: Redis did not execute the batch.
  void Fail(std::unique_ptr<Batch> batch, Reason reason);
  /// Fails a call that was not sent and does not wait.
  void FailUnsent(Call& call, Reason reason);
  void FailOverdue(WaitingList& list, Clock::time_point now);
  void Retire(Clock::time_point now);
  void Bury(std::unique_ptr<Node> node);
  void Arm();
  void NoteState();
  void NoteProblem(const std::string& problem);

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
  std::uint64_t version_ = 0;   ///< Of the directory that by_slot_ is true to.
  RestlessSlots restless_;
  std::vector<Delayed> delayed_;
  std::vector<Call*> lobby_;
  bool lobby_open_ = true;  ///< Since the start nothing has been told yet, and nothing went wrong.
  WaitingList fresh_;
  WaitingList resumed_;
  Clock::time_point retire_at_ = Clock::time_point::max();
  std::string problem_;
  Clock::time_point problem_at_{};
  Backoff chance_;  ///< For random numbers only.
  bool stopped_ = true;
};

}  // namespace tidegate::redis
