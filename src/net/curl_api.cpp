#include "net/curl_api.hpp"

#include <ballast/error.hpp>

#include "core/shared_library.hpp"

namespace ballast::net {
namespace {

SharedLibrary load_curl() {
  try {
    return SharedLibrary("libcurl.so.4", "libcurl");
  } catch (const Error& error) {
    throw Error(error.code(), error.message()).hint("install libcurl; Debian's package is libcurl4");
  }
}

}  // namespace

CurlApi::CurlApi() {
  const SharedLibrary library = load_curl();
  decltype(&curl_global_init) global_init = nullptr;
  const auto find = [&](auto& function, const char* name) { library.find(function, name); };
  find(global_init, "curl_global_init");
  find(easy_init, "curl_easy_init");
  find(easy_setopt, "curl_easy_setopt");
  find(easy_getinfo, "curl_easy_getinfo");
  find(easy_reset, "curl_easy_reset");
  find(easy_cleanup, "curl_easy_cleanup");
  find(easy_strerror, "curl_easy_strerror");
  find(multi_init, "curl_multi_init");
  find(multi_setopt, "curl_multi_setopt");
  find(multi_add_handle, "curl_multi_add_handle");
  find(multi_remove_handle, "curl_multi_remove_handle");
  find(multi_perform, "curl_multi_perform");
  find(multi_poll, "curl_multi_poll");
  find(multi_info_read, "curl_multi_info_read");
  find(multi_cleanup, "curl_multi_cleanup");
  find(slist_append, "curl_slist_append");
  find(slist_free_all, "curl_slist_free_all");
  find(url, "curl_url");
  find(url_set, "curl_url_set");
  find(url_get, "curl_url_get");
  find(url_cleanup, "curl_url_cleanup");
  find(free, "curl_free");
  if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) throw Error(Errc::io, "libcurl cannot be set up");
}

const CurlApi& curl() {
  static const CurlApi api;
  return api;
}

}  // namespace ballast::net
