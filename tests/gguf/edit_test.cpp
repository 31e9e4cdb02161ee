#include "formats/gguf/edit.hpp"

#include <gtest/gtest.h>

#include "read_bytes.hpp"
#include "second_reader.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::GgufBuilder;
using test::kF32;

std::string as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const GgufBuilder kFile = GgufBuilder().kv("general.name", "tiny").tensor("a", kF32, {9}).tensor("b", kF32, {1});

TEST(GgufEdit, WithoutChangesGivesTheSameBytes) {
  const auto header = gguf::read_editable(*test::source_of(kFile.text()), {});
  EXPECT_EQ(as_text(gguf::with_fields(header, header.fields, {})), kFile.text().substr(0, header.data_begin));
  const GgufBuilder second = GgufBuilder(2).kv("k", 1u).tensor("w", kF32, {1});
  const auto old = gguf::read_editable(*test::source_of(second.text()), {});
  EXPECT_EQ(as_text(gguf::with_fields(old, old.fields, {})), second.text().substr(0, old.data_begin));
}

TEST(GgufEdit, KeepsTheDataWhereTheyAreWhileThePaddingHasRoom) {
  const std::string file = kFile.text();
  const auto header = gguf::read_editable(*test::source_of(file), {});
  TypedMetadata fields = header.fields;
  fields.set(MetadataEntry::of("general.name", "giga"));
  const std::string same = as_text(gguf::with_fields(header, fields, {}));
  ASSERT_EQ(same.size(), header.data_begin);
  EXPECT_EQ(gguf::read(test::source_of(same + file.substr(header.data_begin))).fields, fields);

  fields.set(MetadataEntry::of("general.description", "a text for which there was no room before"));
  const std::string longer = as_text(gguf::with_fields(header, fields, {})) + file.substr(header.data_begin);
  const auto edited = gguf::read(test::source_of(longer));
  EXPECT_EQ(edited.fields, fields);
  EXPECT_EQ(test::text_of(edited.checkpoint.at("a")), test::text_of(read_gguf(kFile).checkpoint.at("a")));
  EXPECT_EQ(test::SecondReader(longer).tensors.size(), 2u);
}

TEST(GgufEdit, RefusesWhatWouldMoveTensors) {
  const auto header = gguf::read_editable(*test::source_of(kFile.text()), {});
  TypedMetadata fields = header.fields;
  fields.set(MetadataEntry::of("general.alignment", std::uint32_t{64}));
  EXPECT_ERROR(gguf::with_fields(header, fields, {}), Errc::unsupported, "every tensor would have to move");
  fields.set(MetadataEntry::of("general.alignment", std::uint32_t{32}));
  EXPECT_NO_THROW(gguf::with_fields(header, fields, {}));

  const auto packed =
      gguf::read_editable(*test::source_of(GgufBuilder().alignment(1).tensor("a", kF32, {1}).text()), {});
  TypedMetadata nearly = packed.fields;
  nearly.set(MetadataEntry::of("general.alignment", std::uint32_t{2}));
  EXPECT_ERROR(gguf::with_fields(packed, nearly, {}), Errc::unsupported, "cannot be set to 2");
}

TEST(GgufEdit, MakesNoHeaderThatIsLargerThanReadersAllow) {
  const auto header = gguf::read_editable(*test::source_of(kFile.text()), {});
  Limits limits;
  limits.max_header_bytes = kFile.header().size();
  EXPECT_NO_THROW(gguf::with_fields(header, header.fields, limits));
  limits.max_header_bytes -= 1;
  EXPECT_ERROR(gguf::with_fields(header, header.fields, limits), Errc::limit, "more than the");
}

TEST(GgufEdit, LeavesOldAndBigEndianFilesAlone) {
  EXPECT_ERROR(gguf::read_editable(*test::source_of(GgufBuilder(1).text()), {}), Errc::unsupported,
               "little-endian file of version 1");
  EXPECT_ERROR(gguf::read_editable(*test::source_of(GgufBuilder(3, std::endian::big).text()), {}), Errc::unsupported,
               "big-endian file");
}

TEST(GgufEdit, RemovesWhatIsThere) {
  EXPECT_NO_THROW(gguf::edit(test::source_of(kFile.text()), {.set = {}, .unset = {"general.name"}}, {}));
  EXPECT_ERROR(gguf::edit(test::source_of(kFile.text()), {.set = {}, .unset = {"general.nom"}}, {}), Errc::not_found,
               "the metadata has no \"general.nom\"");
}

}  // namespace
}  // namespace ballast
