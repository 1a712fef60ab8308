// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/random.hpp"
#include "net/timer.hpp"
#include "store/redis/cluster_view.hpp"
#include "store/redis/directory.hpp"

namespace tidegate::redis {
namespace {

/// A cluster, whose topology any connected node reports.
class ClusterDirectory final : public Directory, private net::Timer {
 public:
  ClusterDirectory(net::Reactor& reactor, Host& host, ClientStats& stats,
                   std::vector<Endpoint> seeds)
      : net::Timer(reactor.timers()),
        host_(host),
        stats_(stats),
        seeds_(std::move(seeds)),
        view_(RandomSeed()) {}

  void Start() override {
    stopped_ = false;
    for (const Endpoint& seed : seeds_) (void)host_.At(seed);
    Arm();
  }
  void Stop() override {
    stopped_ = true;
    Disarm();
  }
  [[nodiscard]] std::uint64_t version() const noexcept override { return view_.version(); }
  [[nodiscard]] const Endpoint* OwnerOf(Slot slot) const noexcept override {
    return view_.OwnerOf(slot);
  }
  [[nodiscard]] std::vector<Endpoint> Owners() const override { return view_.Masters(); }
  void OnMoved(const Redirect& redirect) override {
    const std::uint64_t before = view_.version();
    view_.OnMoved(redirect, Clock::now());
    Arm();
    if (view_.version() != before) host_.OnDirectory();
  }
  void OnTrouble() override {
    view_.OnTrouble(Clock::now());
    Arm();
  }
  void OnNodeWell() override {
    if (stopped_ || Clock::now() < view_.due()) return;
    if (Node* const node = host_.Any()) Ask(*node);
  }

 private:
  /// A node that has not answered for so long is not waited for: try another one.
  static constexpr std::chrono::milliseconds kPatience{250};

  void OnTimer(Clock::time_point now) override;
  void Ask(Node& node);
  void OnReply(const Reply* reply, const Endpoint& node);
  /// The request is over, with a reply or without.
  void EndRequest() {
    ++request_;
    patience_ends_ = Clock::time_point::max();
  }
  void Arm() {
    if (stopped_) return;
    const auto due = std::min(view_.due(), patience_ends_);
    if (due == Clock::time_point::max()) return Disarm();
    ArmAt(due);
  }

  Host& host_;
  ClientStats& stats_;
  const std::vector<Endpoint> seeds_;
  ClusterView view_;
  std::uint64_t request_ = 0;  ///< The number of the last one: late replies have a lower one.
  Clock::time_point patience_ends_ = Clock::time_point::max();
  bool stopped_ = true;
};

void ClusterDirectory::OnTimer(Clock::time_point now) {
  if (stopped_) return;
  if (now >= patience_ends_) {
    EndRequest();
    view_.OnAskFailed(Clock::now());
  }
  if (now < view_.due()) return Arm();
  if (Node* const node = host_.Any()) return Ask(*node);
  // No known node is connected: those of the configuration may be. OnNodeWell asks.
  for (const Endpoint& seed : seeds_) (void)host_.At(seed);
}

void ClusterDirectory::Ask(Node& node) {
  std::string command;
  AppendCommand(command, {"CLUSTER", "SLOTS"});
  view_.OnAsked(Clock::now());
  stats_.refreshes.Add();
  patience_ends_ = Clock::now() + kPatience;
  node.Run(command, [this, endpoint = node.endpoint(), number = ++request_](const Reply* reply) {
    if (number == request_ && !stopped_) OnReply(reply, endpoint);
  });
  Arm();
}

void ClusterDirectory::OnReply(const Reply* reply, const Endpoint& node) {
  EndRequest();
  const std::uint64_t before = view_.version();
  const std::string where = "Redis at " + node.Shown();
  if (reply == nullptr || reply->is(Reply::Type::kError)) {
    view_.OnAskFailed(Clock::now());
    if (reply != nullptr) {
      host_.OnDirectoryProblem(node, KindOf(reply->text),
                               where + " rejected CLUSTER SLOTS (reply: `" +
                                   std::string(reply->text.substr(0, 200)) + "`)");
    }
  } else if (reply->is(Reply::Type::kArray) && reply->elements.empty()) {
    // It was taken out of the cluster, or is not in it yet: other nodes know more.
    view_.OnAskFailed(Clock::now());
    host_.OnDirectoryProblem(
        node, ErrorKind::kOther,
        where + " reports no slots: this node is not, or not yet, part of a cluster");
  } else if (!view_.OnSlots(*reply, node, Clock::now())) {
    host_.OnDirectoryProblem(node, ErrorKind::kOther,
                             where + " sent a malformed reply to CLUSTER SLOTS");
  }
  if (view_.version() != before) host_.OnDirectory();
  // A replacement of the node in trouble is found as soon as the cluster knows.
  if (host_.Troubled()) view_.OnTrouble(Clock::now());
  Arm();
}

}  // namespace

std::unique_ptr<Directory> NewClusterDirectory(net::Reactor& reactor, Directory::Host& host,
                                               ClientStats& stats, std::vector<Endpoint> seeds) {
  return std::make_unique<ClusterDirectory>(reactor, host, stats, std::move(seeds));
}

}  // namespace tidegate::redis
