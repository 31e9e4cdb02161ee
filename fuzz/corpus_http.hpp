// Heads of requests to the page of `view`.
#pragma once

#include <string>
#include <vector>

namespace ballast::fuzz {

inline std::vector<std::string> http_requests() {
  const std::string host = "Host: 127.0.0.1:8000\r\n", cookie = "Cookie: ballast-8000=COOKIE\r\n";
  std::vector<std::string> heads = {
      "",
      "\r\n",
      "GET\r\n",
      "GET / HTTP/9\r\n",
      "GET x HTTP/1.1\r\n",
      "POST / HTTP/1.1\r\n" + host,
      "GET / HTTP/1.1\r\n: x\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n",
      "GET / HTTP/1.1\r\nno colon\r\n",
      "GET / HTTP/1.1\r\nHost: x\nOrigin: y\r\n",
      "GET / HTTP/1.1\r\nname\r: \nvalue\r\n",
      "GET /?token=TOKEN HTTP/1.1\r\n" + host,
      "GET /?token=TOKEN&token=x HTTP/1.1\r\n" + host,
      "GET /?a=b&&c&=d&token=%54TOKEN HTTP/1.0\r\n" + host,
      "GET /?token=TOKEN HTTP/1.1\r\nhost:localhost:8000\r\nOrigin: http://localhost:8000\r\n",
      "GET /?token=TOKEN HTTP/1.1\r\nHost: evil.example:8000\r\n"};
  for (const char* path : {"/", "/api/model", "/api/stats/0?numbers=0,1,2&histogram=yes", "/%2e%2e/etc/passwd",
                           "/a%2fb", "/%", "/%4", "/%zz", "/a+b?c+d=%20", "//", "/api//0/"}) {
    heads.push_back("GET " + std::string(path) + " HTTP/1.1\r\n" + host + cookie);
  }
  for (const char* header : {"Origin: null", "Origin: http://127.0.0.1:8000", "ORIGIN:\thttp://evil.example \t",
                             "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site",
                             "Cookie: a=b; ballast-8001=COOKIE", "Cookie: x; ballast-8000=COOKIE; y"}) {
    heads.push_back("GET /api/model HTTP/1.1\r\n" + host + header + "\r\n" + cookie);
  }
  return heads;
}

}  // namespace ballast::fuzz
