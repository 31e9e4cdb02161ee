// Every way a header can lie, one row each: the header, how many bytes of data follow it, and what must be said about
// the header.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include <ballast/open.hpp>

#include "builders/safetensors_file.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

using test::SafetensorsFile;

// In a header, $ stands for the description of a good tensor of four bytes, and ^ marks the byte that the error names.
constexpr std::string_view kGood = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";

SafetensorsFile hostile(std::string header, std::size_t data_bytes) {
  for (auto at = header.find('$'); at != std::string::npos; at = header.find('$', at + kGood.size()))
    header.replace(at, 1, kGood);
  return SafetensorsFile(header).data(data_bytes);
}

struct Case {
  const char* name;
  std::string header;
  std::size_t data_bytes;
  Errc code;
  std::string message;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.header; }

class HostileHeader : public testing::TestWithParam<Case> {};

TEST_P(HostileHeader, IsRefusedWithItsByte) {
  const Case& c = GetParam();
  const SafetensorsFile file = hostile(c.header, c.data_bytes);
  EXPECT_ERROR_AT(file.open(), c.code, c.message, file.mark());
}

constexpr Errc kMalformed = Errc::malformed;
using namespace std::string_literals;

std::vector<Case> structure() {
  return {
      {"OnlySpaces", "    ^", 0, kMalformed, "must begin with '{'"},
      {"AnArray", "^[]", 0, kMalformed, "must begin with '{'"},
      {"AString", "^\"x\"", 0, kMalformed, "must begin with '{'"},
      {"Null", "^null", 0, kMalformed, "must begin with '{'"},
      {"AByteOrderMark", "^\xEF\xBB\xBF{}", 0, kMalformed, "must begin with '{'"},
      {"OnlyABrace", "{^", 0, kMalformed, "the text ends early"},
      {"NoClosingBrace", R"({"w":$^)", 4, kMalformed, "the text ends early"},
      {"TwoObjects", R"({"w":$}^{})", 4, kMalformed, "more text after the end"},
      {"ATailOfZeros", "{}^\0\0\0"s, 0, kMalformed, "more text after the end"},
      {"ACommaTooMany", R"({"w":$,^})", 4, kMalformed, "expected a tensor's name"},
      {"ACommaTooFew", R"({"v":$^"w":$})", 8, kMalformed, "expected '}'"},
      {"ACommaFirst", R"({^,"w":$})", 4, kMalformed, "expected a tensor's name"},
      {"ANameWithoutQuotes", R"({^w:$})", 4, kMalformed, "expected a tensor's name"},
      {"ANameInSingleQuotes", R"({^'w':$})", 4, kMalformed, "expected a tensor's name"},
      {"AComment", R"({^/**/"w":$})", 4, kMalformed, "expected a tensor's name"},
      {"NoColon", R"({"w"^$})", 4, kMalformed, "expected ':'"},
      {"AVerticalTab", "{^\v\"w\":$}", 4, kMalformed, "expected a tensor's name"},
      {"ANoBreakSpace", "{^\xC2\xA0\"w\":$}", 4, kMalformed, "expected a tensor's name"},
  };
}

