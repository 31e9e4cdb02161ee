// Several processes do one job: messages, failures that all agree on, and work dealt by bytes.
#include <ballast/team.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <new>
#include <stdexcept>
#include <thread>

#include <ballast/error.hpp>

#include "core/deal.hpp"
#include "core/host_name.hpp"
#include "core/team_error.hpp"
#include "core/wanted.hpp"
#include "support/expect_error.hpp"
#include "support/thread_team.hpp"

namespace ballast {
namespace {

std::span<const std::byte> bytes_of_text(std::string_view text) { return std::as_bytes(std::span(text)); }

Error error_in(const std::exception_ptr& exception) { return error_for_others(exception); }

TEST(Team, GivesEveryMemberTheMessagesOfAllInTheOrderOfRank) {
  test::ThreadTeam team(3);
  const std::string_view texts[] = {"zero", "", "two"};
  for (const auto& thrown : team.run([&](Team& member) {
         const auto all = member.exchange(bytes_of_text(texts[member.rank()]));
         ASSERT_EQ(all.size(), 3u);
         for (std::size_t i = 0; i < 3; ++i)
           EXPECT_TRUE(std::ranges::equal(all[i], bytes_of_text(texts[i]))) << member.rank();
       }))
    EXPECT_EQ(thrown, nullptr);
  EXPECT_EQ(team[0].work().sent, 2 * 4u);
}

TEST(Team, OfOneIsThereForWhoeverHasNone) {
  EXPECT_EQ(&team_of(nullptr), &Team::alone());
  EXPECT_EQ(Team::alone().exchange(bytes_of_text("me")).size(), 1u);
  EXPECT_THROW(together(Team::alone(), [] { throw std::runtime_error("mine"); }), std::runtime_error);
}

TEST(Team, ThrowsTheFirstErrorWithAllItsFactsInEveryMember) {
  test::ThreadTeam team(3);
  const auto thrown = team.run([](Team& member) {
    together(member, [&] {
      if (member.rank() == 1) {
        throw Error(Errc::malformed, "is cut")
            .in("m.gguf")
            .at_byte(23)
            .about("w")
            .of_system(5)
            .hint("take " + Advice::mention(Remedy::cast, "F32"));
      }
      if (member.rank() == 2) throw Error(Errc::io, "is later");
    });
  });
  for (const auto& one : thrown) {
    ASSERT_NE(one, nullptr);
    const Error error = error_in(one);
    EXPECT_EQ(error.code(), Errc::malformed);
    EXPECT_EQ(error.message(), "is cut (on rank 1 of 3, host " + host_name() + ")");
    EXPECT_EQ(error.where(), "m.gguf");
    EXPECT_EQ(error.offset(), 23u);
    EXPECT_EQ(error.name(), "w");
    EXPECT_EQ(error.system_code(), 5);
    EXPECT_EQ(error.hint().text(), "take cast() to F32");
    EXPECT_EQ(error.hint().text([](Remedy, std::string_view) { return "--dtype"; }), "take --dtype");
  }
}

TEST(Team, NamesNoMemberIfAllFailedAlike) {
  test::ThreadTeam team(3);
  for (const auto& thrown : team.run(
           [](Team& member) { together(member, [] { throw Error(Errc::not_found, "is not there").in("m.gguf"); }); }))
    EXPECT_STREQ(error_in(thrown).what(), "m.gguf: is not there");
}

TEST(Team, PrefersAnErrorToAMereStop) {
  test::ThreadTeam team(2);
  for (const auto& thrown : team.run([](Team& member) {
         together(member,
                  [&] { throw member.rank() == 0 ? Error(Errc::cancelled, "cancelled") : Error(Errc::io, "burns"); });
       }))
    EXPECT_TRUE(error_in(thrown).message().starts_with("burns (on rank 1 of 2"));
}

TEST(Team, TellsOthersOfExceptionsThatAreNoErrors) {
  test::ThreadTeam team(2);
  const auto memory = team.run([](Team& member) {
    together(member, [&] {
      if (member.rank() == 0) throw std::bad_alloc();
    });
  });
  EXPECT_THROW(std::rethrow_exception(memory[0]), std::bad_alloc) << "its own stays what it was";
  EXPECT_EQ(error_in(memory[1]).code(), Errc::limit);
}

// A member fails before its first message, while the others wait for that.
TEST(Team, EndsThoseThatWaitForAMessageOfAMemberThatFailed) {
  test::ThreadTeam team(3);
  for (const auto& thrown : team.run([](Team& member) {
         together(member, [&] {
           if (member.rank() == 2) throw Error(Errc::not_found, "is not here");
           for (int i = 0; i < 5; ++i) member.exchange({});
         });
       }))
    EXPECT_TRUE(error_in(thrown).message().starts_with("is not here (on rank 2 of 3"));
}

TEST(Team, AgreesOnceHoweverDeeplyCallsAreNested) {
  test::ThreadTeam team(2);
  for (int round = 0; round < 3; ++round) {
    for (const auto& thrown : team.run([](Team& member) {
           together(member, [&] {
             member.exchange({});
             try {
               together(member, [&] {
                 if (member.rank() == 1) throw Error(Errc::io, "inside");
               });
             } catch (Error& error) {
               throw error.in("added outside");  // another object than the one that was agreed on
             }
           });
         }))
      EXPECT_TRUE(std::string(error_in(thrown).what()).starts_with("added outside: inside (on rank 1"));
  }
}

TEST(Team, GoesOnAfterAnAttemptThatFailed) {
  test::ThreadTeam team(2);
  for (const auto& thrown : team.run([](Team& member) {
         together(member, [&] {
           const auto failure = attempt_together(member, [&] {
             if (member.rank() == 0) throw Error(Errc::io, "once");
           });
           EXPECT_EQ(error_in(failure).message(), "once") << "no error yet, so no member is named";
           if (member.rank() == 1) throw Error(Errc::io, "twice");
           member.exchange({});
         });
       }))
    EXPECT_TRUE(error_in(thrown).message().starts_with("twice (on rank 1"));
}

TEST(Team, StopsTheWorkOfOthersAtOnce) {
  test::ThreadTeam team(2);
  const auto thrown = team.run([](Team& member) {
    together(member, [&] {
      if (member.rank() == 1) throw Error(Errc::io, "early");
      const Progress progress = progress_of(member, {});
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (std::chrono::steady_clock::now() < end && progress({"writing", 1, 100})) std::this_thread::yield();
      EXPECT_LT(std::chrono::steady_clock::now(), end);
      EXPECT_FALSE(is_wanted()) << "whoever waits for a server stops, too";
      throw Error(Errc::cancelled, "cancelled");
    });
  });
  EXPECT_TRUE(error_in(thrown[0]).message().starts_with("early (on rank 1"));
}

TEST(Team, ShowsTheProgressOfAll) {
  test::ThreadTeam team(4);
  ProgressState seen;
  const Progress progress = progress_of(team[0], [&](const ProgressState& state) {
    seen = state;
    return true;
  });
  EXPECT_TRUE(progress({"writing", 20, 100}));
  EXPECT_EQ(seen.done_bytes, 80u);
  EXPECT_TRUE(progress({"writing", 30, 100}));
  EXPECT_EQ(seen.done_bytes, 100u) << "and never more than there is";
}

TEST(Deal, GivesTheLargestFirstAndEachToWhoeverHasTheLeast) {
  test::ThreadTeam team(2);
  std::vector<std::uint64_t> loads;
  const std::uint64_t first[] = {1, 9, 4, 4};
  EXPECT_EQ(Deal(team[0], first, loads).my_bytes(), 9u);
  EXPECT_EQ(loads, (std::vector<std::uint64_t>{9, 9}));
  const std::uint64_t more[] = {5};
  EXPECT_EQ(Deal(team[1], more, loads).mine().size(), 0u);
  EXPECT_EQ(loads, (std::vector<std::uint64_t>{14, 9}));
}

TEST(Deal, IsFairForManyEqualItems) {
  for (const unsigned size : {2u, 3u, 4u, 64u}) {
    test::ThreadTeam team(size);
    const std::vector<std::uint64_t> items(1000, 7);
    std::uint64_t most = 0;
    for (unsigned rank = 0; rank < size; ++rank) most = std::max(most, Deal(team[rank], items).my_bytes());
    EXPECT_LE(static_cast<double>(most), 1.05 * 7000 / size) << size;
  }
}

TEST(Deal, SharesWhatEveryMemberFoundOut) {
  test::ThreadTeam team(3);
  const std::uint64_t sizes[] = {5, 5, 5, 1, 1};
  team.run_all([&](Team& member) {
    const Deal deal(member, sizes);
    std::vector<std::uint32_t> found(5);
    for (const std::size_t i : deal.mine()) found[i] = static_cast<std::uint32_t>(i * 10 + member.rank());
    deal.share(std::span(found));
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(found[i], i * 10 + deal.owner(i));
    std::vector<std::uint64_t> counts{1, member.rank()};
    add_up(member, counts);
    EXPECT_EQ(counts, (std::vector<std::uint64_t>{3, 3}));
    EXPECT_EQ(least_of(member, 10 - member.rank()), 8u);
    std::uint32_t told = member.rank() + 7;
    tell(member, std::span(&told, 1));
    EXPECT_EQ(told, 7u);
  });
}

}  // namespace
}  // namespace ballast
