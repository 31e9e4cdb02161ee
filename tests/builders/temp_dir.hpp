// TempDir: a test's own folder, which is removed afterwards, and short ways to put files into it.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace ballast::test {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const;

  // Returns the path.
  std::string write(std::string_view name, std::string_view content) const;
  std::string read(std::string_view name) const;
  std::set<std::string> names() const;

 private:
  std::string path_;
};

}  // namespace ballast::test
