// S3Store: an object store that speaks S3: Amazon's, MinIO, Ceph, Swift with s3api, ... Where it is
// and who asks is in the variables and files of every program for S3 (core/aws_settings.h); nothing
// of them is written anywhere, or shown.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/object_store.h"

namespace tune {

struct AwsSettings;

// What the environment and files of this process say, now.
AwsSettings read_aws_settings();

struct S3Place {
  std::string address;        // "s3://bucket/prefix"
  std::string endpoint = {};  // where the process's own settings name none
  std::string region = {};
};

class S3Store : public ObjectStore {
 public:
  // Throws Error (kBadInput) for what is no address.
  explicit S3Store(S3Place place);
  ~S3Store() override;

  void put(const std::string& name, std::string_view bytes) override;
  std::string get(const std::string& name) override;
  std::vector<std::string> list(const std::string& prefix, const std::string& after) override;
  void remove(const std::string& name) override;
  // From another thread: the request that is on its way, and all later ones, end at once.
  void abandon();

 private:
  struct Asked;
  std::string ask(const Asked& asked);
  std::string ask_once(const Asked& asked);
  std::string shown(const Asked& asked) const;

  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace tune
