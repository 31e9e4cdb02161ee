// Every message between members begins with a byte that says whether it is a message or a failure. So a member that
// fails need not know what the others wait for: its failure takes the place of whatever it would have sent next, and
// the members stay in step.
#include <ballast/team.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>

#include <fmt/format.h>

#include "core/host_name.hpp"
#include "core/team_error.hpp"
#include "core/wanted.hpp"

namespace ballast {
namespace {

constexpr std::byte kMessage{0}, kFailure{1};

// Calls of attempt_together() that this thread is in: their failures are no errors yet.
thread_local unsigned attempts = 0;

class Alone final : public Team {
 public:
  unsigned rank() const noexcept override { return 0; }
  unsigned size() const noexcept override { return 1; }

 private:
  Messages swap(std::span<const std::byte> mine) override { return {{mine.begin(), mine.end()}}; }
};

// The error of one member, for all of them.
Error naming(const Error& error, std::size_t rank, std::size_t members, std::string_view host) {
  return error.saying(fmt::format("{} (on rank {} of {}, host {})", error.message(), rank, members, host));
}

// Whether the exception is an Error and no kind of it, so that nothing is lost if another takes its place.
bool is_plain_error(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return typeid(error) == typeid(Error);
  } catch (...) {
    return false;
  }
}

std::vector<std::byte> framed(std::byte kind, std::span<const std::byte> bytes) {
  std::vector<std::byte> frame(1 + bytes.size(), kind);
  std::ranges::copy(bytes, frame.begin() + 1);
  return frame;
}

}  // namespace

Team& Team::alone() noexcept {
  static Alone one;
  return one;
}

void Team::count(const TeamWork& more) noexcept {
  if (this == &alone()) return;  // it belongs to everybody
  work_.read += more.read;
  work_.sent += more.sent;
  work_.received += more.received;
  work_.written += more.written;
  work_.held = std::max(work_.held, more.held);
}

Team::Messages Team::exchange(std::span<const std::byte> mine) {
  if (size() == 1) return {{mine.begin(), mine.end()}};
  Messages frames;
  try {
    count({.sent = mine.size() * (size() - 1)});
    frames = swap(framed(kMessage, mine));
  } catch (...) {
    agreed_ = std::current_exception();  // there is nobody left to agree with
    throw;
  }
  if (const auto failure = failure_in(frames, nullptr)) {
    agreed_ = failure;
    std::rethrow_exception(failure);
  }
  for (unsigned from = 0; from < size(); ++from) {
    frames[from].erase(frames[from].begin());
    if (from != rank()) count({.received = frames[from].size()});
  }
  return frames;
}

// The failure that counts among those that members sent: the first that is not a mere stop, or the first.
std::exception_ptr Team::failure_in(Messages& frames, const std::exception_ptr& own) {
  std::optional<Error> chosen;
  std::size_t of = 0, alike = 0;
  std::string host;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (frames[i].empty() || frames[i].front() != kFailure) continue;
    Cursor in(std::span(frames[i]).subspan(1));
    Error error = read_error(in);
    if (chosen && std::string_view(chosen->what()) == error.what()) ++alike;
    const bool is_better = !chosen || (chosen->code() == Errc::cancelled && error.code() != Errc::cancelled);
    if (is_better) of = i, alike = 1, host = read_text(in), chosen = std::move(error);
  }
  if (!chosen) return nullptr;
  ++failures_;
  const bool is_own = own && of == rank();
  const bool is_named = attempts == 0 && alike != frames.size() && chosen->code() != Errc::cancelled;
  if (!is_named || (is_own && !is_plain_error(own))) return is_own ? own : std::make_exception_ptr(*chosen);
  if (is_own) chosen = error_for_others(own);  // with its cause
  return std::make_exception_ptr(naming(*chosen, of, frames.size(), host));
}

// This member has failed: tells the others, and hears whether an error of theirs comes first.
std::exception_ptr Team::agree_on(std::exception_ptr own) {
  if (agreed_) return own;  // it came from the others, or from here to them
  Message failure;
  add_error(failure, error_for_others(own));
  failure.text(host_name());
  warn(failures_ + 1);
  try {
    auto frames = swap(framed(kFailure, failure));
    return failure_in(frames, own);
  } catch (...) {
    return own;  // nobody is left to be told
  }
}

std::exception_ptr attempt_together(Team& team, const std::function<void()>& work) {
  std::exception_ptr failure;
  ++attempts;
  try {
    together(team, work);
  } catch (...) {
    failure = std::current_exception();
    team.agreed_ = nullptr;  // all members go on
  }
  --attempts;
  return failure;
}

void together(Team& team, const std::function<void()>& work) {
  if (&team == &Team::alone()) return work();
  // A team of one may be warned, too: somebody wants it to end.
  const Question* others = current_question();
  const Question question = [&team, others] {
    return team.newest_warning() <= team.failures_ && (others == nullptr || (*others)());
  };
  const WantedWhile wanted(&question);
  if (team.size() == 1) return work();
  if (team.depth_++ == 0) team.agreed_ = nullptr;
  try {
    work();
    team.exchange({});
    --team.depth_;
  } catch (...) {
    --team.depth_;
    team.agreed_ = team.agree_on(std::current_exception());
    std::rethrow_exception(team.agreed_);
  }
}

Progress progress_of(Team& team, Progress progress) {
  if (team.size() == 1) return progress;
  return [&team, progress = std::move(progress)](const ProgressState& mine) {
    if (team.is_given_up()) return false;
    if (!progress) return true;
    ProgressState all = mine;
    all.done_bytes = std::min(mine.done_bytes * team.size(), mine.total_bytes);
    return progress(all);
  };
}

}  // namespace ballast