std::vector<Case> strings() {
  return {
      {"ANameThatNeverEnds", R"({"www^)", 0, kMalformed, "ends inside a string"},
      {"ANameThatEndsInABackslash", R"({"w^\)", 0, kMalformed, "unknown escape"},
      {"ANulInAName", "{\"w^\0\":$}"s, 4, kMalformed, "control character"},
      {"ANewlineInAName", "{\"w^\n\":$}", 4, kMalformed, "control character"},
      {"AnUnknownEscape", R"({"w^\x41":$})", 4, kMalformed, "unknown escape"},
      {"AnEscapeOfThreeDigits", R"({"w\u012^":$})", 4, kMalformed, "four hexadecimal digits"},
      {"AnEscapeOfNoDigits", R"({"w\u^+123":$})", 4, kMalformed, "four hexadecimal digits"},
      {"AHighSurrogateAlone", R"({"w^\uD83D":$})", 4, kMalformed, "half of a surrogate pair"},
      {"AHighSurrogateBeforeText", R"({"w^\uD83Dxxxxxx":$})", 4, kMalformed, "half of a surrogate pair"},
      {"ALowSurrogateAlone", R"({"w^\uDE00":$})", 4, kMalformed, "half of a surrogate pair"},
      {"TwoHighSurrogates", R"({"w^\uD83D\uD83D":$})", 4, kMalformed, "half of a surrogate pair"},
      {"SurrogatesTheWrongWayRound", R"({"w^\uDE00\uD83D":$})", 4, kMalformed, "half of a surrogate pair"},
      {"ASurrogateInMetadata", R"({"__metadata__":{"k":"^\uD800"}})", 0, kMalformed, "half of a surrogate pair"},
      {"ASurrogateInAFieldPassedOver", R"({"w":{"x":"^\uDC00","dtype":"F32"}})", 4, kMalformed,
       "half of a surrogate pair"},
      {"ABrokenByte", "{\"w^\xFF\":$}", 4, kMalformed, "not UTF-8"},
      {"AnOverlongSlash", "{\"w^\xC0\xAF\":$}", 4, kMalformed, "not UTF-8"},
      {"ASurrogateAsBytes", "{\"w^\xED\xA0\x80\":$}", 4, kMalformed, "not UTF-8"},
      {"ACharacterCutShort", "{\"w^\xE4\xB8\":$}", 4, kMalformed, "not UTF-8"},
      {"ACharacterPastUnicode", "{\"w^\xF4\x90\x80\x80\":$}", 4, kMalformed, "not UTF-8"},
      {"BrokenPadding", "{}      ^\xFF", 0, kMalformed, "not UTF-8"},
  };
}

// The reference library keeps the last of two equal keys, other readers keep the first: so equal keys are refused.
std::vector<Case> duplicates() {
  return {
      {"ATensorTwice", R"({"w":$,^"w":$})", 4, kMalformed, "tensor \"w\" is there twice"},
      {"ATensorTwiceSideBySide", R"({"w":$,^"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, kMalformed,
       "tensor \"w\" is there twice"},
      {"ATensorTwiceBackwards", R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},^"w":$})", 8, kMalformed,
       "tensor \"w\" is there twice"},
      {"ATensorTwiceAndAHole", R"({"w":$,"v":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},^"w":$})", 12,
       kMalformed, "tensor \"w\" is there twice"},
      {"ATensorOnceSpelledWithAnEscape", R"({"w":$,^"\u0077":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8,
       kMalformed, "tensor \"w\" is there twice"},
      {"ANamelessTensorTwice", R"({"":$,^"":$})", 4, kMalformed, "tensor \"\" is there twice"},
      {"AnEmptyTensorTwice",
       R"({"w":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},^"w":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
       0, kMalformed, "tensor \"w\" is there twice"},
      {"MetadataTwice", R"({"__metadata__":{},^"__metadata__":{}})", 0, kMalformed, "\"__metadata__\" is there twice"},
      {"MetadataTwiceAsNull", R"({"__metadata__":null,^"__metadata__":null})", 0, kMalformed,
       "\"__metadata__\" is there twice"},
      {"MetadataTwiceWithAnEscape", R"({"__metadata__":{},"w":$,^"__metadat\u0061__":{}})", 4, kMalformed,
       "\"__metadata__\" is there twice"},
      {"AMetadataKeyTwice", R"({"__metadata__":{"k":"a",^"k":"a"}})", 0, kMalformed,
       "\"__metadata__\" has \"k\" twice"},
      {"AMetadataKeyTwiceWithAnEscape", R"({"__metadata__":{"k":"a",^"\u006b":"b"}})", 0, kMalformed,
       "\"__metadata__\" has \"k\" twice"},
      {"ADtypeTwice", R"({"w":{"dtype":"F32",^"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, kMalformed,
       "tensor \"w\": \"dtype\" is there twice"},
      {"AShapeTwice", R"({"w":{"dtype":"F32","shape":[1],^"shape":[1],"data_offsets":[0,4]}})", 4, kMalformed,
       "tensor \"w\": \"shape\" is there twice"},
      {"OffsetsTwice", R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4],^"data_offsets":[0,4]}})", 4, kMalformed,
       "tensor \"w\": \"data_offsets\" is there twice"},
      {"ADtypeTwiceWithAnEscape", R"({"w":{"dtype":"F32",^"\u0064type":"F32","shape":[1],"data_offsets":[0,4]}})", 4,
       kMalformed, "tensor \"w\": \"dtype\" is there twice"},
      {"AnUnknownFieldTwice", R"({"w":{"x":1,"x":1,"dtype":"F32","shape":[1],"data_offsets":[0,4]^}})", 4, kMalformed,
       "tensor \"w\": a field is there twice"},
      {"AKeyTwiceInAnUnknownField", R"({"w":{"x":{"y":1,"y":1^},"dtype":"F32"}})", 4, kMalformed,
       "tensor \"w\": an object has a key twice"},
      {"AKeyTwiceDeeperDown", R"({"w":{"x":[[{"y":1,"z":2,"\u0079":3^}]],"dtype":"F32"}})", 4, kMalformed,
       "tensor \"w\": an object has a key twice"},
  };
}

