// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "store/redis/endpoint.hpp"
#include "store/redis/node.hpp"
#include "store/redis/redirect.hpp"
#include "store/redis/slot.hpp"

namespace tidegate::redis {

/// Which node serves which slot. Of one reactor; where it asks somebody, it does so by itself.
class Directory {
 public:
  class Host {
   public:
    /// The node at that place, made and connected where there is none yet.
    virtual Node& At(const Endpoint& endpoint) = 0;
    /// One of those that are connected, by chance; nullptr: none is.
    [[nodiscard]] virtual Node* Any() = 0;
    /// Slots have other owners.
    virtual void OnDirectory() = 0;
    /// What is wrong with whoever is asked, for people.
    virtual void OnDirectoryProblem(const Endpoint& asked, ErrorKind kind,
                                    const std::string& problem) = 0;

   protected:
    ~Host() = default;
  };
  virtual ~Directory() = default;

  virtual void Start() {}
  virtual void Stop() {}
  /// Grows with every change.
  [[nodiscard]] virtual std::uint64_t version() const noexcept = 0;
  /// Whether keys of different slots may be on different nodes.
  [[nodiscard]] virtual bool slotted() const noexcept { return false; }
  /// nullptr: nobody, as far as is known.
  [[nodiscard]] virtual const Endpoint* OwnerOf(Slot slot) const noexcept = 0;
  /// All that own something.
  [[nodiscard]] virtual std::vector<Endpoint> Owners() const = 0;

  virtual void OnMoved(const Redirect& /*redirect*/) {}
  /// A node is gone, is no master, or has no answer for its slots: somebody else may have.
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

}  // namespace tidegate::redis
