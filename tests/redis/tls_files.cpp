// SPDX-License-Identifier: Apache-2.0
#include "redis/tls_files.hpp"

#include <fstream>

namespace tidegate::redis_test {

std::string TlsFiles::Write(const std::string& text) {
  const std::filesystem::path path = folder_.path() / (std::to_string(files_++) + ".pem");
  std::ofstream(path) << text;
  // Some programs refuse a key that others may read.
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  return path.string();
}

TlsFiles::Pair TlsFiles::Write(const behaviour::Credentials& credentials) {
  Pair pair;
  pair.certificate = Write(credentials.certificate);
  pair.key = Write(credentials.key);
  return pair;
}

TlsFiles::Pair TlsFiles::Issue(const std::string& names, Validity validity) {
  return Write(authority_.Issue("redis", names, validity));
}

TlsFiles::Pair TlsFiles::IssueByOther() { return Write(other_.Issue("redis", "IP:127.0.0.1")); }

std::vector<std::string> TlsFiles::Arguments(const Pair& own, Clients clients) const {
  return {"--tls-cert-file",    own.certificate,
          "--tls-key-file",     own.key,
          "--tls-ca-cert-file", ca_,
          "--tls-auth-clients", clients == Clients::kAnybody ? "no" : "yes"};
}

std::string TlsFiles::Lines(const Pair& own) const {
  return "tls-cert-file " + own.certificate + "\ntls-key-file " + own.key + "\ntls-ca-cert-file " +
         ca_ + "\ntls-auth-clients no\n";
}

std::string TlsFiles::StoreTls(const std::string& more) const {
  return "tls: { ca: \"file:" + ca_ + "\"" + (more.empty() ? "" : ", " + more) + " }";
}

std::string TlsFiles::Own(const Pair& pair) {
  return "certificate: \"file:" + pair.certificate + "\", key: \"file:" + pair.key + "\"";
}

}  // namespace tidegate::redis_test