std::string with_dim(const std::string& dim) {
  return R"({"w":{"dtype":"F32","shape":[)" + dim + R"(],"data_offsets":[0,4]}})";
}
std::string with_end(const std::string& end) {
  return R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,)" + end + "]}}";
}

std::vector<Case> integers() {
  const std::string whole = "tensor \"w\": a dimension must be a whole number of at least 0";
  const std::string offset = "tensor \"w\": an offset must be a whole number of at least 0";
  const std::string narrow = "tensor \"w\": a dimension does not fit 64 bits";
  return {
      {"ADimensionAsAPower", with_dim("^1e0"), 4, kMalformed, whole},
      {"ADimensionAsABigPower", with_dim("^1E3"), 4, kMalformed, whole},
      {"ADimensionAsAFraction", with_dim("^1.0"), 4, kMalformed, whole},
      {"ADimensionThatIsNegative", with_dim("^-1"), 4, kMalformed, whole},
      {"ADimensionOfMinusZero", with_dim("^-0"), 4, kMalformed, whole},
      {"ADimensionWithAPlus", with_dim("^+1"), 4, kMalformed, whole},
      {"ADimensionWithALeadingZero", with_dim("^01"), 4, kMalformed, whole},
      {"ADimensionOfManyZeros", with_dim("^000000000000000000000000"), 4, kMalformed, whole},
      {"ADimensionInHex", with_dim("0^x1"), 4, kMalformed, "tensor \"w\": expected ']'"},
      {"ADimensionAsAString", with_dim("^\"1\""), 4, kMalformed, whole},
      {"ADimensionAsNull", with_dim("^null"), 4, kMalformed, whole},
      {"ADimensionAsAList", with_dim("^[1]"), 4, kMalformed, whole},
      {"ADimensionNaN", with_dim("^NaN"), 4, kMalformed, whole},
      {"ADimensionWithSpaces", with_dim("1 ^000"), 4, kMalformed, "tensor \"w\": expected ']'"},
      {"ADimensionOf2ToThe64", with_dim("^18446744073709551616"), 4, kMalformed, narrow},
      {"ADimensionOf20Nines", with_dim("^99999999999999999999"), 4, kMalformed, narrow},
      {"ADimensionOfAThousandDigits", with_dim("^" + std::string(1000, '9')), 4, kMalformed, narrow},
      {"AMissingDimension", with_dim("1,^"), 4, kMalformed, whole},
      {"AnOffsetAsAPower", with_end("^4e0"), 4, kMalformed, offset},
      {"AnOffsetAsAFraction", with_end("^4.0"), 4, kMalformed, offset},
      {"AnOffsetThatIsNegative", with_end("^-4"), 4, kMalformed, offset},
      {"AnOffsetWithALeadingZero", with_end("^04"), 4, kMalformed, offset},
      {"AnOffsetOf2ToThe64", with_end("^18446744073709551616"), 4, kMalformed,
       "tensor \"w\": an offset does not fit 64 bits"},
      {"ThreeOffsets", with_end("4^,4"), 4, kMalformed, "tensor \"w\": expected ']' after two offsets"},
      {"OneOffset", R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0^]}})", 4, kMalformed,
       "tensor \"w\": expected ',' between two offsets"},
      {"NoOffsets", R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[^]}})", 4, kMalformed, offset},
  };
}

