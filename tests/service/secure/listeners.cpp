// SPDX-License-Identifier: Apache-2.0
#include "service/secure/listeners.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "service/secure/tls_stream.hpp"
#include "support/resp_client.hpp"

namespace tidegate {

std::ostream& operator<<(std::ostream& out, ListenerId listener) {
  return out << service::Name(listener);
}

namespace service {

// --- Listeners ------------------------------------------------------------------------

std::string_view Name(ListenerId listener) {
  constexpr std::array<std::string_view, 4> kNames{"Api", "Admin", "Gateway", "Resp"};
  return kNames[static_cast<std::size_t>(listener)];
}

ListenSpec& SpecOf(Config& config, ListenerId listener) {
  switch (listener) {
    case ListenerId::kApi: return config.listen.api;
    case ListenerId::kAdmin: return config.listen.admin;
    case ListenerId::kGateway: return config.listen.gateway;
    case ListenerId::kResp: break;
  }
  return config.listen.resp;
}

net::Endpoint At(Service& service, ListenerId listener) {
  switch (listener) {
    case ListenerId::kApi: return service.server().api();
    case ListenerId::kAdmin: return service.server().admin();
    case ListenerId::kGateway: return service.server().gateway();
    case ListenerId::kResp: break;
  }
  return service.server().resp();
}

Config AllListeners(const std::string& upstream_url, std::string_view more_yaml) {
  constexpr std::string_view kRules = R"(
rules:
  - { id: per-key, match: { path: /never }, per: header:x-api-key, limit: 3/s }
  - { id: jobs, match: { path: /never }, per: header:x-api-key, limit: 3/10s, algorithm: concurrency }
  - { id: visits, match: { path: /visits/** }, per: client_ip, limit: 3/m }
)";
  std::string yaml = behaviour::Routed(upstream_url);
  yaml.append(kRules).append(more_yaml);
  Config config = behaviour::Gate::ConfigOf(yaml);
  config.listen.resp = "127.0.0.1:0";
  return config;
}

Config AllListenersTls(const ListenTls& tls, const std::string& upstream_url,
                       std::string_view more_yaml) {
  Config config = AllListeners(upstream_url, more_yaml);
  for (const ListenerId listener : kListenerIds) SpecOf(config, listener).tls = tls;
  return config;
}

bool Served(std::unique_ptr<test::Stream> stream, ListenerId listener) {
  if (listener == ListenerId::kResp) {
    test::RespClient client(std::move(stream));
    client.Send(test::RespCommand({"PING"}));
    return client.Read() == "PONG";
  }
  HttpClient client(std::move(stream));
  client.Send(Get(listener == ListenerId::kApi ? "/openapi.json" : "/healthz"));
  const auto answer = client.TryRead();
  return answer && answer->status == 200;
}

// --- Certificates -----------------------------------------------------------------

ListenTls::Certificate PairFor(const std::vector<std::string>& names,
                               behaviour::Authority::Key kind) {
  std::string list = "IP:127.0.0.1";
  for (const std::string& name : names) list += ",DNS:" + name;
  const behaviour::Credentials made =
      Ours().Issue(names.front(), list, behaviour::Authority::Validity::kNow, kind);
  return {made.certificate, made.key};
}

ListenTls TlsFor(const std::string& name) { return {.certificates = {PairFor({name})}}; }

ListenTls TlsWithClients(ListenTls::Clients clients) {
  ListenTls tls = TlsFor();
  tls.client_ca_pem = Ours().pem();
  tls.clients = clients;
  return tls;
}

// --- The PROXY protocol -----------------------------------------------------------

std::string ProxyV1(std::string_view source) {
  const bool v6 = source.find(':') != std::string_view::npos;
  std::string line = v6 ? "PROXY TCP6 " : "PROXY TCP4 ";
  return line.append(source).append(v6 ? " ::1 4000 80\r\n" : " 127.0.0.1 4000 80\r\n");
}

std::string ProxyV2(std::string_view source, ProxyCommand command, std::string_view tlvs) {
  const std::string text(source);
  const bool v6 = source.find(':') != std::string_view::npos;
  const std::size_t width = v6 ? 16 : 4;
  std::string addresses(2 * width, '\0');
  EXPECT_EQ(inet_pton(v6 ? AF_INET6 : AF_INET, text.c_str(), addresses.data()), 1);
  addresses.append("\x0f\xa0\0\x50", 4).append(tlvs);  // Source port 4000, destination port 80.
  std::string header("\r\n\r\n\0\r\nQUIT\n", 12);
  header += command == ProxyCommand::kProxy ? '\x21' : '\x20';
  header += v6 ? '\x21' : '\x11';
  header += static_cast<char>(addresses.size() >> 8);
  header += static_cast<char>(addresses.size() & 0xff);
  return header + addresses;
}

}  // namespace service
}  // namespace tidegate
