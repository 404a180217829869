// The page's own files, as answers.
#pragma once

#include <string_view>

#include "tune/view/worker.h"

namespace tune::view {

// "/" is index.html; 404 for what is not embedded.
Reply page_file(std::string_view path, bool takes_gzip, std::string_view known_etag);

// The answer of the address with the token: it goes on to the page by itself. A redirect would be
// part of the navigation that began elsewhere (a link in a mail, say), in which a browser does not
// send a SameSite=Strict cookie.
extern const char* const kWelcome;

}  // namespace tune::view
