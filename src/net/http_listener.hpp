// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "net/http_connection.hpp"
#include "net/listener.hpp"

namespace tidegate::net {

/// Accepts connections whose requests are answered by a handler, each when all of it is there.
class HttpListener final : public Listener {
 public:
  HttpListener(Reactor& reactor, Descriptor socket, HttpHandler& handler, const Options& options)
      : Listener(reactor, std::move(socket), options), handler_(handler) {}

  [[nodiscard]] HttpHandler& handler() noexcept { return handler_; }

 private:
  [[nodiscard]] Connection* NewConnection(Descriptor socket, const Peer& peer) override {
    return new HttpConnection(*this, std::move(socket), peer);
  }

  HttpHandler& handler_;
};

}  // namespace tidegate::net
