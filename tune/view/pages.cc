#include "tune/view/pages.h"

#include <map>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "tune/view/assets.h"
#include "tune/view/gzip.h"

namespace tune::view {

const char* const kWelcome =
    "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0; url=/\">"
    "<title>tune</title><a href=\"/\">tune view</a>\n";

namespace {

constexpr int kSmall = 9;

struct File {
  std::string type;
  std::string etag;
  std::shared_ptr<const std::string> plain, compressed;
};

std::string type_of(std::string_view name) {
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "text/html; charset=utf-8";
}

std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  return hash;
}

const std::map<std::string, File, std::less<>>& files() {
  static const auto all = [] {
    std::map<std::string, File, std::less<>> files;
    for (const Asset& asset : assets()) {
      File& file = files["/" + std::string(asset.name)];
      file.type = type_of(asset.name);
      file.etag = fmt::format("\"{:016x}\"", hash_of(asset.bytes));
      file.plain = std::make_shared<const std::string>(asset.bytes);
      file.compressed = std::make_shared<const std::string>(gzipped(asset.bytes, kSmall));
    }
    return files;
  }();
  return all;
}

}  // namespace

Reply page_file(std::string_view path, bool takes_gzip, std::string_view known_etag) {
  if (path == "/favicon.ico") path = "/icon.svg";  // asked for beside a text that names no icon
  const auto found = files().find(path == "/" ? std::string_view("/index.html") : path);
  if (found == files().end()) {
    return {.status = 404,
            .type = "text/plain; charset=utf-8",
            .body = std::make_shared<const std::string>("there is nothing of this name\n")};
  }
  const File& file = found->second;
  if (known_etag == file.etag) return {.status = 304, .type = "", .body = {}, .etag = file.etag};
  return {.status = 200,
          .type = file.type,
          .body = takes_gzip ? file.compressed : file.plain,
          .is_gzip = takes_gzip,
          .etag = file.etag};
}

}  // namespace tune::view
