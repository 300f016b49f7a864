// Reads the program: one AST for each unit of a compilation database.
#pragma once

#include "Program.h"

namespace foreread::slicer {

// One unit for each command, in order.  A unit that Clang cannot parse is there too, without an AST
// and with the reason in WholeBecause.
void load(Program &P, const std::vector<clang::tooling::CompileCommand> &Commands);

// Why assembler is left whole.  Every other reason of a unit without an AST is an error.
inline constexpr llvm::StringLiteral Assembler = "it is assembler";

// What of a compiler's arguments decides how its source is understood.
std::vector<std::string> parsingArguments(const std::vector<std::string> &Arguments,
                                          llvm::StringRef Source);

} // namespace foreread::slicer
