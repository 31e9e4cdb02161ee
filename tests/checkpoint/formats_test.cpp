// The table of formats: what everybody who reads it relies on.
#include <gtest/gtest.h>

#include <set>

#include <ballast/save.hpp>

#include "formats/all.hpp"

namespace ballast {
namespace {

TEST(AllFormats, CanBeReadAndSaySo) {
  for (const FileFormat* format : all_formats()) {
    EXPECT_FALSE(format->bytes.empty()) << format->name;
    EXPECT_TRUE(format->begins != nullptr || format->is_in != nullptr) << format->name;
    const bool is_read = format->read != nullptr || format->is_in != nullptr || format == &kZipArchive;
    EXPECT_TRUE(is_read) << format->name;
    EXPECT_EQ(format->read_set == nullptr, format->set_of == nullptr) << format->name;
    EXPECT_FALSE(format->holds_files && format->begins == nullptr) << format->name;
  }
}

TEST(AllFormats, HaveEndingsOfTheirOwn) {
  std::set<std::string_view> endings, usual_names;
  for (const FileFormat* format : all_formats()) {
    for (const Ending& ending : format->endings) {
      EXPECT_TRUE(ending.text.starts_with('.')) << ending.text;
      EXPECT_TRUE(ending.usual_name.ends_with(ending.text)) << ending.usual_name;
      EXPECT_TRUE(endings.insert(ending.text).second) << ending.text;
      EXPECT_TRUE(usual_names.insert(ending.usual_name).second) << ending.usual_name;
      EXPECT_EQ(format_by_ending("folder/x" + std::string(ending.text)), format);
      EXPECT_EQ(format_by_ending("folder/" + std::string(ending.text)), nullptr) << "a hidden file without an ending";
    }
  }
  EXPECT_EQ(format_by_ending("x.onnx"), nullptr);
  EXPECT_EQ(format_by_ending(""), nullptr);
}

TEST(AllFormats, ThatAreWrittenSayHow) {
  std::set<Format> written;
  for (const FileFormat* format : all_formats()) {
    if (format->layouts == nullptr) continue;
    EXPECT_FALSE(format->endings.empty()) << format->name;
    EXPECT_FALSE(format->written.empty()) << format->name;
    EXPECT_TRUE(written.insert(format->format).second) << name(format->format);
    EXPECT_FALSE(format->keeps.typed_metadata && !format->keeps.metadata) << format->name;
  }
  EXPECT_EQ(written, (std::set{Format::safetensors, Format::torch_zip, Format::gguf, Format::npz}));
  EXPECT_EQ(output_formats().size(), written.size());
}

TEST(AllFormats, AreListedByName) {
  EXPECT_EQ(names_of_formats([](const FileFormat&) { return true; }, "and"), "safetensors, PyTorch, GGUF and NumPy");
  EXPECT_EQ(names_of_formats([](const FileFormat& format) { return format.edit != nullptr; }, "or"),
            "safetensors or GGUF");
}

TEST(FormatNames, AreAsManyAsThereAreFormats) {
  EXPECT_EQ(name(Format::safetensors), "safetensors");
  EXPECT_EQ(name(Format::archive), "archive");
  EXPECT_EQ(kFormatNames.size(), static_cast<std::size_t>(Format::archive) + 1);
}

}  // namespace
}  // namespace ballast
