#include "core/current_exception.h"

#include <cstdlib>
#include <memory>

#include <cxxabi.h>

#include "core/error.h"

namespace tune {

std::string describe_current_exception() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (const std::string& text) {
    return text;
  } catch (const char* text) {
    return text;
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    if (type == nullptr) return "threw something unknown";
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> name(
        abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), std::free);
    return std::string("threw something that is not a std::exception (") +
           (status == 0 ? name.get() : type->name()) + ")";
  }
}

std::optional<ErrorCode> code_of_current_exception() {
  try {
    throw;
  } catch (const Error& error) {
    return error.code();
  } catch (...) {
    return std::nullopt;
  }
}

}  // namespace tune
