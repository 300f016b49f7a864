// Data sent over a channel when the program makes a call for both threads (paper, 3.3: send_XXX and receive_XXX). The
// code of both sides is generated here, so that they agree.
#pragma once

#include <functional>

#include "Program.h"

namespace foreread::slicer {

struct Exchange {
  // Statements that move the data, on the requested side.
  std::vector<std::string> Moves;
  // Type of foreread_result, the variable that holds the call's result in those statements; empty if there is none.
  std::string ResultType;
  // The expression that replaces the call afterwards.
  std::string Result;
};

Exchange exchange(const Program &P, const Function &F, const clang::CallExpr *Call, int Channel,
                  bool Sends, const clang::PrintingPolicy &Policy,
                  const std::function<std::string(const clang::Expr *)> &Text);

// True if the call's result is used.
bool resultUsed(const Function &F, const clang::CallExpr *Call);

} // namespace foreread::slicer