std::vector<Case> fields() {
  return {
      {"ATensorThatIsNull", R"({"w":^null})", 0, kMalformed, "tensor \"w\": expected '{' to begin it"},
      {"ATensorThatIsAList", R"({"w":^[]})", 0, kMalformed, "tensor \"w\": expected '{' to begin it"},
      {"ATensorThatIsAString", R"({"w":^"F32"})", 0, kMalformed, "tensor \"w\": expected '{' to begin it"},
      {"ATensorWithoutFields", R"({^"w":{}})", 0, kMalformed, "tensor \"w\" has no \"dtype\""},
      {"ATensorWithoutADtype", R"({^"w":{"shape":[1],"data_offsets":[0,4]}})", 4, kMalformed,
       "tensor \"w\" has no \"dtype\""},
      {"ATensorWithoutAShape", R"({^"w":{"dtype":"F32","data_offsets":[0,4]}})", 4, kMalformed,
       "tensor \"w\" has no \"shape\""},
      {"BytesWithoutADtype", R"({^"w":{"shape":[4],"data_offsets":[0,4]}})", 4, kMalformed,
       "tensor \"w\" has no \"dtype\""},
      {"NothingWithoutOffsets", R"({^"w":{"dtype":"F32","shape":[0]}})", 0, kMalformed,
       "tensor \"w\" has no \"data_offsets\""},
      {"ATensorWithoutOffsets", R"({^"w":{"dtype":"F32","shape":[1]}})", 4, kMalformed,
       "tensor \"w\" has no \"data_offsets\""},
      {"FieldsInCapitals", R"({^"w":{"DTYPE":"F32","shape":[1],"data_offsets":[0,4]}})", 4, kMalformed,
       "tensor \"w\" has no \"dtype\""},
      {"ADtypeThatNobodyKnows", R"({"w":{"dtype":^"F33","shape":[1],"data_offsets":[0,4]}})", 4, Errc::unsupported,
       "tensor \"w\": unknown dtype \"F33\""},
      {"ADtypeInSmallLetters", R"({"w":{"dtype":^"f32","shape":[1],"data_offsets":[0,4]}})", 4, Errc::unsupported,
       "unknown dtype \"f32\""},
      {"ADtypeOfGgml", R"({"w":{"dtype":^"Q4_K","shape":[256],"data_offsets":[0,144]}})", 144, Errc::unsupported,
       "tensor \"w\": unknown dtype \"Q4_K\""},
      {"ADtypeOfTorchOnly", R"({"w":{"dtype":^"C128","shape":[1],"data_offsets":[0,16]}})", 16, Errc::unsupported,
       "unknown dtype \"C128\""},
      {"ADtypeWithoutAName", R"({"w":{"dtype":^"","shape":[1],"data_offsets":[0,4]}})", 4, Errc::unsupported,
       "unknown dtype \"\""},
      {"ADtypeAsANumber", R"({"w":{"dtype":^4,"shape":[1],"data_offsets":[0,4]}})", 4, kMalformed,
       "tensor \"w\": expected a dtype, a string"},
      {"AShapeAsANumber", R"({"w":{"dtype":"F32","shape":^1,"data_offsets":[0,4]}})", 4, kMalformed,
       "tensor \"w\": expected '[' to begin a shape"},
      {"AShapeAsNull", R"({"w":{"dtype":"F32","shape":^null,"data_offsets":[0,4]}})", 4, kMalformed,
       "to begin a shape"},
      {"OffsetsAsAnObject", R"({"w":{"dtype":"F32","shape":[1],"data_offsets":^{"0":4}}})", 4, kMalformed,
       "tensor \"w\": expected '[' to begin \"data_offsets\""},
      {"ASixtyFifthDimension",
       with_dim("1" +
                [] {
                  std::string ones;
                  for (int i = 1; i < 64; ++i) ones += ",1";
                  return ones;
                }() +
                ",^1"),
       4, Errc::limit, "tensor \"w\": more than 64 dimensions"},
      {"AnUnknownFieldThatIsNoJson", R"({"w":{"x":^nul,"dtype":"F32"}})", 4, kMalformed,
       "tensor \"w\": expected a value"},
      {"AnUnknownFieldWithAnOpenList", R"({"w":{"x":[1,2^)", 4, kMalformed, "tensor \"w\": the text ends early"},
      {"AnUnknownFieldWithAnEmptyPlace", R"({"w":{"x":[1,^]}})", 4, kMalformed, "tensor \"w\": expected a value"},
      {"AnUnknownFieldWithTheWrongBracket", R"({"w":{"x":[1^}}})", 4, kMalformed, "tensor \"w\": expected ']'"},
      {"AnUnknownFieldOfMinusOnly", R"({"w":{"x":-^}})", 4, kMalformed, "expected a value"},
      {"AnUnknownFieldWithALeadingZero", R"({"w":{"x":0^1}})", 4, kMalformed, "expected '}'"},
      {"AnUnknownFieldWithANakedPoint", R"({"w":{"x":1.^}})", 4, kMalformed, "expected a value"},
      {"AnUnknownFieldOf2ToThe64", R"({"w":{"x":^18446744073709551616}})", 4, kMalformed,
       "tensor \"w\": a number does not fit 64 bits"},
      {"AnUnknownFieldOfMinus2ToThe63AndOne", R"({"w":{"x":^-9223372036854775809}})", 4, kMalformed,
       "does not fit 64 bits"},
      {"AnUnknownFieldThatIsInfinite", R"({"w":{"x":^1e999}})", 4, kMalformed,
       "tensor \"w\": a number does not fit 64 bits"},
      {"AnUnknownFieldOfManyDigitsAndAPoint", R"({"w":{"x":^)" + std::string(400, '1') + ".5}}", 4, kMalformed,
       "does not fit 64 bits"},
      {"NestedNineDeep", R"({"w":{"x":[[[[[[^[]]]]]]]}})", 4, kMalformed, "tensor \"w\": nested deeper than 8 levels"},
      {"NestedNineDeepInObjects", R"({"w":{"x":{"x":{"x":{"x":{"x":{"x":{"x":^{}}}}}}}}})", 4, kMalformed,
       "nested deeper than 8 levels"},
      {"NestedAMillionDeep", R"({"w":{"x":[[[[[[^)" + std::string(1'000'000, '['), 4, kMalformed,
       "nested deeper than 8 levels"},
  };
}

