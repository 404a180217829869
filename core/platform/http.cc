#include "core/platform/http.h"

#include <dlfcn.h>
#include <fcntl.h>

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
  kNoProgress = 43,
  kLowSpeedLimit = 19,
  kLowSpeedTime = 20,
  kUpload = 46,
  kPostFieldSize = 60,
  kNoSignal = 99,
  kTimeoutMs = 155,
  kConnectTimeoutMs = 156,
  kProtocols = 181,
  kProgressData = 10057,
  kCaFile = 10065,
  kHeaderData = 10029,
  kSocketFunction = 20148,
  kWriteFunction = 20011,
  kHeaderFunction = 20079,
  kProgressFunction = 20219,
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
    load(reset, "curl_easy_reset");
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
  void (*reset)(Handle) = nullptr;  // of options alone: connections stay
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

int look_whether_abandoned(void* abandoned, std::int64_t, std::int64_t, std::int64_t,
                           std::int64_t) {
  return static_cast<const std::atomic<bool>*>(abandoned)->load() ? 1 : 0;
}

// Libcurl takes an answer whose head breaks off for one that is whole, and empty.
std::size_t look_for_end_of_head(const char* data, std::size_t size, std::size_t count,
                                 void* has_ended) {
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) *static_cast<bool*>(has_ended) = false;  // 100, then the answer
  if (line == "\r\n" || line == "\n") *static_cast<bool*>(has_ended) = true;
  return size * count;
}

// A program that is started meanwhile gets no connection.
int close_in_programs(void*, int socket, int) {
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
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

void set_limits(const CurlLibrary& curl, Handle handle, const HttpRequest& request) {
  const auto connect = request.connect_limit.count() > 0 ? request.connect_limit : request.limit;
  curl.set(handle, kTimeoutMs, static_cast<long>(request.limit.count()));
  curl.set(handle, kConnectTimeoutMs, static_cast<long>(connect.count()));
  if (request.stall_limit.count() <= 0) return;
  curl.set(handle, kLowSpeedLimit, 1L);
  curl.set(handle, kLowSpeedTime, static_cast<long>(request.stall_limit.count()));
}

// The content. Nothing is open when no file is sent, or when it cannot be read: `answer` says why.
OpenFile set_content(const CurlLibrary& curl, Handle handle, const HttpRequest& request,
                     HttpAnswer& answer) {
  if (!request.body_file.empty()) return open_upload(curl, handle, request, answer);
  if (request.method == "GET") return {};
  const std::string_view body =
      request.lent_body.data() != nullptr ? request.lent_body : std::string_view(request.body);
  curl.set(handle, kPostFieldSize, static_cast<long>(body.size()));
  curl.set(handle, kPostFields, body.data());
  curl.set(handle, kCustomRequest, request.method.c_str());
  return {};
}

}  // namespace

HttpConnection::~HttpConnection() {
  if (handle_ != nullptr) library().cleanup(handle_);
}

HttpAnswer HttpConnection::ask(const HttpRequest& request, const std::atomic<bool>* abandoned) {
  const CurlLibrary& curl = library();
  HttpAnswer answer;
  if (!curl.is_ready()) {
    answer.error = "there is no libcurl on this machine (Debian: libcurl4)";
    return answer;
  }
  if (handle_ == nullptr) handle_ = curl.init();
  if (handle_ == nullptr) {
    answer.error = "libcurl has no memory";
    return answer;
  }
  curl.reset(handle_);
  List headers = nullptr;
  for (const std::string& header : request.headers) headers = curl.append(headers, header.c_str());
  curl.set(handle_, kUrl, request.url.c_str());
  curl.set(handle_, kProtocols, kHttpAndHttps);
  curl.set(handle_, kNoSignal, 1L);
  curl.set(handle_, kUserAgent, "tune");
  curl.set(handle_, kSocketFunction, &close_in_programs);
  set_limits(curl, handle_, request);
  if (headers != nullptr) curl.set(handle_, kHeaders, headers);
  if (!request.user.empty()) curl.set(handle_, kUserPassword, request.user.c_str());
  if (!request.ca_file.empty()) curl.set(handle_, kCaFile, request.ca_file.c_str());
  if (abandoned != nullptr) {
    curl.set(handle_, kNoProgress, 0L);
    curl.set(handle_, kProgressFunction, &look_whether_abandoned);
    curl.set(handle_, kProgressData, abandoned);
  }
  const OpenFile upload = set_content(curl, handle_, request, answer);
  bool has_head = false;
  curl.set(handle_, kHeaderFunction, &look_for_end_of_head);
  curl.set(handle_, kHeaderData, &has_head);
  curl.set(handle_, kWriteFunction, &keep);
  curl.set(handle_, kWriteData, &answer.body);
  if (answer.error.empty()) {
    const int failed = curl.perform(handle_);
    curl.info(handle_, kResponseCode, &answer.status);
    if (failed != 0 || !has_head) {
      answer.status = 0;
      answer.error = failed != 0 ? curl.describe(failed) : "the answer broke off";
    }
  }
  if (headers != nullptr) curl.free_list(headers);
  return answer;
}

HttpAnswer ask_http(const HttpRequest& request) {
  return HttpConnection().ask(request);
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
