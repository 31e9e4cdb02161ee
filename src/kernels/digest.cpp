#include "kernels/digest.hpp"

#include <algorithm>
#include <new>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <xxhash.h>

#include <ballast/error.hpp>

namespace ballast::kernels {
namespace {

EVP_MD_CTX* evp(void* context) { return static_cast<EVP_MD_CTX*>(context); }
XXH3_state_t* xxh(void* state) { return static_cast<XXH3_state_t*>(state); }

// A failure inside OpenSSL means a broken installation (SHA-256 is switched off) or no memory.
void require(int result) {
  if (result == 1) return;
  throw Error(Errc::unsupported, "OpenSSL cannot compute a digest").hint("check OpenSSL's configuration and providers");
}

// The algorithm is looked up once, because finding it costs more than hashing a small tensor with it.
const EVP_MD* sha256() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return algorithm;
}

}  // namespace

std::string to_hex(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

void Sha256::Free::operator()(void* context) const noexcept { EVP_MD_CTX_free(evp(context)); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr) throw std::bad_alloc();
  reset();
}

void Sha256::reset() { require(sha256() == nullptr ? 0 : EVP_DigestInit_ex2(evp(context_.get()), sha256(), nullptr)); }

void Sha256::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(evp(context_.get()), bytes.data(), bytes.size()));
}

void Sha1::Free::operator()(void* context) const noexcept { EVP_MD_CTX_free(evp(context)); }

Sha1::Sha1() : context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr) throw std::bad_alloc();
  require(EVP_DigestInit_ex(evp(context_.get()), EVP_sha1(), nullptr));
}

void Sha1::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(evp(context_.get()), bytes.data(), bytes.size()));
}

std::string Sha1::hex() {
  std::array<std::byte, 20> digest;
  require(EVP_DigestFinal_ex(evp(context_.get()), reinterpret_cast<unsigned char*>(digest.data()), nullptr));
  return to_hex(digest);
}

Sha256::Digest Sha256::finish() {
  Digest digest;
  require(EVP_DigestFinal_ex(evp(context_.get()), reinterpret_cast<unsigned char*>(digest.data()), nullptr));
  reset();
  return digest;
}

Sha256::Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> bytes) {
  Sha256::Digest digest;
  const auto* const done =
      HMAC(sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(bytes.data()),
           bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  require(done == nullptr ? 0 : 1);
  return digest;
}

bool is_equal_in_constant_time(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::uint64_t xxh3_64(std::span<const std::byte> bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

void hash_leaves(std::span<const std::byte> bytes, std::span<std::uint64_t> leaves) noexcept {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const auto rest = bytes.subspan(i * kLeafBytes);
    leaves[i] = xxh3_64(rest.first(std::min(kLeafBytes, rest.size())));
  }
}

std::uint64_t join_leaves(std::span<const std::uint64_t> leaves) noexcept {
  return leaves.size() == 1 ? leaves[0] : xxh3_64(std::as_bytes(leaves));
}

std::string to_hex(std::uint64_t digest) {
  std::array<std::byte, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(digest >> (56 - 8 * i));
  return to_hex(bytes);
}

void Xxh3::Free::operator()(void* state) const noexcept { XXH3_freeState(xxh(state)); }

Xxh3::Xxh3() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  reset();
}

void Xxh3::reset() noexcept { XXH3_64bits_reset(xxh(state_.get())); }

void Xxh3::update(std::span<const std::byte> bytes) noexcept {
  XXH3_64bits_update(xxh(state_.get()), bytes.data(), bytes.size());
}

std::uint64_t Xxh3::digest_64() const noexcept { return XXH3_64bits_digest(xxh(state_.get())); }

}  // namespace ballast::kernels
