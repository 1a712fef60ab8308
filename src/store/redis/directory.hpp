// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/redis/endpoint.hpp"
#include "store/redis/node.hpp"
#include "store/redis/redis_error.hpp"

namespace tidegate::redis {

/// Slots whose keys are moving from one node to another. Both nodes refuse a call with several keys
/// of such a slot (TRYAGAIN), so each key is sent alone for a while. No clock of its own.
class MigratingSlots {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// After the last refusal.
  static constexpr std::chrono::milliseconds kFor{500};

  void Note(Slot slot, TimePoint now) {
    if (until_.size() >= kMany) {
      std::erase_if(until_, [now](const auto& each) { return each.second <= now; });
    }
    until_[slot] = now + kFor;
  }
  [[nodiscard]] bool Has(Slot slot, TimePoint now) {
    const auto found = until_.find(slot);
    if (found == until_.end()) return false;
    if (found->second > now) return true;
    until_.erase(found);
    return false;
  }
  [[nodiscard]] bool empty() const noexcept { return until_.empty(); }

 private:
  static constexpr std::size_t kMany = 256;
  std::unordered_map<Slot, TimePoint> until_;
};

/// Knows which node serves which slot, and asks for the topology by itself. Used by one reactor.
class Directory {
 public:
  class Host {
   public:
    /// Returns the node, made and connected if there is none yet.
    virtual Node& At(const Endpoint& endpoint) = 0;
    /// Returns a random connected node, or nullptr.
    [[nodiscard]] virtual Node* Any() = 0;
    /// Returns true if a node that serves a slot does not answer.
    [[nodiscard]] virtual bool Troubled() = 0;
    /// Called when slots have other owners.
    virtual void OnDirectory() = 0;
    /// Reports why `server` does not tell the topology, for people.
    virtual void OnDirectoryProblem(const Endpoint& server, ErrorKind kind,
                                    const std::string& problem) = 0;

   protected:
    ~Host() = default;
  };
  virtual ~Directory() = default;

  virtual void Start() {}
  virtual void Stop() {}
  /// Grows with every change.
  [[nodiscard]] virtual std::uint64_t version() const noexcept = 0;
  /// Returns nullptr if the owner is not known.
  [[nodiscard]] virtual const Endpoint* OwnerOf(Slot slot) const noexcept = 0;
  /// Returns all owners of slots.
  [[nodiscard]] virtual std::vector<Endpoint> Owners() const = 0;

  virtual void OnMoved(const Redirect& /*redirect*/) {}
  /// A node is gone, is not a master, or does not serve its slots: ask for the topology soon.
  virtual void OnTrouble() {}
  /// A node is connected, or answers again.
  virtual void OnNodeWell() {}
};

/// One Redis, and always the same.
class SingleDirectory final : public Directory {
 public:
  SingleDirectory(Host& host, Endpoint only) : host_(host), only_(std::move(only)) {}
  void Start() override { host_.OnDirectory(); }
  [[nodiscard]] std::uint64_t version() const noexcept override { return 1; }
  [[nodiscard]] const Endpoint* OwnerOf(Slot) const noexcept override { return &only_; }
  [[nodiscard]] std::vector<Endpoint> Owners() const override { return {only_}; }

 private:
  Host& host_;
  Endpoint only_;
};

/// The one master that the sentinels name. `link`: how to connect to a sentinel.
[[nodiscard]] std::unique_ptr<Directory> NewSentinelDirectory(
    net::Reactor& reactor, Directory::Host& host, ClientStats& stats, Link::Options link,
    std::vector<Endpoint> sentinels, const std::string& master_name);
/// A cluster. `seeds`: the nodes of the configuration.
[[nodiscard]] std::unique_ptr<Directory> NewClusterDirectory(net::Reactor& reactor,
                                                             Directory::Host& host,
                                                             ClientStats& stats,
                                                             std::vector<Endpoint> seeds);

}  // namespace tidegate::redis
