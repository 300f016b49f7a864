// What is sent over a channel when the program makes a call for both threads (paper, 3.3: send_XXX
// and receive_XXX).  Both sides are made here, so that they agree.
#pragma once

#include <functional>

#include "Program.h"

namespace foreread::slicer {

struct Exchange {
  // Statements that move the data, on the side asked for.
  std::vector<std::string> Moves;
  // The value of the call's result in those statements is foreread_result; empty if it is not used.
  std::string ResultType;
  // The expression that stands for the call's result afterwards.
  std::string Result;
};

Exchange exchange(const Program &P, const Function &F, const clang::CallExpr *Call, int Channel,
                  bool Sends, const clang::PrintingPolicy &Policy,
                  const std::function<std::string(const clang::Expr *)> &Text);

// Whether anything looks at the call's result.
bool resultUsed(const Function &F, const clang::CallExpr *Call);

} // namespace foreread::slicer
