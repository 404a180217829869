// Tls: the certificate and the key by which the page is served to other machines.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <string>
#include <vector>

namespace tune::view {

// PEM files: a certificate with those that vouch for it, and its key.
struct TlsFiles {
  std::string certificate;
  std::string key;
};

class Tls {
 public:
  // Throws Error (kBadInput, kIo) naming the file: one that cannot be read or is not PEM, a key of
  // another certificate or behind a password, a certificate that is over or names no host.
  explicit Tls(const TlsFiles& files);

  boost::asio::ssl::context& context() { return context_; }
  // The hosts of the certificate as a browser's Host has them, in small letters: "node7.example",
  // "*.example", "10.0.0.7", "[2001:db8::7]".
  const std::vector<std::string>& names() const { return names_; }

 private:
  boost::asio::ssl::context context_;
  std::vector<std::string> names_;
};

}  // namespace tune::view
