#include "core/platform/http.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <system_error>

namespace tune {

namespace {

// The few declarations of curl/curl.h that are needed; the numbers are its ABI, which has been the
// same since version 7.16 (2006).
using Handle = void*;
using List = void*;
enum Option {
  kWriteData = 10001,
  kUrl = 10002,
  kReadData = 10009,
  kUserPassword = 10005,
  kPostFields = 10015,
  kUserAgent = 10018,
  kHeaders = 10023,
  kCustomRequest = 10036,
  kUpload = 46,
  kPostFieldSize = 60,
  kNoSignal = 99,
  kTimeoutMs = 155,
  kConnectTimeoutMs = 156,
  kProtocols = 181,
  kWriteFunction = 20011,
  kUploadSize = 30115,
};
constexpr int kResponseCode = 0x200002;
constexpr long kHttpAndHttps = 3;
constexpr long kGlobalAll = 3;

class CurlLibrary {
 public:
  CurlLibrary() {
    for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
      library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (library_ != nullptr) break;
    }
    if (library_ == nullptr) return;
    load(global_init, "curl_global_init");
    load(init, "curl_easy_init");
    load(set, "curl_easy_setopt");
    load(perform, "curl_easy_perform");
    load(info, "curl_easy_getinfo");
    load(cleanup, "curl_easy_cleanup");
    load(describe, "curl_easy_strerror");
    load(append, "curl_slist_append");
    load(free_list, "curl_slist_free_all");
    is_ready_ = is_whole_ && global_init(kGlobalAll) == 0;
  }
  bool is_ready() const { return is_ready_; }

  int (*global_init)(long) = nullptr;
  Handle (*init)() = nullptr;
  int (*set)(Handle, int, ...) = nullptr;
  int (*perform)(Handle) = nullptr;
  int (*info)(Handle, int, ...) = nullptr;
  void (*cleanup)(Handle) = nullptr;
  const char* (*describe)(int) = nullptr;
  List (*append)(List, const char*) = nullptr;
  void (*free_list)(List) = nullptr;

 private:
  template <class Function>
  void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    is_whole_ = is_whole_ && function != nullptr;
  }

  void* library_ = nullptr;  // stays: its threads may
  bool is_whole_ = true;
  bool is_ready_ = false;
};

const CurlLibrary& library() {
  static const CurlLibrary* const curl = new CurlLibrary();
  return *curl;
}

std::size_t keep(const char* data, std::size_t size, std::size_t count, void* target) try {
  auto& body = *static_cast<std::string*>(target);
  if (body.size() + size * count > kMaxHttpBytes) return 0;  // ends the request with an error
  body.append(data, size * count);
  return size * count;
} catch (const std::exception&) {
  return 0;
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using OpenFile = std::unique_ptr<std::FILE, CloseFile>;

// Libcurl reads it by itself. Nothing when it cannot be opened; `answer` says why.
OpenFile open_upload(const CurlLibrary& curl, Handle handle, const HttpRequest& request,
                     HttpAnswer& answer) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(request.body_file, error);
  OpenFile file(error ? nullptr : std::fopen(request.body_file.c_str(), "rbe"));
  if (!file) {
    answer.error = "the file " + request.body_file.string() + " cannot be read";
    return file;
  }
  curl.set(handle, kUpload, 1L);
  curl.set(handle, kReadData, file.get());
  curl.set(handle, kUploadSize, static_cast<std::int64_t>(size));
  return file;
}

}  // namespace

HttpAnswer ask_http(const HttpRequest& request) {
  const CurlLibrary& curl = library();
  HttpAnswer answer;
  if (!curl.is_ready()) {
    answer.error = "there is no libcurl on this machine (Debian: libcurl4)";
    return answer;
  }
  const Handle handle = curl.init();
  if (handle == nullptr) {
    answer.error = "libcurl has no memory";
    return answer;
  }
  List headers = nullptr;
  for (const std::string& header : request.headers) headers = curl.append(headers, header.c_str());
  const auto limit = static_cast<long>(request.limit.count());
  curl.set(handle, kUrl, request.url.c_str());
  curl.set(handle, kProtocols, kHttpAndHttps);
  curl.set(handle, kNoSignal, 1L);
  curl.set(handle, kTimeoutMs, limit);
  curl.set(handle, kConnectTimeoutMs, limit);
  curl.set(handle, kUserAgent, "tune");
  if (headers != nullptr) curl.set(handle, kHeaders, headers);
  if (!request.user.empty()) curl.set(handle, kUserPassword, request.user.c_str());
  OpenFile upload;
  if (!request.body_file.empty()) {
    upload = open_upload(curl, handle, request, answer);
  } else if (request.method != "GET") {
    curl.set(handle, kPostFieldSize, static_cast<long>(request.body.size()));
    curl.set(handle, kPostFields, request.body.c_str());
    curl.set(handle, kCustomRequest, request.method.c_str());
  }
  curl.set(handle, kWriteFunction, &keep);
  curl.set(handle, kWriteData, &answer.body);
  if (answer.error.empty()) {
    const int failed = curl.perform(handle);
    curl.info(handle, kResponseCode, &answer.status);
    if (failed != 0) {
      answer.status = 0;
      answer.error = curl.describe(failed);
    }
  }
  if (headers != nullptr) curl.free_list(headers);
  curl.cleanup(handle);
  return answer;
}

std::string shown_address(const std::string& url) {
  const std::size_t scheme = url.find("://");
  if (scheme == url.npos) return "the address";
  const std::size_t begin = scheme + 3;
  const std::size_t end = std::min(url.find_first_of("/?#", begin), url.size());
  const std::string host = url.substr(begin, end - begin);
  const std::size_t at = host.rfind('@');  // after a name and a password
  return url.substr(0, begin) + (at == host.npos ? host : host.substr(at + 1));
}

}  // namespace tune
