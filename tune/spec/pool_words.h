// The words of an engine's commands with their placeholders. No shell reads them: a value with
// spaces stays one word. Pure.
//
//   ${name}       of the allocation: tune-<experiment>-<number>
//   ${prefix}     that of all allocations of the experiment: tune-<experiment>-
//   ${experiment} the same without the last dash, for a label
//   ${id}         the engine's own, as start has printed it
//   ${script}     a file that starts the agent; its first argument is the name
//   ${join_file}  a file with the token, for `tune agent --join-file`
//   ${log}        a file for what the agent prints
//   ${host}       the host that is wanted; the word is left out when any will do
//   ${exclude}    hosts that are not wanted, with commas; the word is left out when there are none
//   ${if:exclude} nothing, and the word is left out when there are none; so with ${if:host}
//   ${cpu} ${gpu} ${memory_mb} ${time_s} ${time_min} ${drain_s}   of the pool; 0: not given
//   ${word:log}   the value of ${log}, or of any other, as one word of a shell
//   $${           the two characters ${
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tune/spec/experiment_spec.h"

namespace tune {

using PoolValues = std::map<std::string, std::string>;

// The words with their values. Throws Error (kBadInput) for a placeholder without one.
std::vector<std::string> filled_pool_words(const std::vector<std::string>& words,
                                           const PoolValues& values);
// Complains about placeholders that there are not, at `path`/<number of the word>.
void check_pool_words(const std::vector<std::string>& words, const std::string& path,
                      std::vector<Complaint>& complaints);

}  // namespace tune
