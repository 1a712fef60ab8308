// SPDX-License-Identifier: Apache-2.0
// Fuzzes all code that reads text about the origin and the target of a request, written by clients
// or proxies: addresses, networks, forwarding headers, paths and hosts.
#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "identity/address.hpp"
#include "identity/client_address.hpp"
#include "identity/path.hpp"
#include "identity/request_path.hpp"

namespace tidegate {
namespace {

void Check(bool holds, const char* what, std::string_view input) {
  if (holds) return;
  std::fprintf(stderr, "%s: \"%.*s\"\n", what, static_cast<int>(input.size()), input.data());
  std::abort();
}

std::optional<Address> Known(const std::string& text) {
  if (text.find('\0') != std::string::npos) return std::nullopt;
  Address::Bytes bytes{};
  if (inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return Address(bytes);
  bytes[10] = bytes[11] = 0xff;
  if (inet_pton(AF_INET, text.c_str(), bytes.data() + 12) == 1) return Address(bytes);
  return std::nullopt;
}

/// Compares with inet_pton(): glibc reads addresses as strictly as Tidegate, so both must agree on
/// every text.
void CheckAddress(std::string_view text) {
  const auto address = Address::Parse(text);
  Check(address == Known(std::string(text)), "inet_pton disagrees", text);
  if (!address) return;
  const std::string written = address->Text();
  Check(written.size() < Address::kMaxText, "longer than kMaxText", text);
  Check(Address::Parse(written) == address, "does not survive writing", text);
  Check(Address::ParseWithPort(text) == address, "another with ports allowed", text);
  if (!address->is_v4()) {
    Check(Address::ParseWithPort("[" + written + "]:443") == address, "brackets change it", text);
  } else {
    Check(Address::ParseWithPort(written + ":443") == address, "a port changes it", text);
  }
  for (int bits = 0; bits <= 128; ++bits) {
    const Address masked = address->Masked(bits);
    Check(masked.Masked(bits) == masked, "masked twice is another", text);
  }
}

void CheckNetwork(std::string_view text) {
  const auto network = Network::Parse(text);
  if (!network) return Check(!network.error().message.empty(), "refused without a word", text);
  Check(Network::Parse(network->Text()) == network.value(), "network: not as written", text);
  const bool v4_in_v6 = network->base().is_v4() && network->bits() < Network::kV4Bits;
  Check(!v4_in_v6 && network->Contains(network->base()), "lacks its own base", text);
}

void CheckPath(std::string_view text) {
  for (const Slashes slashes : {Slashes::kKeep, Slashes::kMerge}) {
    std::pmr::monotonic_buffer_resource memory;
    const auto once = NormalizePath(text, slashes, memory);
    if (!once) continue;
    const auto twice = NormalizePath(*once, slashes, memory);
    Check(twice == once && twice->data() == once->data(), "path: twice is not once", text);
    Check(once->starts_with('/') && once->size() <= 3 * text.size(), "path: no path", text);
    const std::string closed = std::string(*once) + "/";
    for (const char* bad :
         {"/./", "/../", "%2e", "%2E", "%00", "\r", "\n", "?", "#", "\\", " ", "|", "\""}) {
      Check(closed.find(bad) == std::string::npos, "path: holds what it must not", text);
    }
    Check(slashes == Slashes::kKeep || once->find("//") == std::string_view::npos,
          "path: slashes not merged", text);
  }
}

/// Checks that the forms of a request's path are in normal form, and that reading one of them again
/// finds nothing new: a lenient server reads its own reading of a path in the same way.
void CheckRequestPath(std::string_view text) {
  for (const bool ignore_case : {false, true}) {
    const PathOptions options{.ignore_case = ignore_case,
                              .encoded_slashes = EncodedSlashes::kMatch};
    std::pmr::monotonic_buffer_resource memory;
    const auto read = ReadRequestPath(text, options, memory);
    if (!read) {
      Check(!Message(read.error()).empty(), "request path: refused without a word", text);
      continue;
    }
    for (const std::string_view form : {read->forwarded, read->canonical, read->lenient}) {
      Check(form.starts_with('/'), "request path: no path", text);
      Check(NormalizePath(form, Slashes::kKeep, memory).has_value(), "request path: not normal",
            text);
    }
    for (const std::string_view form : {read->canonical, read->lenient}) {
      Check(form.size() == 1 || !form.ends_with('/'), "request path: a final slash", text);
      Check(form.find("//") == std::string_view::npos, "request path: slashes not merged", text);
    }
    Check(read->lenient.find(';') == std::string_view::npos, "request path: parameters", text);
    const auto again = ReadRequestPath(read->forwarded, options, memory);
    Check(again && again->lenient == read->lenient && again->canonical == read->canonical,
          "request path: the upstream reads another one", text);
    const auto lenient = ReadRequestPath(read->lenient, options, memory);
    Check(lenient && lenient->lenient == read->lenient, "request path: lenient twice", text);
  }
}

void CheckHost(std::string_view text) {
  std::pmr::monotonic_buffer_resource memory;
  const auto once = NormalizeHost(text, memory);
  if (!once) return;
  Check(NormalizeHost(*once, memory) == once, "host: twice is not once", text);
  Check(!once->empty() && once->size() <= 253 && !once->ends_with('.'), "host: no host", text);
  for (const char c : *once) {
    Check(c > ' ' && c <= '~' && !(c >= 'A' && c <= 'Z'), "host: holds what it must not", text);
  }
}

/// Uses the lines of the input as lines of both headers. Whatever they contain: the address of an
/// untrusted peer is the peer's own, and the address that a trusted proxy appended last is
/// preferred to everything to the left of it.
void CheckClient(std::string_view text) {
  static const Address kProxy = Address::Parse("10.0.0.1").value();
  static const Address kUntrusted = Address::Parse("203.0.113.7").value();
  ClientAddressPolicy policy;
  policy.trusted_proxies = {Network::Parse("10.0.0.0/8").value(),
                            Network::Parse("fd00::/8").value()};
  for (const bool forwarded : {false, true}) {
    policy.header = forwarded ? ClientAddressPolicy::Header::kForwarded
                              : ClientAddressPolicy::Header::kXForwardedFor;
    std::vector<HeaderField> lines;
    for (std::string_view rest = text;;) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      lines.push_back({forwarded ? "Forwarded" : "X-Forwarded-For", rest.substr(0, end)});
      if (end == rest.size()) break;
      rest.remove_prefix(end + 1);
    }
    const auto appended = std::string(lines.back().value) +
                          (forwarded ? ", for=\"203.0.113.7:80\"" : ", 203.0.113.7");
    for (int hops = 0; hops < 4; ++hops) {
      policy.hops = hops;
      Check(ClientAddress(policy, kUntrusted, lines) == kUntrusted, "an untrusted peer is believed",
            text);
      static_cast<void>(ClientAddress(policy, kProxy, lines));
    }
    lines.back().value = appended;
    for (policy.hops = 0; policy.hops < 2; ++policy.hops) {
      Check(ClientAddress(policy, kProxy, lines) == kUntrusted, "a client hides itself", text);
    }
  }
}

}  // namespace
}  // namespace tidegate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  tidegate::CheckAddress(text);
  tidegate::CheckNetwork(text);
  tidegate::CheckPath(text);
  tidegate::CheckRequestPath(text);
  tidegate::CheckHost(text);
  tidegate::CheckClient(text);
  return 0;
}
