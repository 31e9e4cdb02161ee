#include "harness.hpp"

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace {

std::atomic<std::size_t> live{0}, peak{0};

void* count_in(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  const std::size_t now = live += malloc_usable_size(memory);
  std::size_t most = peak;
  while (now > most && !peak.compare_exchange_weak(most, now)) {
  }
  return memory;
}

void count_out(void* memory) noexcept {
  if (memory != nullptr) live -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

// Every allocation of the program is counted. That costs two atomic additions, the same for both sides.
void* operator new(std::size_t size) { return count_in(std::malloc(size)); }
void* operator new[](std::size_t size) { return count_in(std::malloc(size)); }
void operator delete(void* memory) noexcept { count_out(memory); }
void operator delete[](void* memory) noexcept { count_out(memory); }
void operator delete(void* memory, std::size_t) noexcept { count_out(memory); }
void operator delete[](void* memory, std::size_t) noexcept { count_out(memory); }

namespace ballast::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(const Side& side, int repeats) {
  if (side.before) side.before();
  const auto start = Clock::now();
  for (int i = 0; i < repeats; ++i) side.run();
  return std::chrono::duration<double>(Clock::now() - start).count() / repeats;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace

Comparison compare(const Side& ours, const Side& theirs, int rounds, const std::function<void()>& not_counted) {
  // Below a few milliseconds, the clock's resolution and a single interrupt weigh too much.
  const double once = std::min(seconds(ours, 1), seconds(theirs, 1));
  const bool repeatable = !ours.before && !theirs.before;
  const int repeats = repeatable ? std::clamp(static_cast<int>(0.004 / std::max(once, 1e-7)), 1, 1000) : 1;

  const std::array<Side, 4> sides = {ours, theirs, theirs, {not_counted}};
  std::array<std::size_t, 4> order = {0, 1, 2, 3};
  const auto last = not_counted ? order.end() : order.end() - 1;
  std::mt19937 random(std::random_device{}());
  std::vector<double> ratios, controls, our_times, their_times;
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), last, random);
    std::array<double, 4> time{};
    for (auto which = order.begin(); which != last; ++which) time[*which] = seconds(sides[*which], repeats);
    our_times.push_back(time[0] - time[3]);
    their_times.push_back(time[1]);
    ratios.push_back(our_times.back() / time[1]);
    controls.push_back(time[2] / time[1]);
  }
  return {median(ratios), median(controls), median(our_times) * 1e3, median(their_times) * 1e3, rounds};
}

void Report::print_head() {
  if (std::exchange(has_head_, true)) return;
  fmt::print("| what | ours | theirs | ratio | goal | control | |\n|---|---|---|---|---|---|---|\n");
}

void Report::add(const std::string& name, const Comparison& c, Goal goal, double bound) {
  print_head();
  const bool is_time = goal == Goal::time_at_most;
  const double value = is_time ? c.ratio : 1 / c.ratio;
  const bool met = is_time ? value <= bound : value >= bound;
  const bool noisy = c.control < 0.95 || c.control > 1.05;
  if (!met) (noisy ? undecided_ : missed_).push_back(fmt::format("{}: {:.2f}, goal {:.2f}", name, value, bound));
  fmt::print("| {} | {:.3f} ms | {:.3f} ms | {:.2f}x {} | {} {:.2f} | {:.2f} | {}{} |\n", name, c.ours_ms, c.theirs_ms,
             value, is_time ? "the time" : "the speed", is_time ? "at most" : "at least", bound, c.control,
             met ? "ok" : "MISSED", noisy ? ", noisy: run again" : "");
  std::fflush(stdout);
}

double median_ms(int rounds, const std::function<void()>& run) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<std::size_t>(rounds / 2)];
}

void Report::add_value(const std::string& name, double value, double at_most, const std::string& unit) {
  print_head();
  if (value > at_most) missed_.push_back(fmt::format("{}: {:.2f} {}, goal {:.2f}", name, value, unit, at_most));
  fmt::print("| {} | {:.2f} {} | | | at most {:.2f} | | {} |\n", name, value, unit, at_most,
             value <= at_most ? "ok" : "MISSED");
  std::fflush(stdout);
}

int Report::finish() const {
  if (!has_head_) {
    fmt::print(stderr, "no row has the words \"{}\"\n", filter_);
    return 2;
  }
  for (const std::string& row : undecided_) fmt::print(stderr, "too busy to say, run again: {}\n", row);
  for (const std::string& row : missed_) fmt::print(stderr, "MISSED: {}\n", row);
  return missed_.empty() ? 0 : 1;
}

namespace {
std::size_t at_reset = 0;
}

void reset_peak() { peak = at_reset = live.load(); }
std::size_t peak_bytes() { return peak - at_reset; }

double peak_anonymous(const std::function<void()>& run) {
  const pid_t child = fork();
  if (child == 0) {
    run();
    _exit(0);
  }
  double peak = 0;
  while (waitpid(child, nullptr, WNOHANG) == 0) {
    std::ifstream status(fmt::format("/proc/{}/status", child));
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("RssAnon:")) peak = std::max(peak, std::stod(line.substr(8)) / 1024);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return peak;
}

}  // namespace ballast::bench
