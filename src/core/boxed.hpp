// Boxed: what is seldom there, kept somewhere else. A copy has a copy of it.
#pragma once

#include <memory>
#include <utility>

namespace ballast {

template <class Value>
class Boxed {
 public:
  Boxed() = default;
  Boxed(Value value) : value_(std::make_unique<Value>(std::move(value))) {}
  Boxed(const Boxed& other) : value_(other ? std::make_unique<Value>(*other) : nullptr) {}
  Boxed(Boxed&& other) noexcept = default;
  Boxed& operator=(Boxed other) noexcept {
    value_ = std::move(other.value_);
    return *this;
  }
  ~Boxed() = default;

  explicit operator bool() const noexcept { return value_ != nullptr; }
  Value& operator*() noexcept { return *value_; }
  const Value& operator*() const noexcept { return *value_; }
  Value* operator->() noexcept { return value_.get(); }
  const Value* operator->() const noexcept { return value_.get(); }

 private:
  std::unique_ptr<Value> value_;
};

}  // namespace ballast
