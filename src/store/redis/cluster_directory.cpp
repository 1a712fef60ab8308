// SPDX-License-Identifier: Apache-2.0
#include "store/redis/cluster_directory.hpp"

#include <algorithm>
#include <utility>

#include "store/redis/seed.hpp"

namespace tidegate::redis {
namespace {

using Clock = std::chrono::steady_clock;

/// Who has not answered for so long is not waited for: another one is asked.
constexpr std::chrono::milliseconds kPatience{250};

}  // namespace

ClusterDirectory::ClusterDirectory(net::Reactor& reactor, Host& host, ClientStats& stats,
                                   std::vector<Endpoint> seeds)
    : net::Timer(reactor.timers()),
      host_(host),
      stats_(stats),
      seeds_(std::move(seeds)),
      view_(Seed()) {}

void ClusterDirectory::Start() {
  stopped_ = false;
  for (const Endpoint& seed : seeds_) (void)host_.At(seed);
  Arm();
}

void ClusterDirectory::Stop() {
  stopped_ = true;
  Disarm();
}

void ClusterDirectory::Arm() {
  if (stopped_) return;
  const auto due = std::min(view_.due(), patience_ends_);
  if (due == Clock::time_point::max()) return Disarm();
  ArmAt(due);
}

void ClusterDirectory::OnTimer(net::Timer::Clock::time_point now) {
  if (stopped_) return;
  if (now >= patience_ends_) OnNoReply();
  if (now < view_.due()) return Arm();
  if (Node* const node = host_.Any()) return Ask(*node);
  // Nobody of whom was told answers: those of the configuration may. OnNodeWell asks.
  for (const Endpoint& seed : seeds_) (void)host_.At(seed);
}

void ClusterDirectory::OnNodeWell() {
  if (stopped_ || Clock::now() < view_.due()) return;
  if (Node* const node = host_.Any()) Ask(*node);
}

void ClusterDirectory::Ask(Node& node) {
  std::string command;
  AppendCommand(command, {"CLUSTER", "SLOTS"});
  view_.OnAsked(Clock::now());
  stats_.refreshes.Add();
  patience_ends_ = Clock::now() + kPatience;
  node.Run(command, [this, asked = node.endpoint(), mine = ++question_](const Reply* reply) {
    if (mine == question_ && !stopped_) OnReply(reply, asked);
  });
  Arm();
}

void ClusterDirectory::OnNoReply() {
  ++question_;
  patience_ends_ = Clock::time_point::max();
  view_.OnAskFailed(Clock::now());
}

void ClusterDirectory::OnReply(const Reply* reply, const Endpoint& asked) {
  ++question_;
  patience_ends_ = Clock::time_point::max();
  const std::uint64_t before = view_.version();
  if (reply == nullptr || reply->is(Reply::Type::kError)) {
    view_.OnAskFailed(Clock::now());
    if (reply != nullptr) {
      host_.OnDirectoryProblem(asked, KindOf(reply->text),
                               "Redis at " + asked.Shown() +
                                   " cannot be asked for the cluster's slots: it says `" +
                                   std::string(reply->text.substr(0, 200)) + "`");
    }
  } else if (reply->is(Reply::Type::kArray) && reply->elements.empty()) {
    // One that was taken out of the cluster, or is not in it yet: others know more.
    view_.OnAskFailed(Clock::now());
    host_.OnDirectoryProblem(asked, ErrorKind::kOther,
                             "Redis at " + asked.Shown() +
                                 " knows of no slots: it is not, or not yet, part of a cluster");
  } else if (!view_.OnSlots(*reply, asked, Clock::now())) {
    host_.OnDirectoryProblem(
        asked, ErrorKind::kOther,
        "what Redis at " + asked.Shown() + " says of the cluster's slots makes no sense");
  }
  Arm();
  if (view_.version() != before) host_.OnDirectory();
}

void ClusterDirectory::OnMoved(const Redirect& redirect) {
  view_.OnMoved(redirect, Clock::now());
  Arm();
  host_.OnDirectory();
}

void ClusterDirectory::OnTrouble() {
  view_.OnTrouble(Clock::now());
  Arm();
}

}  // namespace tidegate::redis
