// Errors of the framework and always-on assertions.
//
// tune::Error is what the world or a caller did wrong: its message says what was being done, the
// values, the cause and the remedy (lower case, no full stop). TUNE_CHECK is for programmer errors.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace tune {

enum class ErrorCode {
  kBadInput,       // the caller's input: options, YAML, paths, arguments (exit code 2)
  kTrialFailed,    // trials ended in ERROR (exit code 1)
  kStore,          // the store is lost, refuses or holds something unexpected (exit code 3)
  kIo,             // a file, folder or disk refused (exit code 3)
  kProcess,        // a process of the framework could not be started or died (exit code 3)
  kProtocol,       // a message or entry that cannot be read (exit code 3)
  kInterrupted,    // a signal ended the experiment early (exit code 128 + signal)
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

// The exit code of the command line for an error: 1, 2 or 3.
int exit_code(ErrorCode code);

namespace detail {

[[noreturn]] void check_failed(const char* expression, const char* file, int line,
                               const std::string& operands);

template <class T>
void print_operand(std::ostream& out, const T& operand) {
  if constexpr (requires { out << operand; }) {
    out << operand;
  } else if constexpr (std::is_enum_v<T>) {
    out << static_cast<long long>(operand);
  } else {
    out << "(a value)";
  }
}

template <class Left>
struct CheckedOperand {
  const Left& left;
  template <class Right, class Compare>
  std::string compare(const Right& right, const char* op, Compare holds) const {
    if (holds(left, right)) return {};
    std::ostringstream text;
    print_operand(text, left);
    text << ' ' << op << ' ';
    print_operand(text, right);
    return text.str();
  }
#define TUNE_DETAIL_COMPARE(op)                                                        \
  template <class Right>                                                               \
  std::string operator op(const Right& right) const {                                  \
    return compare(right, #op, [](const auto& a, const auto& b) { return a op b; });   \
  }
  TUNE_DETAIL_COMPARE(==)
  TUNE_DETAIL_COMPARE(!=)
  TUNE_DETAIL_COMPARE(<)
  TUNE_DETAIL_COMPARE(<=)
  TUNE_DETAIL_COMPARE(>)
  TUNE_DETAIL_COMPARE(>=)
#undef TUNE_DETAIL_COMPARE
  operator std::string() const { return left ? std::string() : std::string("false"); }
};

struct CheckStart {
  template <class Left>
  CheckedOperand<Left> operator<(const Left& left) const {
    return {left};
  }
};

}  // namespace detail
}  // namespace tune

// Ends the process when the expression does not hold, and prints both operands of a comparison.
// Write one comparison per check, without && or ||: `TUNE_CHECK(held <= capacity);`
#define TUNE_CHECK(...)                                                                    \
  do {                                                                                     \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wparentheses\"")     \
    if (const std::string tune_detail_operands = ::tune::detail::CheckStart() < __VA_ARGS__; \
        !tune_detail_operands.empty()) [[unlikely]]                                        \
      ::tune::detail::check_failed(#__VA_ARGS__, __FILE__, __LINE__, tune_detail_operands); \
    _Pragma("GCC diagnostic pop")                                                          \
  } while (false)
