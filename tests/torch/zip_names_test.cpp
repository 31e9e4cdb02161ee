// PyTorch's reader of zips does not tell upper case from lower case.
#include "formats/torch/zip_names.hpp"

#include <gtest/gtest.h>

#include "builders/zip_file.hpp"

namespace ballast::torch {
namespace {

using test::ZipFile;

std::vector<std::string> findings_of(std::initializer_list<const char*> names) {
  ZipFile file;
  for (const char* name : names) file.stored(name, "x");
  std::vector<std::string> what;
  for (const archive::ZipFinding& finding : find_names_by_case(archive::read_zip(file.source(), {})))
    what.push_back(finding.what);
  return what;
}

TEST(TorchZipNames, ThatPyTorchTakesForOthersAreFound) {
  const std::vector<std::string> misspelled = {"PyTorch's reader takes member \"a/DATA.PKL\" for \"data.pkl\""};
  EXPECT_EQ(findings_of({"a/DATA.PKL", "a/data/0"}), misspelled);
  EXPECT_EQ(findings_of({"a/data.pkl", "a/Data/0"}).size(), 1u);
  EXPECT_EQ(findings_of({"a/data.pkl", "a/Byteorder"}).size(), 1u);
  EXPECT_EQ(findings_of({"a/data.pkl", "a/CONSTANTS.pkl", "a/vErsion"}).size(), 2u);
  EXPECT_EQ(findings_of({"Data.pkl"}).size(), 1u);
}

TEST(TorchZipNames, ThatDifferOnlyInCaseAreFound) {
  const std::vector<std::string> twice = {
      "members \"a/data.pkl\" and \"A/data.pkl\" differ only in the case of letters, which PyTorch's reader does not "
      "see"};
  EXPECT_EQ(findings_of({"a/data.pkl", "A/data.pkl"}), twice);
  EXPECT_EQ(findings_of({"a/data.pkl", "a/extra/x", "a/extra/X"}).size(), 1u);
}

TEST(TorchZipNames, MayHaveCapitalsOfTheirOwn) {
  EXPECT_TRUE(findings_of({"MyModel/data.pkl", "MyModel/data/0", "MyModel/extra/README"}).empty());
  EXPECT_TRUE(findings_of({"W.npy", "w.npy"}).empty()) << "not a torch zip";
}

}  // namespace
}  // namespace ballast::torch