std::vector<Case> metadata() {
  return {
      {"MetadataAsAList", R"({"__metadata__":^[]})", 0, kMalformed, "expected '{' to begin \"__metadata__\""},
      {"MetadataAsAString", R"({"__metadata__":^"format"})", 0, kMalformed, "to begin \"__metadata__\""},
      {"MetadataAsFalse", R"({"__metadata__":^false})", 0, kMalformed, "to begin \"__metadata__\""},
      {"MetadataAsNearlyNull", R"({"__metadata__":^nul})", 0, kMalformed, "to begin \"__metadata__\""},
      {"MetadataAsATensor", R"({"__metadata__":{"dtype":"F32","shape":^[1],"data_offsets":[0,4]}})", 4, kMalformed,
       "expected a value of \"__metadata__\""},
      {"AMetadataValueAsANumber", R"({"__metadata__":{"k":^1}})", 0, kMalformed,
       "expected a value of \"__metadata__\", a string"},
      {"AMetadataValueAsNull", R"({"__metadata__":{"k":^null}})", 0, kMalformed,
       "expected a value of \"__metadata__\""},
      {"AMetadataValueAsAnObject", R"({"__metadata__":{"k":^{"a":"b"}}})", 0, kMalformed,
       "expected a value of \"__metadata__\""},
      {"AMetadataKeyAsANumber", R"({"__metadata__":{^1:"a"}})", 0, kMalformed, "expected a key of \"__metadata__\""},
      {"MetadataThatNeverEnds", R"({"__metadata__":{"k":"a"^)", 0, kMalformed, "the text ends early"},
      {"MetadataWithACommaTooMany", R"({"__metadata__":{"k":"a",^}})", 0, kMalformed,
       "expected a key of \"__metadata__\""},
  };
}

std::string tensors(const std::string& first, const std::string& second) {
  return R"({"v":{"dtype":"F32",)" + first + R"(},^"w":{"dtype":"F32",)" + second + "}}";
}

std::string of(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({^"w":{"dtype":")" + dtype + R"(","shape":[)" + shape + R"(],"data_offsets":[)" + offsets + "]}}";
}

