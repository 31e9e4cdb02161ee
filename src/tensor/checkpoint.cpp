#include <ballast/checkpoint.hpp>

namespace ballast {

Checkpoint::Checkpoint() = default;
Checkpoint::Checkpoint(StateDict state) : tensors(std::move(state)) {}
Checkpoint::Checkpoint(const Checkpoint& other) = default;
Checkpoint::Checkpoint(Checkpoint&& other) noexcept = default;
Checkpoint& Checkpoint::operator=(const Checkpoint& other) = default;
Checkpoint& Checkpoint::operator=(Checkpoint&& other) noexcept = default;
Checkpoint::~Checkpoint() = default;

}  // namespace ballast
