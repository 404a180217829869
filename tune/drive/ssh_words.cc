// A host that does not see the experiment's folder gets the token and the script through the
// connection, into a folder of its own below the user's cache: never on a command line, where all
// users of the host read it. The agent reads that file again when it looks for its driver, so each
// list brings the newest token there, as after a rotation or when the driver has moved.
#include "tune/drive/ssh_words.h"

#include <fmt/format.h>

#include "core/agent/agent.h"

namespace tune {

namespace {

using Words = std::vector<std::string>;

// ---- On the driver's machine

// Runs "$@" with the token in a first line, then the script, to read.
constexpr const char* kSend =
    R"(join=$1 script=$2; shift 2; { cat -- "$join" && cat -- "$script"; } | "$@")";
// Runs "$@" with the token to read, if there is one yet.
constexpr const char* kSendToken =
    R"(join=$1; shift; [ ! -r "$join" ] || exec "$@" <"$join"; exec "$@" </dev/null)";
// Fetches what an agent has printed there, if it was not here, and shows the end of it.
constexpr const char* kFetchLog = R"(log=$1; shift; part=$log.$$
"$@" >"$part" 2>/dev/null && [ -s "$part" ] && mv -f -- "$part" "$log" || rm -f -- "$part"
[ ! -e "$log" ] || tail -n 12 -- "$log")";

// ---- On the host: one line each for any login shell, without a quote

// `$token` to the file that an agent there reads. Two hosts may have one home.
constexpr const char* kKeepToken = R"(echo "$token" >"$folder/join.$(uname -n).$$" && )"
                                   R"(mv -f "$folder/join.$(uname -n).$$" "$folder/join")";
// "$@": the script, its two arguments, the log and the join file, as the driver names them, and the
// experiment. Leaves the first four as they are here.
constexpr const char* kTake =
    R"sh(IFS= read -r token; if [ -r "$1" ] && [ "$(cat "$5" 2>/dev/null)" = "$token" ]; then )sh"
    R"sh(cat >/dev/null; else folder=$HOME/.cache/tune/$6; (umask 077; mkdir -p "$folder" && {} && )sh"
    R"sh(cat >"$folder/agent.sh.$$" && chmod 700 "$folder/agent.sh.$$" && )sh"
    R"sh(mv -f "$folder/agent.sh.$$" "$folder/agent.sh") || exit; )sh"
    R"sh(export TUNE_JOIN_FILE="$folder/join"; set -- "$folder/agent.sh" "$2" "$3" "$folder/$2.log"; fi; )sh";
constexpr const char* kTakeArguments =
    "${word:script} ${word:name} ${word:host} ${word:log} ${word:join_file} ${word:experiment}";
constexpr const char* kRenew =
    R"(folder=$HOME/.cache/tune/$1; [ ! -d "$folder" ] || ! IFS= read -r token || )"
    R"((umask 077; {}); )";

void add(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// One word of a shell's line.
std::string in_sh(const std::string& program, const std::string& arguments) {
  return fmt::format("exec sh -c '{}' sh {}", program, arguments);
}

std::string with_token_kept(std::string program) {
  return program.replace(program.find("{}"), 2, kKeepToken);
}

}  // namespace

EngineWords ssh_hosts(const PoolOptions& pool, const EnginePlace& place) {
  const Words ssh = {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"};
  EngineWords engine;
  engine.start = {"sh", "-c", kSend, "sh", "${join_file}", "${script}"};
  add(engine.start, ssh);
  // With a tunnel the connection is the way back, so it stays as long as the agent.
  std::string begin = "exec setsid -f";
  if (pool.tunnel) {
    const int relay = tunnel_port_of(place.relay_port);
    begin = fmt::format("exec env {}={}", kRelayPortVariable, relay);
    engine.start = started_apart(engine.start);
    const auto back = [](int there, int here) {
      return fmt::format("127.0.0.1:{}:127.0.0.1:{}", there, here);
    };
    add(engine.start,
        {"-o", "ExitOnForwardFailure=yes", "-o", "ServerAliveInterval=15", "-R",
         back(place.tunnel_port, place.driver_port), "-R", back(relay, place.relay_port)});
  }
  add(engine.start, pool.submit);
  add(engine.start, {"${host}", in_sh(with_token_kept(kTake) + begin +
                                          R"( "$1" "$2" "$3" >>"$4" 2>&1 </dev/null)",
                                      kTakeArguments)});
  const auto at_host = [&](Words words, const std::string& command) {
    add(words, ssh);
    add(words, pool.submit);
    add(words, {"${host}", command});
    return words;
  };
  engine.check = at_host({}, "true");
  engine.check.insert(engine.check.begin() + 1, "-n");
  // The agent, or the script that is to become it when the lines of `setup` are done, however long
  // these take. The brackets keep the pattern from finding the shell that holds it.
  engine.list = at_host(
      {"sh", "-c", kSendToken, "sh", "${join_file}"},
      in_sh(with_token_kept(kRenew) + R"(pgrep -fa "agent[.]sh $2|[-]-name $2" || test $? = 1)",
            "${word:experiment} ${word:prefix}"));
  engine.stop = at_host({}, "pkill -f 'agent[.]sh ${name} |[-]-name ${name}$' || test $? = 1");
  engine.stop.insert(engine.stop.begin() + 1, "-n");
  engine.last_words = at_host({"sh", "-c", kFetchLog, "sh", "${log}"},
                              in_sh(R"(tail -c 4000000 "$HOME/.cache/tune/$1/$2.log")",
                                    "${word:experiment} ${word:name} </dev/null"));
  engine.finish = at_host({}, in_sh(R"(rm -rf "$HOME/.cache/tune/$1")", "${word:experiment}"));
  engine.finish.insert(engine.finish.begin() + 1, "-n");
  engine.list_form = ListForm::kProcesses;
  engine.id_form = IdForm::kNone;
  engine.list_by_host = true;
  engine.finish_by_host = true;
  for (const PoolHost& host : pool.hosts) engine.hosts.push_back(host.name);
  return engine;
}

}  // namespace tune
