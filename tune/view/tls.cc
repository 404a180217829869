#include "tune/view/tls.h"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/files.h"
#include "tune/view/guard.h"

namespace tune::view {

namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;

Error refused_tls(const char* option, const std::string& file, const std::string& why) {
  return {ErrorCode::kBadInput, fmt::format("{} {}: {}", option, file, why)};
}

std::string text_of(const char* option, const std::string& file) try {
  return read_file(file);
} catch (const Error& error) {
  throw Error(ErrorCode::kBadInput, fmt::format("{}: {}", option, error.what()));
}

std::string_view bytes_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

std::string address_of(std::string_view bytes) {
  if (bytes.size() == 4) {
    asio::ip::address_v4::bytes_type four;
    std::copy(bytes.begin(), bytes.end(), four.begin());
    return asio::ip::address_v4(four).to_string();
  }
  if (bytes.size() != 16) return {};
  asio::ip::address_v6::bytes_type sixteen;
  std::copy(bytes.begin(), bytes.end(), sixteen.begin());
  return "[" + asio::ip::address_v6(sixteen).to_string() + "]";
}

// Browsers look at these names alone, not at the subject's.
std::vector<std::string> names_of(const X509* certificate) {
  const auto release = [](GENERAL_NAMES* all) { GENERAL_NAMES_free(all); };
  const std::unique_ptr<GENERAL_NAMES, decltype(release)> all(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
      release);
  std::vector<std::string> names;
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* one = sk_GENERAL_NAME_value(all.get(), i);
    std::string name;
    if (one->type == GEN_DNS) name = small_letters(bytes_of(one->d.dNSName));
    if (one->type == GEN_IPADD) name = address_of(bytes_of(one->d.iPAddress));
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

Tls::Tls(const TlsFiles& files) : context_(ssl::context::tls_server) {
  SSL_CTX* native = context_.native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);

  const std::string certificate = text_of("--certificate", files.certificate);
  const std::string key = text_of("--key", files.key);
  error_code error;
  context_.use_certificate_chain(asio::buffer(certificate), error);
  if (error) {
    throw refused_tls("--certificate", files.certificate, "it is not a certificate in PEM");
  }
  // OpenSSL would ask for the password on the terminal.
  if (key.find("ENCRYPTED") != key.npos) {
    throw refused_tls("--key", files.key,
                      "it is behind a password: give a copy without one, that only you may read");
  }
  context_.use_private_key(asio::buffer(key), ssl::context::pem, error);
  if (error || SSL_CTX_check_private_key(native) != 1) {
    throw refused_tls("--key", files.key,
                      fmt::format("it is not the key of {}, in PEM", files.certificate));
  }
  const X509* own = SSL_CTX_get0_certificate(native);
  if (X509_cmp_current_time(X509_get0_notAfter(own)) < 0) {
    throw refused_tls("--certificate", files.certificate, "its time is over: renew it");
  }
  names_ = names_of(own);
  if (names_.empty()) {
    throw refused_tls("--certificate", files.certificate,
                      "it names no host that browsers look for (subjectAltName): make one with "
                      "the names and addresses of this machine");
  }
}

}  // namespace tune::view
