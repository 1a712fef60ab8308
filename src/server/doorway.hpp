// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frontends/admission.hpp"
#include "frontends/refusals.hpp"
#include "net/endpoint.hpp"
#include "net/listener.hpp"
#include "net/tls_server.hpp"
#include "rules/listen_spec.hpp"
#include "telemetry/exposition.hpp"

namespace tidegate {

/// Where one door listens: a listener on each of its reactors, and what they share.
class Doorway {
 public:
  enum class Protocol : std::uint8_t { kHttp, kResp };

  Doorway(std::string name, const ListenSpec& spec, Protocol protocol)
      : name_(std::move(name)), spec_(spec), protocol_(protocol), refusals_(name_) {}

  [[nodiscard]] bool off() const noexcept { return spec_.off(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const ListenSpec& spec() const noexcept { return spec_; }
  /// Where it really listens, if port 0 was asked for.
  [[nodiscard]] const net::Endpoint& endpoint() const noexcept { return endpoint_; }

  /// Whether nothing of `now` waits for a restart: what TLS shows and asks for is taken over while
  /// it runs.
  [[nodiscard]] bool Fits(const ListenSpec& now) const;
  /// Who may ask here with that of `now` which is taken over.
  [[nodiscard]] Admission AdmissionWith(const ListenSpec& now) const;

  using MakeListener = std::function<std::unique_ptr<net::Listener>(
      std::size_t reactor, net::Descriptor socket, const net::Listener::Options& options)>;
  /// Listens on each of so many reactors, but serves nobody yet.
  [[nodiscard]] Result<void> Open(std::size_t reactors, net::Listener::Options options,
                                  const MakeListener& make);

  /// What `spec` has for TLS, made ready. nullptr: nothing.
  [[nodiscard]] Result<std::shared_ptr<const net::TlsServer>> MakeTls(const ListenSpec& spec) const;
  /// For connections from now on, on the listeners' own threads.
  void Use(const std::shared_ptr<const net::TlsServer>& tls, const net::Listener::Trusts& trusts);

  void Start();
  /// Accepts no more; `drained` is called once by each of listeners(), on its thread.
  void Drain(const std::function<void()>& drained);
  [[nodiscard]] const std::vector<std::unique_ptr<net::Listener>>& listeners() const noexcept {
    return listeners_;
  }
  /// Ends all that is under way on that reactor. On its thread.
  void CloseAll(const net::Reactor& reactor);
  [[nodiscard]] MetricsReport::Door Stats() const;
  /// Of all its listeners.
  [[nodiscard]] Refusals& refusals() noexcept { return refusals_; }
  [[nodiscard]] const Refusals& refusals() const noexcept { return refusals_; }

 private:
  const std::string name_;
  const ListenSpec spec_;
  const Protocol protocol_;
  Refusals refusals_;
  net::Endpoint endpoint_;
  std::atomic<std::size_t> connections_{0};
  std::vector<std::unique_ptr<net::Listener>> listeners_;
};

}  // namespace tidegate
