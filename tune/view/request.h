// The words of a request as the server takes them: how many, and which of them the guard is told.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>
#include <vector>

#include "tune/view/guard.h"
#include "tune/view/orders.h"

namespace tune::view {

inline constexpr std::size_t kMaxHeaderBytes = 16u << 10;

using Request = boost::beast::http::request<boost::beast::http::string_body>;
using RequestParser = boost::beast::http::request_parser<boost::beast::http::string_body>;

// Before the first byte.
inline void set_limits(RequestParser& parser, bool allows_orders) {
  parser.header_limit(kMaxHeaderBytes);
  parser.body_limit(std::uint64_t{allows_orders ? kMaxOrderBytes : 0});
}

inline Asked asked_of(const Request& request) {
  using boost::beast::http::field;
  const auto all_of = [&](field name) {
    std::vector<std::string> values;
    const auto [begin, end] = request.equal_range(name);
    for (auto at = begin; at != end; ++at) values.emplace_back(at->value());
    return values;
  };
  return {.method = std::string(request.method_string()),
          .target = std::string(request.target()),
          .hosts = all_of(field::host),
          .origins = all_of(field::origin),
          .cookies = std::string(request[field::cookie]),
          .authorization = std::string(request[field::authorization]),
          .fetch_site = std::string(request["Sec-Fetch-Site"]),
          .fetch_mode = std::string(request["Sec-Fetch-Mode"]),
          .content_type = std::string(request[field::content_type])};
}

}  // namespace tune::view
