#include "core/wanted.hpp"

#include <utility>

namespace ballast {
namespace {

thread_local const Question* question_of_this_thread = nullptr;

}  // namespace

bool is_wanted() { return question_of_this_thread == nullptr || (*question_of_this_thread)(); }

const Question* current_question() noexcept { return question_of_this_thread; }

WantedWhile::WantedWhile(const Question* question) noexcept
    : before_(std::exchange(question_of_this_thread, question)) {}

WantedWhile::~WantedWhile() { question_of_this_thread = before_; }

}  // namespace ballast
