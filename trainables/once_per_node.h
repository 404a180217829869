// One of many processes of a node runs a function, the others wait for it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace tune {

// Among all processes that call this with the same folder and name, one runs `function` while the
// others wait; later callers find that it is done. Its exception is thrown in that process, and the
// message as std::runtime_error in all others. When a process dies in it, the next one runs it.
// Throws Error (kIo) when the folder cannot be written. The lock is the kernel's (flock), so use a
// local folder.
void run_once(const std::filesystem::path& directory, const std::string& name,
              const std::function<void()>& function);

}  // namespace tune
