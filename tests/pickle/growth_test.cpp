// Pickles that are made to cost more than their bytes: deep ones, ones that multiply themselves, ones that promise
// much.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "builders/pickle_writer.hpp"
#include "formats/pickle/machine.hpp"
#include "formats/pickle/scan.hpp"
#include "support/cpu_time.hpp"
#include "support/expect_error.hpp"
#include "support/fixtures.hpp"
#include "support/peak_memory.hpp"

namespace ballast {
namespace {

using pickle::Graph;
using test::PickleWriter;
using namespace std::string_view_literals;

void run_whole(const SourcePtr& source, const Limits& limits = {}) {
  Graph graph(source);
  static_cast<void>(pickle::run(graph, 0, source->size_bytes(), limits));
}

// Runs `work` on a thread with a stack of 64 KiB.
void on_a_small_stack(const std::function<void()>& work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 65536), 0);
  pthread_t thread;
  const auto start = [](void* given) -> void* {
    (*static_cast<const std::function<void()>*>(given))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, start, const_cast<std::function<void()>*>(&work)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

constexpr std::size_t kTenMillion = 10'000'000;

TEST(PickleGrowth, TenMillionNestedListsTakeNoStack) {
  const auto source = PickleWriter(2).repeat(kTenMillion, "]").repeat(kTenMillion - 1, "a").stop().source();
  on_a_small_stack([&] { run_whole(source); });
}

TEST(PickleGrowth, TenMillionNestedTuplesTakeNoStack) {
  const auto source = PickleWriter(2).none().repeat(kTenMillion, "\x85").stop().source();
  on_a_small_stack([&] { run_whole(source); });
}

TEST(PickleGrowth, TenMillionMarksTakeNoStack) {
  const auto source = PickleWriter(2).repeat(kTenMillion, "(").source();
  on_a_small_stack([&] { EXPECT_ERROR(run_whole(source), Errc::malformed, "the pickle ends without STOP"); });
}

TEST(PickleGrowth, NestedScansTakeNoStack) {
  const auto source = PickleWriter(2).none().repeat(kTenMillion / 10, "\x85").stop().source();
  on_a_small_stack([&] {
    pickle::Scan scan;
    pickle::scan_pickles(source, 0, source->size_bytes(), "", Limits{}, scan);
    EXPECT_TRUE(scan.findings.empty());
  });
}

// A node takes eight bytes, a link to it four, its slot on the stack four; anything else that some nodes have lies
// beside them.
TEST(PickleGrowth, AByteOfAnyPickleCostsAtMostSixteenBytes) {
  constexpr std::size_t kBytes = 8'000'000;
  for (const std::string_view instructions : {"N"sv,
                                              "]"sv,
                                              "}"sv,
                                              "("sv,
                                              "\x85"sv,
                                              "2"sv,
                                              "\x94"sv,
                                              "K\1"sv,
                                              ")R"sv,
                                              "K\1q\1"sv,
                                              "b"sv,
                                              "Q"sv,
                                              "2\x86"sv,
                                              "22\x87"sv,
                                              "U\1a"sv,
                                              "c\n\n"sv,
                                              "(No"sv,
                                              "(i\n\n"sv,
                                              ")\x81Nb"sv,
                                              "ca\nb\n"sv,
                                              "]Na"sv,
                                              "22s"sv,
                                              "22\x86"
                                              "a"sv,
                                              "F1\n"sv,
                                              "L1\n"sv,
                                              "U\0"sv,
                                              "\x8a\0"sv,
                                              "h\0Na0h\1Na0"sv}) {
    const std::size_t count = kBytes / instructions.size();
    const auto source = PickleWriter(2).empty_list().put(0).empty_list().put(1).repeat(count, instructions).source();
    const auto run = [&] { static_cast<void>(test::error_of([&] { run_whole(source); })); };
    EXPECT_LE(test::peak_memory_of(run), 16 * source->size_bytes()) << instructions;
  }
}

// The stack that one instruction takes as a whole is never held twice.
TEST(PickleGrowth, AByteOfAPickleThatIsOneContainerCostsAtMostSixteenBytes) {
  constexpr std::size_t kBytes = 8'000'000;
  for (const std::string_view item : {"N"sv, "]"sv, "2"sv, "K\1"sv, "U\0"sv}) {
    for (const char* end : {"t", "l", "\x91", "d"}) {
      const std::size_t count = kBytes / item.size();
      const auto source = PickleWriter(2).mark().none().none().repeat(count, item).raw(end).stop().source();
      EXPECT_LE(test::peak_memory_of([&] { run_whole(source); }), 16 * source->size_bytes()) << item << end;
    }
  }
}

TEST(PickleGrowth, AHugeMemoIndexCostsNothing) {
  PickleWriter writer(2);
  writer.none();
  for (std::uint32_t i = 0; i < 1000; ++i) writer.put(0xFFFFFFFF - i * 65537);
  const auto source = writer.raw("p9223372036854775807\n").get(0xFFFFFFFF).stop().source();
  EXPECT_LE(test::peak_memory_of([&] { run_whole(source); }), std::size_t{8} << 20);
}

using Build = std::function<PickleWriter(std::size_t count)>;

double seconds_to_run(const SourcePtr& source, bool scanned) {
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    const double start = test::cpu_seconds();
    if (scanned) {
      pickle::Scan scan;
      pickle::scan_pickles(source, 0, source->size_bytes(), "", Limits{}, scan);
    } else {
      static_cast<void>(test::error_of([&] { run_whole(source); }));
    }
    best = std::min(best, test::cpu_seconds() - start);
  }
  return best;
}

// Measures the exponent as the same function in tests/safetensors does: it is 2 for a quadratic cost.
void expect_nearly_linear(const Build& build, std::size_t count, bool scanned = false) {
  const auto small = build(count).source(), large = build(16 * count).source();
  double exponent = 9;
  for (int tries = 0; tries < 6 && exponent > 1.6; ++tries) {
    const double growth = seconds_to_run(large, scanned) / seconds_to_run(small, scanned);
    exponent = std::min(exponent, std::log(growth) / std::log(static_cast<double>(large->size_bytes()) /
                                                              static_cast<double>(small->size_bytes())));
  }
  EXPECT_LE(exponent, 1.6);
}

TEST(PickleGrowth, IsLinearForManyValues) {
  expect_nearly_linear([](std::size_t n) { return PickleWriter(2).mark().repeat(n, "K\1").tuple().stop(); }, 20'000);
}

TEST(PickleGrowth, IsLinearForAppendingOneByOne) {
  expect_nearly_linear([](std::size_t n) { return PickleWriter(2).empty_list().repeat(n, "Na").stop(); }, 20'000);
}

TEST(PickleGrowth, IsLinearForManyStrings) {
  expect_nearly_linear([](std::size_t n) { return PickleWriter(2).repeat(n, "U\4abcd0").none().stop(); }, 20'000);
}

TEST(PickleGrowth, IsLinearForLargestIntegers) {
  std::string integer("\x8b\0\x04\0\0", 5);
  integer.append(1024, '\x7f');
  expect_nearly_linear([&](std::size_t n) { return PickleWriter(2).repeat(n, integer).stop(); }, 8);
}

TEST(PickleGrowth, IsLinearForDigits) {
  expect_nearly_linear([](std::size_t n) { return PickleWriter().raw("L").repeat(n, "9").raw("\n."); }, 4'000);
}

// A line is looked for at the speed of memory, so fresh memory for a longer one costs more than all else: the cost is
// compared with that of a copy.
TEST(PickleGrowth, LooksAFewTimesAtALineWithoutEnd) {
  const auto source = PickleWriter().raw("V").repeat(32'000'000, "x").source();
  double copy = 1e9;
  for (int round = 0; round < 3; ++round) {
    const double start = test::cpu_seconds();
    std::vector<std::byte> bytes(source->size_bytes());
    source->read(0, bytes);
    copy = std::min(copy, test::cpu_seconds() - start);
  }
  EXPECT_LE(seconds_to_run(source, false), 30 * copy);
}

TEST(PickleGrowth, IsLinearForSparseMemos) {
  expect_nearly_linear(
      [](std::size_t n) {
        PickleWriter writer(2);
        writer.none();
        for (std::size_t i = 0; i < n; ++i) writer.put(static_cast<std::uint32_t>(0x80000000 + i * 4096));
        return writer.stop();
      },
      5'000);
}

// Two long strings in the memo are named as a global again and again: they must not be copied.
TEST(PickleGrowth, IsLinearForLongNamesUsedManyTimes) {
  const std::string name(10'000, 'a');
  const std::string again(
      "h\0h\1\x93"
      "0",
      6);
  const Build build = [&](std::size_t n) {
    return PickleWriter(4).text(name).put(0).text(name).put(1).repeat(n, again).stop();
  };
  expect_nearly_linear(build, 20'000);
  expect_nearly_linear(build, 20'000, true);
}

TEST(PickleGrowth, ScansOfManyPicklesAreLinear) {
  expect_nearly_linear([](std::size_t n) { return PickleWriter().repeat(n, "N."); }, 2'000, true);
}

TEST(PickleGrowth, ScansOfPicklesInsidePicklesAreLinear) {
  expect_nearly_linear(
      [](std::size_t n) {
        std::string inner = PickleWriter(2).global("os", "system").stop().bytes();
        PickleWriter writer(2);
        for (std::size_t i = 0; i < n; ++i) writer.bytes(inner);
        return writer.stop();
      },
      200, true);
}

TEST(PickleGrowth, ScansOfTextThatLooksLikePicklesAreLinear) {
  expect_nearly_linear(
      [](std::size_t n) {
        const std::string text = PickleWriter().text("(((((((c.\n\n......\n\n.").bytes();
        return PickleWriter(2).repeat(n, text).none().stop();
      },
      1'000, true);
}

// Fixtures that would fill 256 GB of Python's memory.
TEST(PickleGrowth, ABillionLaughsCostNothing) {
  SKIP_WITHOUT_FIXTURES("malicious");
  for (const char* name : {"pickle_injector__billionLaughsAlt.pkl", "pickle_injector__globalLaughs.pt"}) {
    const auto source = file_source(test::fixture_path(std::string("malicious/") + name));
    const auto look = [&] {
      run_whole(source);
      pickle::Scan scan;
      pickle::scan_pickles(source, 0, source->size_bytes(), "", Limits{}, scan);
    };
    const double start = test::cpu_seconds();
    look();
    EXPECT_LT(test::cpu_seconds() - start, 0.05) << name;
    EXPECT_LE(test::peak_memory_of(look), std::size_t{32} << 20) << name;
  }
}

}  // namespace
}  // namespace ballast
