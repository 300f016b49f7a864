// Parses the program: one AST per command of a compilation database.
#pragma once

#include "Program.h"

namespace foreread::slicer {

// One unit per command, in order. A unit that Clang cannot parse has no AST, and the reason is in WholeBecause.
void load(Program &P, const std::vector<clang::tooling::CompileCommand> &Commands);

// Why assembler is left whole. For a unit without an AST, any other reason is an error.
inline constexpr llvm::StringLiteral Assembler = "it is assembler";

// The compiler's arguments that affect the meaning of its source.
std::vector<std::string> parsingArguments(const std::vector<std::string> &Arguments,
                                          llvm::StringRef Source);

} // namespace foreread::slicer
