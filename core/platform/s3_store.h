// S3Store: an object store that speaks S3: Amazon's, MinIO, Ceph, Swift with s3api, ... Its
// address and the caller's keys come from the variables and files of every program for S3
// (core/aws_settings.h); nothing of them is written anywhere, or shown.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/object_store.h"

namespace tune {

struct AwsSettings;

// The settings that the environment and files of this process have now.
AwsSettings read_aws_settings();

struct S3Place {
  std::string address;        // "s3://bucket/prefix"
  std::string endpoint = {};  // where the process's own settings name none
  std::string region = {};
};

// An object as a list has it.
struct S3Object {
  std::string name;
  std::uint64_t bytes = 0;
  std::string tag = {};  // another content has another one
};

class S3Store : public ObjectStore {
 public:
  // Throws Error (kBadInput) for a text that is not such an address.
  explicit S3Store(S3Place place);
  ~S3Store() override;

  void put(const std::string& name, std::string_view bytes) override;
  std::string get(const std::string& name) override;
  std::vector<std::string> list(const std::string& prefix, const std::string& after) override;
  void remove(const std::string& name) override;
  // list() with all that a list says.
  std::vector<S3Object> list_objects(const std::string& prefix, const std::string& after);
  // `bytes` bytes from `begin` on, at most 16 MiB. Refused when the object has another tag now.
  std::string get_part(const S3Object& object, std::uint64_t begin, std::size_t bytes);
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
