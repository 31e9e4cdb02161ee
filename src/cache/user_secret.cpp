#include "cache/user_secret.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <ballast/error.hpp>

#include <filesystem>

#include "cache/user_folders.hpp"
#include "io/posix.hpp"
#include "kernels/digest.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSecretName = "cache.key";

std::string secret_path() { return (fs::path(state_folder()) / kSecretName).string(); }

[[noreturn]] void refuse_secret(const std::string& path, const std::string& why) {
  throw Error(Errc::unsafe, "this user's key cannot be trusted: " + why).in(path).hint("remove it; a new one is made");
}

UserSecret random_bytes() {
  UserSecret bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw io::system_error("the system has no random bytes", errno);
  return bytes;
}

void write_secret(const std::string& path, const UserSecret& secret) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const io::UniqueFd fd(io::retry([&] { return ::open(path.c_str(), flags, S_IRUSR | S_IWUSR); }));
  if (!fd) throw io::system_error("cannot be created", errno).in(path);
  int error = io::write_all_at(fd.get(), 0, secret);
  if (error == 0 && fsync(fd.get()) != 0) error = errno;
  if (error != 0) throw io::system_error("cannot be written", error).in(path);
}

}  // namespace

std::optional<UserSecret> read_user_secret() {
  if (state_folder().empty()) return std::nullopt;
  const std::string path = secret_path();
  const io::UniqueFd fd(
      io::retry([&] { return ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK); }));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  struct stat found = {};
  if (!fd || fstat(fd.get(), &found) != 0) throw io::system_error("cannot be opened", errno).in(path);
  if (!S_ISREG(found.st_mode) || found.st_uid != geteuid()) refuse_secret(path, "it is not a file of this user");
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) != 0) refuse_secret(path, "others can read or write it");
  if (!is_private_folder(state_folder())) refuse_secret(path, "others can write to its folder");

  UserSecret secret;
  std::size_t done = 0;
  if (const int error = io::read_all_at(fd.get(), 0, secret, done); error != 0)
    throw io::system_error("cannot be read", error).in(path);
  if (done != secret.size() || found.st_size != static_cast<off_t>(secret.size()))
    refuse_secret(path, "it has another size");
  return secret;
}

UserSecret make_user_secret() {
  if (state_folder().empty())
    throw Error(Errc::unsupported, "there is no folder for this user's key").hint("set HOME or XDG_STATE_HOME");
  make_user_folder(state_folder());
  if (const auto secret = read_user_secret()) return *secret;
  // Several processes may get here at once. A link, unlike a rename, never replaces a key that is there.
  const std::string path = secret_path(), temporary = path + "." + kernels::to_hex(random_bytes());
  write_secret(temporary, random_bytes());
  const int error = link(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
  unlink(temporary.c_str());
  if (error != 0 && error != EEXIST) throw io::system_error("cannot be created", error).in(path);
  if (const auto secret = read_user_secret()) return *secret;
  throw Error(Errc::changed, "this user's key was removed while it was being made").in(path);
}

}  // namespace ballast
