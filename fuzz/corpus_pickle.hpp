// The pickles that fuzzing begins with: every instruction, and the patterns of real files and attacks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

inline std::vector<std::string> pickles() {
  using namespace std::string_view_literals;
  std::vector<std::string> inputs;
  for (const std::string_view input : {
           // One instruction each, with the operands that it needs.
           "N."sv,
           "I00\n."sv,
           "I01\n."sv,
           "I-12\n."sv,
           "I0x1F\n."sv,
           "L123456789012345678901L\n."sv,
           "F1.5\n."sv,
           "F1e999\n."sv,
           "Fnan\n."sv,
           "J\xff\xff\xff\xff."sv,
           "K\xff."sv,
           "M\xff\xff."sv,
           "G\x3f\xf0\0\0\0\0\0\0."sv,
           "\x88."sv,
           "\x89."sv,
           "\x8a\x09\0\0\0\0\0\0\0\x80\0."sv,
           "\x8b\2\0\0\0\0\1."sv,
           "S'a\\x41\\n\\101'\n."sv,
           "S\"\\xff\"\n."sv,
           "T\1\0\0\0a."sv,
           "U\1a."sv,
           "Va\\u00e9\\U0001f600\n."sv,
           "X\2\0\0\0\xc3\xa9."sv,
           "X\3\0\0\0\xed\xa0\x80."sv,
           "\x8c\1a."sv,
           "\x8d\1\0\0\0\0\0\0\0a."sv,
           "B\1\0\0\0\xff."sv,
           "C\1\xff."sv,
           "\x8e\1\0\0\0\0\0\0\0\xff."sv,
           "\x96\1\0\0\0\0\0\0\0\xff."sv,
           "(K\1K\2t."sv,
           "K\1\x85."sv,
           "K\1K\2\x86."sv,
           "K\1K\2K\3\x87."sv,
           ")."sv,
           "]K\1a."sv,
           "](K\1K\2e."sv,
           "(K\1l."sv,
           "}K\1K\2s."sv,
           "}(K\1K\2u."sv,
           "(K\1K\2d."sv,
           "\x8f(K\1\x90."sv,
           "(K\1\x91."sv,
           "cm\nn\n)R."sv,
           "cm\nn\n)\x81}b."sv,
           "cm\nn\n)}\x92."sv,
           "(cm\nn\nK\1o."sv,
           "(K\1im\nn\n."sv,
           "\x8c\1m\x8c\1n\x93."sv,
           "Pid\n."sv,
           "K\1Q."sv,
           "Np1\n0g1\n."sv,
           "Nq\1\x30h\1."sv,
           "Nr\1\0\0\0\x30j\1\0\0\0."sv,
           "]\x94h\0a."sv,
           "N2\x86."sv,
           "NN0."sv,
           "N(NN1."sv,
           "\x80\2N."sv,
           "\x80\4\x95\2\0\0\0\0\0\0\0N."sv,
           "\x82\1."sv,
           "\x97\x98."sv,
           // A state dict, as torch writes it, with a storage; an OrderedDict with a state.
           "\x80\2}q\0X\1\0\0\0wq\1ctorch._utils\n_rebuild_tensor_v2\nq\2((X\7\0\0\0storageq\3"
           "ctorch\nFloatStorage\nq\4X\1\0\0\0\x30q\5X\3\0\0\0cpuq\6K\4tq\x07QK\0K\2K\2\x86q\x08K\2K\1\x86q\x09\x89"
           "ccollections\nOrderedDict\nq\x0a)Rq\x0btq\x0cRq\x0ds."sv,
           "\x80\2ccollections\nOrderedDict\n)R(X\1\0\0\0aK\1u}X\t\0\0\0_metadatah\1sb."sv,
           "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\2M\xe9\3."sv,
           // Attacks: plain, popped, from the memo, behind a STOP, inside bytes, hex, base64, Latin-1 and escapes.
           "cos\nsystem\n(S'id'\ntR."sv,
           "\x80\4\x8c\2os\x8c\6system\x93\x8c\2id\x85R0N."sv,
           "\x80\4\x8c\6system\x94\x8c\2os\x94h\0\x93."sv,
           "\x80\4N.\x80\2cos\nsystem\n."sv,
           "N.cos\nsystem\n."sv,
           "C\x0e\x80\2cos\nsystem\n."sv,
           "C\x0c\x63os\nsystem\n.."sv,
           "\x8c\x1c\x38\x30\x30\x32\x36\x33\x36\x66\x37\x33"
           "0a73797374656d0a2e."sv,
           "\x8c\x14gAJjb3MKc3lzdGVtCi4=."sv,
           "\x8c\x0f\xc2\x80\2cos\nsystem\n.."sv,
           "\x8c\x11\\x80\\x02cos\n.\n.\n..."sv,
           "cm\nn\n}X\1\0\0\0aK\1sb."sv,
           "(((((((((U\3lol2222l2222l2222l."sv,
       })
    inputs.emplace_back(input);
  return inputs;
}
