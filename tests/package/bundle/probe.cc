// Uses every library of a bundle: prints what a Redis server on a socket (argument 1) answers.
#define DOCTEST_CONFIG_IMPLEMENT
#include <LBFGSB.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <png.h>
#include <yaml-cpp/yaml.h>
#include <zlib.h>
#include <cstdio>
#include <zmq.hpp>

#include <jpeglib.h>  // wants FILE

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

int main(int, char** argv) {
  const CLI::App app(zlibVersion());
  jpeg_error_mgr errors;
  jpeg_std_error(&errors);
  png_access_version_number();
  const LBFGSpp::LBFGSBParam<double> optimiser;
  if (Eigen::Vector2d(optimiser.ftol, 1).norm() < 1) return 1;
  zmq::context_t context;
  const zmq::socket_t socket(context, zmq::socket_type::dealer);
  const nlohmann::json number = YAML::Load("{answer: 42}")["answer"].as<int>();
  redisContext* redis = redisConnectUnix(argv[1]);
  auto* reply = static_cast<redisReply*>(redisCommand(redis, "PING"));
  if (reply == nullptr) {
    fmt::print("{}\n", redis->errstr);
    return 1;
  }
  fmt::print("{} {} doctest {}\n", number.dump(), reply->str, DOCTEST_VERSION_MAJOR);
  freeReplyObject(reply);
  redisFree(redis);
}
