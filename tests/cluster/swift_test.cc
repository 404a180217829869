// Checkpoints in a real OpenStack Swift that speaks S3 and checks signatures.
#include <doctest/doctest.h>

#include <signal.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "cluster/cluster.h"
#include "core/object_folder.h"
#include "core/platform/http.h"
#include "core/platform/s3_store.h"
#include "core/s3_request.h"
#include "core/sha256.h"
#include "process/far_machines.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

// Of this host, gone with it. Its variables are this process's, too.
class Swift {
 public:
  static bool is_missing() {
    if (is_not_asked_for(Takes::kMinutes)) return true;
    const Sandbox box;
    if (box.run({"sh", "-c", "command -v swift-proxy-server && command -v swift-object-server"})
            .code == 0) {
      return false;
    }
    testing::skip("there is no Swift here: bash tests/cluster/setup.sh installs it");
    return true;
  }
  Swift() {
    const Finished started = box_.run({"bash", script(), "start", folder()});
    INFO(started.err);
    REQUIRE(started.code == 0);
    std::ifstream in(folder() + "/environment");
    for (std::string word; in >> word;) {
      const std::size_t equals = word.find('=');
      if (equals != word.npos) variables[word.substr(0, equals)] = word.substr(equals + 1);
    }
    variables["AWS_CONFIG_FILE"] = variables["AWS_SHARED_CREDENTIALS_FILE"] = "/dev/null";
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    make_bucket();
  }
  ~Swift() {
    box_.run({"bash", script(), "stop", folder()});
    for (const auto& [name, value] : variables) unsetenv(name.c_str());
  }
  void use(Sandbox& box) const {
    for (const auto& [name, value] : variables) box.set(name, value);
  }
  std::map<std::string, std::string> variables;

 private:
  static std::string script() { return TUNE_SOURCE_DIR "/tests/cluster/swift_on_one_host.sh"; }
  std::string folder() const { return (box_.path() / "swift").string(); }
  void make_bucket() {
    const std::string endpoint = variables.at("AWS_ENDPOINT_URL");
    S3Signed put;
    put.method = "PUT";
    put.path = "/checkpoints";
    put.content_sum = to_hex(sha256(""));
    put.time = fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::time(nullptr)));
    put.region = variables.at("AWS_REGION");
    put.headers = {{"host", endpoint.substr(endpoint.find("//") + 2)},
                   {"x-amz-content-sha256", put.content_sum},
                   {"x-amz-date", put.time}};
    const AwsCredentials credentials{variables.at("AWS_ACCESS_KEY_ID"),
                                     variables.at("AWS_SECRET_ACCESS_KEY"), ""};
    HttpRequest request{.method = "PUT", .url = endpoint + put.path};
    for (const auto& [name, value] : put.headers) request.headers.push_back(name + ": " + value);
    request.headers.push_back("authorization: " + s3_authorization(put, credentials));
    HttpAnswer made;
    const auto is_made = [&] {  // its servers may begin a while after its proxy
      made = ask_http(request);
      return made.status == 200;
    };
    Sandbox::eventually(is_made, seconds(60));
    INFO(made.error << made.body);
    REQUIRE(made.status == 200);
  }

  Sandbox box_;
};

TEST_CASE("a real Swift takes our signatures, whatever a name or an object holds") {
  if (Swift::is_missing()) return;
  const Swift swift;
  S3Store store({"s3://checkpoints/a prefix/\xc3\xa4 & $+='()*!@,;:"});
  prove(store, "nonce");
  std::string large(9u << 20, 'x');
  for (std::size_t i = 0; i < large.size(); i += 4097) large[i] = static_cast<char>(i);
  const std::vector<std::string> names{"a/1", "a/b c%20+", "a/\xe2\x82\xac", "a/z~"};
  for (const std::string& name : names) store.put(name, name);
  store.put("large", large);
  store.put("empty", "");
  CHECK(store.get("large") == large);
  CHECK(store.get("empty").empty());
  for (const std::string& name : names) CHECK(store.get(name) == name);
  CHECK(all_names(store, "a/").size() == names.size());
  CHECK(store.list("a/", names[0]).size() == names.size() - 1);
  for (int i = 0; i < 1005; ++i) store.put(fmt::format("many/{:04}", i), "");
  CHECK(all_names(store, "many/").size() == 1005);
  remove_folder(store, "a");
  CHECK(all_names(store, "a/").empty());
  store.remove("absent");

  const auto refused = [](const char* name, const std::string& value, const char* said) {
    const std::string former = std::getenv(name);
    setenv(name, value.c_str(), 1);
    CHECK_HAS(
        testing::refusal([] { S3Store({"s3://checkpoints/x"}).put("y", "z"); }, ErrorCode::kIo),
        said);
    setenv(name, former.c_str(), 1);
  };
  refused("AWS_SECRET_ACCESS_KEY", "wrong", "SignatureDoesNotMatch");
  refused("AWS_ACCESS_KEY_ID", "test:nobody", "403");
  CHECK_HAS(
      testing::refusal([] { S3Store({"s3://no-such-bucket/x"}).put("y", "z"); }, ErrorCode::kIo),
      "404 NoSuchBucket");
}

TEST_CASE("a sweep over a real Swift loses a machine and its driver, and nothing else") {
  if (Swift::is_missing() || !has_mounts()) return;
  const Swift swift;
  const std::string text = joinable_sweep(8, 100, "lease_s: 3\npatience_s: 20\n");
  FarMachines sweep(text + "storage: s3://checkpoints/sweeps\n", "1",
                    [&](Sandbox& box) { swift.use(box); });
  auto first = sweep.far("a");
  CHECK(Sandbox::eventually([&] { return sweep.runs_a_trial(*first); }));
  auto second = sweep.far("b");
  CHECK(Sandbox::eventually([&] { return has_results(sweep.box, "results/s", 16); }, seconds(60)));
  first->signal(SIGKILL);
  CHECK(Sandbox::eventually([&] { return has_results(sweep.box, "results/s", 24); }, seconds(60)));
  sweep.run->signal(SIGKILL);
  sweep.run->wait();
  const Finished resumed = sweep.box.tune({"resume", "results/s"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(second->wait(seconds(30)).code == 0);
  check_complete(sweep.box, "results/s", 8, 8);
  const Finished best = sweep.box.tune({"best", "results/s", "--checkpoint"});
  CHECK(best.code == 0);
  CHECK(fs::is_directory(sweep.box.path() / lines_of(best.out).at(0)));

  Sandbox calm;
  calm.write("sweep.yaml", text);
  CHECK(calm.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"}).code == 0);
  CHECK(lasting_table(sweep.box, "results/s") == lasting_table(calm, "results/s"));
}

}  // namespace
}  // namespace tune
