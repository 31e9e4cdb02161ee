#include "progress_bar.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <ballast/text.hpp>

#include "interrupt.hpp"
#include "output.hpp"

namespace ballast::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 500ms;
constexpr auto kBetweenFrames = 100ms;
constexpr std::size_t kWidestBar = 40;

std::string time_left(double seconds) {
  if (seconds < 60) return fmt::format("{:.0f} s left", std::max(seconds, 1.0));
  const auto minutes = static_cast<std::uint64_t>(seconds) / 60;
  if (minutes < 60) return fmt::format("{} min {:02} s left", minutes, static_cast<std::uint64_t>(seconds) % 60);
  return fmt::format("{} h {:02} min left", minutes / 60, minutes % 60);
}

// "█████▍    ": fills `share` of `columns`, to an eighth of a column; "#####     " if the terminal has no blocks.
std::string bar(const Terminal& terminal, double share, std::size_t columns) {
  constexpr std::string_view kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(share * static_cast<double>(columns) * 8);
  std::string text;
  for (std::size_t i = 0; i < eighths / 8; ++i) text += terminal.utf8 ? "█" : "#";
  if (terminal.utf8) text += kEighths[eighths % 8];
  text.append(columns - columns_of(text), ' ');
  return text;
}

}  // namespace

ProgressBar::ProgressBar(const Terminal& terminal, bool visible, Progress host)
    : terminal_(terminal),
      host_(std::move(host)),
      visible_(visible && terminal.interactive),
      next_(start_ + kPatience) {}

Progress ProgressBar::callback() {
  return [this](const ProgressState& state) { return update(state); };
}

bool ProgressBar::update(ProgressState state) {
  if (host_) return host_(state);
  if (interrupted() != 0) return false;
  const auto now = Clock::now();
  if (!visible_ || now < next_) return true;
  next_ = now + kBetweenFrames;
  draw(state, std::chrono::duration<double>(now - start_).count());
  return true;
}

void ProgressBar::draw(const ProgressState& state, double seconds) {
  const std::uint64_t total = std::max(state.total_bytes, state.done_bytes);
  const double share = total == 0 ? 0 : static_cast<double>(state.done_bytes) / static_cast<double>(total);
  const double rate = static_cast<double>(state.done_bytes) / seconds;

  std::string left = fmt::format("{} {:3.0f} % ", state.phase, share * 100);
  std::string right = fmt::format(" {} of {}", format_bytes(state.done_bytes), format_bytes(total));
  if (rate > 0) {
    right += fmt::format("  {}/s  {}", format_bytes(static_cast<std::uint64_t>(rate)),
                         time_left(static_cast<double>(total - state.done_bytes) / rate));
  }

  const std::size_t taken = columns_of(left) + columns_of(right) + 1;
  const std::size_t room = terminal_.width > taken ? std::min(terminal_.width - taken, kWidestBar) : 0;
  const std::string middle = room < 4 ? std::string() : terminal_.paint(Color::cyan, bar(terminal_, share, room));
  // Text that does not fit would wrap, and then every frame would scroll.
  if (columns_of(left + right) >= terminal_.width)
    right = abbreviate(right, terminal_.width - std::min(columns_of(left) + 1, terminal_.width), terminal_.ellipsis());
  write_to_stderr(fmt::format("\r\x1b[K{}{}{}", left, middle, right));
  drawn_ = true;
}

void ProgressBar::clear() {
  if (drawn_) write_to_stderr("\r\x1b[K");
  drawn_ = false;
}

}  // namespace ballast::cli
