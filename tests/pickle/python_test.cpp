// Compares with Python's own pickler and unpickler: oracle.py makes random objects, pickles them with every protocol,
// and says what each pickle holds.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "builders/pickle_writer.hpp"
#include "formats/pickle/machine.hpp"
#include "pickle/render.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

// Returns nothing if there is no Python 3.
std::string oracle(const std::string& arguments) {
  const std::string command = "python3 '" BALLAST_SOURCE_DIR "/tests/pickle/oracle.py' " + arguments;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string all;
  char part[4096];
  while (const std::size_t size = std::fread(part, 1, sizeof part, pipe.get())) all.append(part, size);
  return all;
}

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

// Returns the rendering, or "!" and the reason why there is none.
std::string rendering_of(const std::string& bytes) {
  pickle::Graph graph(test::source_of(bytes));
  try {
    const auto pickle = pickle::run(graph, 0, bytes.size(), Limits{});
    return test::render(graph, pickle.root);
  } catch (const Error& error) {
    return std::string("!") + error.what();
  }
}

struct Tally {
  std::size_t same = 0, only_python = 0, only_ours = 0, different = 0;
};

// Compares line by line. `tolerate` says by our complaint whether we refuse on purpose what Python reads.
template <class Tolerate>
Tally compare(const std::string& lines, Tolerate tolerate) {
  Tally tally;
  for (std::size_t from = 0; from < lines.size();) {
    const std::size_t tab = lines.find('\t', from), end = lines.find('\n', tab);
    const std::string hex = lines.substr(from, tab - from), expected = lines.substr(tab + 1, end - tab - 1);
    from = end + 1;
    const std::string ours = rendering_of(from_hex(hex));
    const bool refused = ours.starts_with('!');
    if (ours == expected || (refused && expected == "!")) {
      ++tally.same;
    } else if (expected == "!") {
      ++tally.only_ours;
    } else if (refused && tolerate(ours)) {
      ++tally.only_python;
    } else {
      ++tally.different;
      ADD_FAILURE() << hex << "\nexpected " << expected << "\nours     " << ours;
      if (tally.different == 10) break;
    }
  }
  return tally;
}

// Python lets a pickle change any object, and only Python's unpickler in C looks at frames.
bool is_on_purpose(const std::string& complaint) {
  return complaint.find(" changes ") != std::string::npos || complaint.find("FRAME says") != std::string::npos;
}

TEST(PickleMachine, ReadsWhatPythonWrites) {
  const std::string lines = oracle("20260301 1800");
  if (lines.empty()) GTEST_SKIP() << "there is no Python 3 here";
  const Tally tally = compare(lines, [](const std::string&) { return false; });
  EXPECT_GT(tally.same, 1500u);
  EXPECT_EQ(tally.only_ours, 0u);
}

TEST(PickleMachine, ReadsDamagedPicklesAsPythonDoes) {
  const std::string lines = oracle("7 600 6");
  if (lines.empty()) GTEST_SKIP() << "there is no Python 3 here";
  const Tally tally = compare(lines, is_on_purpose);
  EXPECT_GT(tally.same, 2000u) << tally.only_python << " " << tally.only_ours;
}

}  // namespace
}  // namespace ballast