std::vector<Case> places() {
  return {
      {"ATensorThatEndsBeforeItBegins", of("F32", "1", "4,0"), 4, kMalformed,
       "tensor \"w\" begins at byte 4 and ends before it, at 0"},
      {"ATensorOfAsManyBytesAsAreBeforeItsBeginning", of("U8", "18446744073709551615", "1,0"), 4, kMalformed,
       "tensor \"w\" begins at byte 1 and ends before it, at 0"},
      {"ATensorOfOneByteMoreThanItsOffsets", of("U8", "5", "0,4"), 4, kMalformed,
       "takes 5 bytes, but its offsets span 4"},
      {"ATensorOfOneByteLessThanItsOffsets", of("U8", "3", "0,4"), 4, kMalformed,
       "takes 3 bytes, but its offsets span 4"},
      {"ATensorThatEndsPastTheFile", of("F32", "2,2", "0,16"), 12, kMalformed,
       "tensor \"w\" ends at byte 16 but the data has 12 bytes"},
      {"ATensorFarPastTheFile", of("U8", "1", "18446744073709551614,18446744073709551615"), 4, kMalformed,
       "tensor \"w\" ends at byte 18446744073709551615 but the data has 4 bytes"},
      {"ATensorLargerThanItsOffsets", of("F32", "2", "0,4"), 4, kMalformed,
       "tensor \"w\" is F32 [2], which takes 8 bytes, but its offsets span 4"},
      {"ATensorSmallerThanItsOffsets", of("F32", "1", "0,8"), 8, kMalformed, "takes 4 bytes, but its offsets span 8"},
      {"AnEmptyTensorWithBytes", of("F32", "0", "0,4"), 4, kMalformed, "takes 0 bytes, but its offsets span 4"},
      {"AScalarWithoutBytes", of("F32", "", "0,0"), 0, kMalformed,
       "tensor \"w\" is F32 [], which takes 4 bytes, but its offsets span 0"},
      {"HalfAByteOfF4", of("F4", "3", "0,2"), 2, kMalformed,
       "tensor \"w\" has 3 elements of F4, which do not fill whole bytes"},
      {"OneF4", of("F4", "", "0,1"), 1, kMalformed, "tensor \"w\" has 1 elements of F4, which do not fill whole bytes"},
      {"TwoF6", of("F6_E2M3", "2", "0,2"), 2, kMalformed,
       "tensor \"w\" has 2 elements of F6_E2M3, which do not fill whole bytes"},
      {"FiveF6", of("F6_E3M2", "5", "0,4"), 4, kMalformed, "which do not fill whole bytes"},
      {"AShapeThatOverflows", of("F32", "4294967296,4294967296,4", "0,4"), 4, kMalformed,
       "tensor \"w\" has the shape [4294967296, 4294967296, 4], whose elements 64 bits cannot count"},
      {"AShapeThatWrapsToItsSize", of("U8", "4294967297,4294967297", "0,8589934593"), 4, kMalformed,
       "64 bits cannot count"},
      {"AShapeThatOverflowsBeforeItsZero", of("F32", "4294967296,4294967296,0", "0,0"), 0, kMalformed,
       "64 bits cannot count"},
      {"ASizeThatOverflows", of("F64", "4611686018427387904", "0,0"), 0, kMalformed,
       "tensor \"w\" has 4611686018427387904 elements of F64, whose bytes 64 bits cannot count"},
      {"ASizeThatWrapsToItsOffsets", of("F32", "4611686018427387905", "0,4"), 4, kMalformed,
       "whose bytes 64 bits cannot count"},
      {"AHoleAtTheBeginning", of("F32", "1", "4,8"), 8, kMalformed,
       "tensor \"w\" begins at byte 4 of the data, but the one before it ends at 0"},
      {"AHoleBetweenTwo", tensors(R"("shape":[1],"data_offsets":[0,4])", R"("shape":[1],"data_offsets":[8,12])"), 12,
       kMalformed, "tensor \"w\" begins at byte 8 of the data, but the one before it ends at 4"},
      {"AHoleOfAByte", tensors(R"("shape":[1],"data_offsets":[0,4])", R"("shape":[1],"data_offsets":[5,9])"), 9,
       kMalformed, "tensor \"w\" begins at byte 5 of the data, but the one before it ends at 4"},
      {"TwoThatShareAByte", tensors(R"("shape":[1],"data_offsets":[0,4])", R"("shape":[1],"data_offsets":[3,7])"), 7,
       kMalformed, "tensor \"w\" begins at byte 3 of the data, but the one before it ends at 4"},
      {"TwoThatOverlap", tensors(R"("shape":[2],"data_offsets":[0,8])", R"("shape":[2],"data_offsets":[4,12])"), 12,
       kMalformed, "tensor \"w\" begins at byte 4 of the data, but the one before it ends at 8"},
      {"TwoThatAreTheSame", tensors(R"("shape":[1],"data_offsets":[0,4])", R"("shape":[1],"data_offsets":[0,4])"), 4,
       kMalformed, "tensor \"w\" begins at byte 0 of the data, but the one before it ends at 4"},
      {"OneInsideAnother", tensors(R"("shape":[4],"data_offsets":[0,16])", R"("shape":[1],"data_offsets":[4,8])"), 16,
       kMalformed, "tensor \"w\" begins at byte 4"},
      {"AnEmptyOneInsideAnother",
       tensors(R"("shape":[4],"data_offsets":[0,16])", R"("shape":[0],"data_offsets":[8,8])"), 16, kMalformed,
       "tensor \"w\" begins at byte 8 of the data, but the one before it ends at 16"},
      {"AnEmptyOneInNowhere", tensors(R"("shape":[1],"data_offsets":[0,4])", R"("shape":[0],"data_offsets":[8,8])"), 8,
       kMalformed, "tensor \"w\" begins at byte 8 of the data, but the one before it ends at 4"},
      {"AnEmptyOnePastTheFile", of("F32", "0", "8,8"), 4, kMalformed,
       "tensor \"w\" ends at byte 8 but the data has 4 bytes"},
  };
}

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Structure, HostileHeader, testing::ValuesIn(structure()), name_of);
INSTANTIATE_TEST_SUITE_P(Strings, HostileHeader, testing::ValuesIn(strings()), name_of);
INSTANTIATE_TEST_SUITE_P(Duplicates, HostileHeader, testing::ValuesIn(duplicates()), name_of);
INSTANTIATE_TEST_SUITE_P(Integers, HostileHeader, testing::ValuesIn(integers()), name_of);
INSTANTIATE_TEST_SUITE_P(Fields, HostileHeader, testing::ValuesIn(fields()), name_of);
INSTANTIATE_TEST_SUITE_P(Metadata, HostileHeader, testing::ValuesIn(metadata()), name_of);
INSTANTIATE_TEST_SUITE_P(Places, HostileHeader, testing::ValuesIn(places()), name_of);

