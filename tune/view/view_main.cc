// The `tune-view` program, which `tune view` becomes.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "core/error.h"
#include "core/platform/files.h"
#include "tune/view/server.h"

namespace tune::view {

namespace {

constexpr int kNice = 5;

struct Arguments {
  std::string directory = "results";
  std::string port_file;
  ServerOptions server = {.port = 8311};
};

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "this machine";
}

// A sweep that needs all processors has them: whoever looks waits, not the sweep. Threads that are
// begun later inherit this.
void give_way() {
  setpriority(PRIO_PROCESS, 0, kNice);
  const sched_param none{};
  sched_setscheduler(0, SCHED_BATCH, &none);
}

void serve(const Arguments& arguments) {
  give_way();
  check_reach(arguments.server);
  Storage storage(arguments.directory);
  Server server(arguments.server, std::move(storage));
  server.stop_on_signals();
  if (!arguments.port_file.empty()) {
    write_file_atomically(arguments.port_file, server.address() + "\n", Readers::kOwnerOnly);
  }
  fmt::print("{}\n", server.address());
  if (server.is_on_loopback()) {
    fmt::print(
        "From another machine: ssh -L {0}:127.0.0.1:{0} {1}, then open that address there.\n",
        server.port(), host_name());
  }
  std::fflush(stdout);
  server.run();
  // Orders are done. A thread may be finding the importance of parameters from a hundred thousand
  // files: its answer is no longer wanted.
  std::fflush(nullptr);
  _exit(0);
}

int parse_and_serve(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Shows experiments as a page in a browser.", "tune view");
  app.add_option("DIR", arguments.directory,
                 "an experiment's folder, or the storage of several (results)");
  app.add_option("--port", arguments.server.port, "port to listen on; 0 takes a free one (8311)")
      ->type_name("N");
  app.add_option("--port-file", arguments.port_file, "write the page's address into this file")
      ->type_name("F");
  app.add_option("--address", arguments.server.address,
                 "address to listen on (127.0.0.1); others than loopback's need TLS")
      ->type_name("A");
  app.add_option("--certificate", arguments.server.tls.certificate,
                 "certificate of TLS with those that vouch for it, PEM")
      ->type_name("F");
  app.add_option("--key", arguments.server.tls.key, "the certificate's key, PEM")->type_name("F");
  app.add_flag("--control", arguments.server.control, "let the page change sweeps that run");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::kBadInput, fmt::format("{}; see tune view --help", error.what()));
  }
  serve(arguments);
  return 0;
}

}  // namespace

}  // namespace tune::view

int main(int argc, char** argv) {
  try {
    return tune::view::parse_and_serve(argc, argv);
  } catch (const tune::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return tune::exit_code(error.code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
  }
  return 3;
}
