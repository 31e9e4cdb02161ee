// Ratios that mean something on a noisy machine: each round runs both sides in random order, and the result is the
// median of the rounds' ratios.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace ballast::bench {

struct Side {
  std::function<void()> run;          // is timed
  std::function<void()> before = {};  // runs before each run and is not timed
};

struct Comparison {
  double ratio;    // median over rounds of our time / their time
  double control;  // the same ratio of their side against itself: the noise of the machine
  double ours_ms, theirs_ms;
  int rounds;
};

// Runs rounds of {ours, theirs, theirs again} in random order. A short side is run several times in each round. The
// time that `not_counted` takes is subtracted from our time.
Comparison compare(const Side& ours, const Side& theirs, int rounds = 21,
                   const std::function<void()>& not_counted = {});

// The median time of one side alone.
double median_ms(int rounds, const std::function<void()>& run);

// A goal is about time ("at most 1.0x their time") or speed ("at least 0.95x their speed").
enum class Goal { time_at_most, speed_at_least };

class Report {
 public:
  // Only rows whose name contains `filter` are run; each is printed as soon as it is measured.
  explicit Report(std::string filter) : filter_(std::move(filter)) {}

  bool wants(const std::string& name) const { return filter_.empty() || name.find(filter_) != std::string::npos; }
  void add(const std::string& name, const Comparison& comparison, Goal goal, double bound);
  void add_value(const std::string& name, double value, double at_most, const std::string& unit);

  // Says on stderr which rows missed their goals, and which have to be run again because the machine was too busy.
  // Returns 1 if a row missed its goal on a machine that was quiet enough to say so, 2 if no row contains the filter.
  int finish() const;

 private:
  void print_head();

  std::string filter_;
  std::vector<std::string> missed_, undecided_;
  bool has_head_ = false;
};

// The most bytes that were allocated at once by operator new since the last reset, beyond the bytes at that reset.
void reset_peak();
std::size_t peak_bytes();

// The most anonymous memory, in MiB, of a process that does nothing but `run`.
double peak_anonymous(const std::function<void()>& run);

// Makes the compiler believe that a value is used.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

}  // namespace ballast::bench
