// SPDX-License-Identifier: Apache-2.0
// The nodes and the directory of a client: how they are added and removed, and their reports.
#include <algorithm>
#include <utility>

#include "store/redis/client.hpp"
#include "store/redis/scripts.hpp"

namespace tidegate::redis {
namespace {

/// A node of a cluster that owns nothing any more is kept for so long: slots come and go.
constexpr std::chrono::seconds kUnused{10};

}  // namespace

Link::Options Client::LinkOptions() const {
  return {.tls = options_.tls,
          .server_name = options_.server_name,
          .greeting = {.user = options_.url.user,
                       .password = options_.url.password,
                       .name = options_.name,
                       .database = options_.url.database,
                       .channel = channel_,
                       .script = ApplyScript(),
                       .master_only = options_.url.mode == RedisUrl::Mode::kSentinel},
          .connect_timeout = options_.connect_timeout};
}

Link::Options Client::SentinelOptions() const {
  return {.what = "the sentinel",
          .tls = options_.tls,
          .server_name = options_.server_name,
          .greeting = {.user = options_.sentinel_user,
                       .password = options_.sentinel_password,
                       .name = options_.name,
                       .channel = "+switch-master",
                       .also = "+promoted-slave",
                       .what = "the sentinel",
                       .where_password = "store.sentinel"},
          .connect_timeout = options_.connect_timeout};
}

std::unique_ptr<Directory> Client::NewDirectory() {
  const RedisUrl& url = options_.url;
  Directory::Host& host = *this;
  switch (url.mode) {
    case RedisUrl::Mode::kSentinel:
      return NewSentinelDirectory(reactor_, host, stats_, SentinelOptions(), url.hosts, url.master);
    case RedisUrl::Mode::kCluster: return NewClusterDirectory(reactor_, host, stats_, url.hosts);
    case RedisUrl::Mode::kSingle: break;
  }
  return std::make_unique<SingleDirectory>(host, url.hosts.front());
}

Node& Client::At(const Endpoint& endpoint) {
  auto& node = nodes_[endpoint];
  if (node != nullptr) return *node;
  if (slotted_ && retire_at_ == Clock::time_point::max()) {
    retire_at_ = Clock::now() + kUnused;
    Arm();
  }
  Link::Options link = LinkOptions();
  link.endpoint = endpoint;
  node = std::make_unique<Node>(*this, link);
  Node& added = *node;
  if (!stopped_) added.Start();
  return added;
}

Node* Client::Any() {
  // One that does not answer would only take time, unless there is no other.
  for (const bool well : {true, false}) {
    std::vector<Node*> up;
    for (auto& [endpoint, node] : nodes_) {
      const bool closed = node->breaker() == Breaker::State::kClosed;
      if (node->up() && closed == well) up.push_back(node.get());
    }
    if (!up.empty()) return up[random_.Next() % up.size()];
  }
  return nullptr;
}

bool Client::Troubled() {
  return std::ranges::any_of(directory_->Owners(), [this](const Endpoint& owner) {
    const auto found = nodes_.find(owner);
    return found == nodes_.end() || !found->second->up() ||
           found->second->breaker() != Breaker::State::kClosed;
  });
}

void Client::OnDirectory() {
  if (stopped_) return;
  stats_.switches.Add();
  const std::vector<Endpoint> owners = directory_->Owners();
  for (const Endpoint& owner : owners) (void)At(owner);
  if (slotted_) {
    // Those that own nothing any more.
    if (retire_at_ == Clock::time_point::max()) retire_at_ = Clock::now() + kUnused;
    Arm();
  } else if (!owners.empty()) {
    // One master only: what was not sent to the one before is for the new one.
    Node& master = *nodes_[owners.front()];
    auto former = std::exchange(nodes_, {});
    nodes_[owners.front()] = std::move(former[owners.front()]);
    former.erase(owners.front());
    for (auto& [endpoint, node] : former) {
      node->StopFor(master);
      Bury(std::move(node));
    }
    if (!former.empty()) listener_.OnConnections();
  }
  NoteState();
  if (discovering_ && !owners.empty()) EndDiscovery();
}

void Client::Retire(Clock::time_point now) {
  retire_at_ = Clock::time_point::max();
  const std::vector<Endpoint> owners = directory_->Owners();
  // While no owner is known, any node may know one.
  if (owners.empty()) return;
  for (auto at = nodes_.begin(); at != nodes_.end();) {
    if (std::ranges::find(owners, at->first) != owners.end()) {
      ++at;
      continue;
    }
    if (!at->second->idle() || now - at->second->used_at() < kUnused) {
      retire_at_ = now + kUnused;
      ++at;
      continue;
    }
    Bury(std::move(at->second));
    at = nodes_.erase(at);
    std::ranges::fill(by_slot_, nullptr);
  }
  NoteState();
}

void Client::OnNodeUp(Node& node) {
  problem_.clear();
  NoteState();
  listener_.OnConnections();
  listener_.OnNotice(Listener::Notice::kUp, ErrorKind::kOther, node.endpoint().Shown(), {});
  directory_->OnNodeWell();
}

void Client::OnNodeDown(Node& node, ErrorKind kind, const std::string& problem) {
  NoteProblem(problem);
  NoteState();
  listener_.OnConnections();
  listener_.OnNotice(Listener::Notice::kDown, kind, node.endpoint().Shown(), problem);
  directory_->OnTrouble();
  if (discovering_) EndDiscovery();
}

void Client::OnBreaker(Node& node) {
  NoteState();
  // It may not be the one to ask any more.
  if (node.breaker() == Breaker::State::kOpen) directory_->OnTrouble();
  if (node.breaker() == Breaker::State::kClosed) directory_->OnNodeWell();
}

void Client::OnDirectoryProblem(const Endpoint& server, ErrorKind kind,
                                const std::string& problem) {
  NoteProblem(problem);
  listener_.OnNotice(Listener::Notice::kDown, kind, server.Shown(), problem);
  if (discovering_) EndDiscovery();
}

void Client::NoteState() {
  std::uint64_t connected = 0;
  auto worst = Breaker::State::kClosed;
  for (const auto& [endpoint, node] : nodes_) {
    connected += node->up() ? 1 : 0;
    worst = std::max(worst, node->breaker());
  }
  stats_.connected.Set(connected);
  stats_.nodes.Set(nodes_.size());
  stats_.breaker.Set(static_cast<std::uint64_t>(worst));
}

}  // namespace tidegate::redis
