// One of many processes of a node does something, the others wait for it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace tune {

// Among all processes that call this with the same folder and name, one runs `function` while the
// others wait; later callers find that it is done. What it throws is thrown in that process, and
// its message as std::runtime_error in all others. A process that dies in it gives its turn to the
// next. Throws Error (kIo) when the folder cannot be written. The lock is the kernel's (flock), so
// a local folder is wanted.
void run_once(const std::filesystem::path& directory, const std::string& name,
              const std::function<void()>& function);

}  // namespace tune
