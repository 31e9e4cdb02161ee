// TarFile: a tar archive in a line or two, right or wrong, written without the library under test.
//
//   TarFile().file("a", "data").link("b", "a")
//   TarFile().file("a", "data").change([](std::string& header) { header[124] = '-'; })     the checksum is corrected
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ballast/source.hpp>

namespace ballast::test {

class TarFile {
 public:
  TarFile& member(std::string_view name, char type, std::string_view data = "") {
    std::string header(512, '\0');
    put(header, 0, name.substr(0, 100));
    put(header, 100, "0000644");
    put(header, 108, "0000000");
    put(header, 116, "0000000");
    put(header, 124, octal(data.size(), 11));
    put(header, 136, "00000000000");
    header[156] = type;
    put(header, 257, std::string_view("ustar\00000", 8));
    members_.push_back({std::move(header), std::string(data), {}});
    seal(members_.back().header);
    return *this;
  }
  TarFile& file(std::string_view name, std::string_view data) { return member(name, '0', data); }

  // Adds a pax record for the next member.
  TarFile& pax(std::string_view key, std::string_view value) {
    return member("PaxHeader", 'x', pax_record(key, value));
  }
  TarFile& long_name(std::string_view name) { return member("././@LongLink", 'L', std::string(name) + '\0'); }

  TarFile& change(const std::function<void(std::string&)>& lie) {
    lie(members_.back().header);
    seal(members_.back().header);
    return *this;
  }
  TarFile& change_unsealed(const std::function<void(std::string&)>& lie) {
    lie(members_.back().header);
    return *this;
  }
  TarFile& ending(std::string_view bytes) {  // instead of two blocks of zeros
    ending_ = bytes;
    return *this;
  }

  std::string text() const {
    std::string text;
    for (const Member& m : members_) {
      text += m.header + m.data;
      text.resize((text.size() + 511) / 512 * 512, '\0');
    }
    return text + ending_;
  }
  SourcePtr source() const {
    const std::string text = this->text();
    const auto bytes = std::as_bytes(std::span(text));
    return memory_source({bytes.begin(), bytes.end()}, "file");
  }

  static void put(std::string& header, std::size_t offset, std::string_view text) {
    header.replace(offset, text.size(), text);
  }
  static std::string octal(std::uint64_t value, std::size_t digits) {
    std::string text(digits, '0');
    for (std::size_t i = digits; i-- > 0; value /= 8) text[i] = static_cast<char>('0' + value % 8);
    return text;
  }
  static std::string pax_record(std::string_view key, std::string_view value) {
    const std::string rest = " " + std::string(key) + "=" + std::string(value) + "\n";
    std::size_t size = rest.size() + 1;
    while (size != rest.size() + std::to_string(size).size()) size = rest.size() + std::to_string(size).size();
    return std::to_string(size) + rest;
  }

 private:
  struct Member {
    std::string header, data, padding;
  };

  static void seal(std::string& header) {
    put(header, 148, "        ");
    std::uint64_t sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    put(header, 148, octal(sum, 6) + '\0');
  }

  std::vector<Member> members_;
  std::string ending_ = std::string(1024, '\0');
};

}  // namespace ballast::test
