// Runs a function in the ranks of a group, each in a forked process, as a worker is. The calling
// process must not have computed anything with LibTorch: its children could not.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "trainables/torch/process_group.h"

namespace tune::testing {

struct RankEnd {
  std::vector<double> values;  // what the function returned
  std::string error;           // or what it threw
  int signal = 0;              // or which signal ended it
};

using RankFunction = std::function<std::vector<double>(const Rendezvous&)>;

// Starts `size` ranks and waits for them, 60 s at most (then they are killed).
std::vector<RankEnd> run_ranks(int size, const RankFunction& function);

// The same with the group formed: what most tests want.
using GroupFunction = std::function<std::vector<double>(ProcessGroup&)>;
std::vector<RankEnd> run_group(int size, const GroupFunction& function,
                               std::chrono::milliseconds timeout = std::chrono::seconds(30));

// In a rank, whose checks nobody hears of: whether the call is refused as bad input, with this part
// in the message.
bool is_refused(const std::function<void()>& call, const std::string& part);

// Of rank 0; fails the test with the error of any rank that has one.
std::vector<double> values_of(const std::vector<RankEnd>& ends);
// All ranks have the same values.
bool are_equal(const std::vector<RankEnd>& ends);
// Every element, row by row; none of one that is undefined.
std::vector<double> doubles(const at::Tensor& tensor);
double greatest_difference(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace tune::testing
