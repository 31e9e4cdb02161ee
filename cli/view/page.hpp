// The page that `view` serves or writes, and the policy that keeps everything else out of it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model_document.hpp"

namespace ballast::cli {

// What a browser may do in the page: run the page's own script, known by its digest, and nothing else. A served page
// may also ask its server.
std::string content_security_policy(PageKind kind);

// The page of a server; its documents are asked for.
std::string served_page();

// A page with these documents in it, by name. No document becomes markup: each is packed.
std::string report_page(const std::vector<std::pair<std::string, std::string>>& documents, std::string_view title);

}  // namespace ballast::cli