// The length in the eight bytes before the header.

TEST(HostileLength, IsMissingInAFileThatIsTooShort) {
  for (std::size_t size = 1; size < 8; ++size) {
    const auto open = [&] { return open_bytes(std::vector<std::byte>(size, std::byte{1})); };
    EXPECT_ERROR(open(), kMalformed, "a file of " + std::to_string(size) + " bytes is too short");
    EXPECT_HINT(open(), "interrupted download");
  }
}

TEST(HostileLength, ReachesPastTheFile) {
  EXPECT_ERROR_AT(SafetensorsFile("{}").length(3).open(), kMalformed, "said to have 3 bytes, but only 2 follow", 0u);
  EXPECT_HINT(SafetensorsFile("{}").length(3).open(), "cut short");
}

TEST(HostileLength, IsOverTheLimit) {
  EXPECT_ERROR_AT(SafetensorsFile("{}").length(100'000'001).open(), Errc::limit,
                  "100000001 bytes, more than the 100000000", 0u);
  EXPECT_ERROR_AT(SafetensorsFile("{}").length(UINT64_MAX).open(), Errc::limit, "18446744073709551615 bytes", 0u);
  EXPECT_ERROR_AT(SafetensorsFile("{}").length(UINT64_MAX - 7).open(), Errc::limit, "more than the 100000000", 0u);
  EXPECT_ERROR_AT(SafetensorsFile("{}").length(100'000'000).open(), kMalformed, "but only 2 follow", 0u);
}

TEST(HostileLength, IsZero) { EXPECT_ERROR(SafetensorsFile("{}").length(0).open(), kMalformed, "must begin with '{'"); }

TEST(HostileLength, EndsInsideTheHeader) {
  const auto file = SafetensorsFile().tensor("w", "F32", {1});
  for (std::uint64_t length = 1; length < file.header().size(); ++length) {
    EXPECT_TRUE(test::error_of([&] { SafetensorsFile(file).length(length).open(); })) << length;
  }
}

TEST(HostileLength, IncludesTheData) {
  EXPECT_ERROR(SafetensorsFile().tensor("w", "F32", {1}).length(56).open(), kMalformed, "");
}

