// A certificate of a test's own, and its key, as PEM files.
#pragma once

#include <doctest/doctest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "tune/view/tls.h"

namespace tune::testing {

struct CertificateOptions {
  std::string names = "DNS:node7.example,IP:127.0.0.1";  // subjectAltName; empty: none
  long seconds = 3600;                                   // until it is over
};

using Key = std::shared_ptr<EVP_PKEY>;

inline Key made_key() {
  Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  REQUIRE(key);
  return key;
}

inline void write_key(const Key& key, const std::filesystem::path& file,
                      const char* password = nullptr) {
  const std::unique_ptr<FILE, int (*)(FILE*)> out(std::fopen(file.c_str(), "w"), std::fclose);
  REQUIRE(PEM_write_PrivateKey(out.get(), key.get(), password ? EVP_aes_128_cbc() : nullptr,
                               reinterpret_cast<const unsigned char*>(password),
                               password ? static_cast<int>(std::string(password).size()) : 0,
                               nullptr, nullptr) == 1);
}

// Signed by itself.
inline void write_certificate(const Key& key, const std::filesystem::path& file,
                              const CertificateOptions& options = {}) {
  const std::unique_ptr<X509, void (*)(X509*)> made(X509_new(), X509_free);
  X509* one = made.get();
  X509_set_version(one, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(one), 1);
  X509_gmtime_adj(X509_getm_notBefore(one), -7200);
  X509_gmtime_adj(X509_getm_notAfter(one), options.seconds);
  X509_set_pubkey(one, key.get());
  X509_NAME* name = X509_get_subject_name(one);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("node7.example"), -1, -1, 0);
  X509_set_issuer_name(one, name);
  if (!options.names.empty()) {
    const std::unique_ptr<X509_EXTENSION, void (*)(X509_EXTENSION*)> names(
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, options.names.c_str()),
        X509_EXTENSION_free);
    REQUIRE(names);
    X509_add_ext(one, names.get(), -1);
  }
  REQUIRE(X509_sign(one, key.get(), EVP_sha256()) > 0);
  const std::unique_ptr<FILE, int (*)(FILE*)> out(std::fopen(file.c_str(), "w"), std::fclose);
  REQUIRE(PEM_write_X509(out.get(), one) == 1);
}

// Both in the folder.
inline view::TlsFiles write_identity(const std::filesystem::path& folder,
                                     const CertificateOptions& options = {}) {
  const Key key = made_key();
  const view::TlsFiles files{folder / "page.crt", folder / "page.key"};
  write_certificate(key, files.certificate, options);
  write_key(key, files.key);
  return files;
}

}  // namespace tune::testing
