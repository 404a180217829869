#include "core/error.h"

#include <doctest/doctest.h>

#include <string>

namespace tune {
namespace {

TEST_CASE("exit codes follow the kind of error") {
  CHECK(exit_code(ErrorCode::kTrialFailed) == 1);
  CHECK(exit_code(ErrorCode::kBadInput) == 2);
  for (const ErrorCode code :
       {ErrorCode::kStore, ErrorCode::kIo, ErrorCode::kProcess, ErrorCode::kProtocol}) {
    CHECK(exit_code(code) == 3);
  }
}

TEST_CASE("a check that holds does nothing and evaluates its operands once") {
  int calls = 0;
  TUNE_CHECK(++calls == 1);
  CHECK(calls == 1);
}

TEST_CASE("a check that does not hold would print both operands") {
  const int held = 3;
  CHECK(std::string((detail::CheckStart() < held) <= 2) == "3 <= 2");
  CHECK(std::string((detail::CheckStart() < std::string("a")) == std::string("b")) == "a == b");
  CHECK(std::string((detail::CheckStart() < ErrorCode::kStore) != ErrorCode::kStore) == "2 != 2");
  CHECK(std::string(detail::CheckStart() < false) == "false");
  CHECK(std::string((detail::CheckStart() < held) < 4).empty());
}

}  // namespace
}  // namespace tune