TEST(HostileFile, CutAtEveryByteIsRefused) {
  const std::string whole =
      SafetensorsFile().metadata({{"k", "v"}}).tensor("a", "F32", {2}).tensor("b\\n", "I8", {3}).text();
  ASSERT_NO_THROW(open_bytes({std::as_bytes(std::span(whole)).begin(), std::as_bytes(std::span(whole)).end()}));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto bytes = std::as_bytes(std::span(whole)).first(size);
    const auto error = test::error_of([&] { open_bytes({bytes.begin(), bytes.end()}, "cut.safetensors"); });
    ASSERT_TRUE(error) << size;
    EXPECT_EQ(error->code(), kMalformed) << size;
    EXPECT_EQ(error->where(), "cut.safetensors");
    EXPECT_FALSE(error->hint().empty()) << size << ": " << error->what();
  }
}

// Whatever is written over one byte, the answer is a checkpoint or an Error: never anything else.
TEST(HostileFile, WithAnyByteReplacedIsReadOrRefused) {
  const std::string whole =
      SafetensorsFile().metadata({{"k", "\\u00e9"}}).tensor("a", "F32", {2}).tensor("b", "F4", {4}).text();
  std::size_t read = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = whole;
      changed[at] = static_cast<char>(value);
      const auto bytes = std::as_bytes(std::span(changed));
      const auto error = test::error_of([&] { open_bytes({bytes.begin(), bytes.end()}); });
      if (!error) ++read;
    }
  }
  EXPECT_GT(read, 256u * 10);  // the data alone give that many
}

TEST(HostileFile, WithBytesBehindTheLastTensorIsRefusedUnlessLenient) {
  const auto file = SafetensorsFile().tensor("w", "F32", {1}).data(7);
  const std::uint64_t end = 8 + file.header().size() + 4;
  EXPECT_ERROR_AT(file.open(), kMalformed, "3 bytes follow the last tensor", end);
  EXPECT_HINT(file.open(), "OpenOptions::lenient");
  EXPECT_ERROR_AT(SafetensorsFile("{}").data(1).open(), kMalformed, "1 bytes follow", 10u);
}

TEST(HostileFile, OfTooManyTensorsIsOverTheLimit) {
  const auto file = SafetensorsFile().tensor("a", "U8", {1}).tensor("b", "U8", {1}).tensor("c", "U8", {1});
  OpenOptions options;
  options.limits.max_tensors = 3;
  EXPECT_NO_THROW(file.open(options));
  options.limits.max_tensors = 2;
  EXPECT_ERROR_AT(file.open(options), Errc::limit, "more than 2 tensors", 8 + file.header().find("\"c\""));
}

TEST(HostileFile, OfTooMuchMetadataIsOverTheLimit) {
  const auto file = SafetensorsFile().metadata({{"a", ""}, {"b", ""}, {"c", ""}});
  OpenOptions options;
  options.limits.max_metadata_keys = 3;
  EXPECT_NO_THROW(file.open(options));
  options.limits.max_metadata_keys = 2;
  EXPECT_ERROR_AT(file.open(options), Errc::limit, "\"__metadata__\" has more than 2 keys",
                  8 + file.header().find("\"c\""));
}

TEST(HostileFile, OfTooManyDimensionsIsOverTheLimit) {
  OpenOptions options;
  for (std::uint64_t most = 0; most < 8; ++most) {
    options.limits.max_rank = most;
    const std::string expected = "tensor \"w\": more than " + std::to_string(most) + " dimensions";
    EXPECT_NO_THROW(SafetensorsFile().tensor("w", "U8", std::vector<std::uint64_t>(most, 1)).open(options)) << most;
    EXPECT_ERROR(SafetensorsFile().tensor("w", "U8", std::vector<std::uint64_t>(most + 1, 1)).open(options),
                 Errc::limit, expected);
  }
}

TEST(HostileFile, NamesItselfInTheError) {
  const auto error = test::error_of([] { open_bytes(SafetensorsFile("{").bytes(), "models/x.safetensors"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->where(), "models/x.safetensors");
  EXPECT_STREQ(error->what(), "models/x.safetensors: the text ends early (byte 9)");
}

// A name is quoted, escaped and cut before it reaches a terminal.
TEST(HostileFile, CannotControlATerminalThroughItsNames) {
  const auto error = test::error_of([] { SafetensorsFile(R"({"\u001b[2J\u202e":{}})").open(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message(), R"(tensor "\x1b[2J\u{202e}" has no "dtype")");

  const std::string huge(5'000'000, 'n');
  const auto long_name = test::error_of([&] { SafetensorsFile("{\"" + huge + "\":{}}").open(); });
  ASSERT_TRUE(long_name);
  EXPECT_LT(long_name->message().size(), 1000u);
}

}  // namespace
}  // namespace ballast
