#include "Exchange.h"

namespace foreread::slicer {

using namespace clang;

namespace {

std::string pointee(const Expr *Argument, const std::function<std::string(const Expr *)> &Text) {
  const auto *Address = dyn_cast<UnaryOperator>(Argument->IgnoreParenImpCasts());
  if (Address && Address->getOpcode() == UO_AddrOf)
    return "sizeof(" + Text(Address->getSubExpr()) + ")";
  return "sizeof(*(" + Text(Argument) + "))";
}

bool isNull(const Expr *E, const Function &F) {
  return E->isNullPointerConstant(F.Home->context(), Expr::NPC_ValueDependentIsNotNull);
}

} // namespace

bool resultUsed(const Function &F, const CallExpr *Call) {
  const Stmt *Up = F.Parents.lookup(Call);
  while (Up && isa<ParenExpr>(Up))
    Up = F.Parents.lookup(Up);
  if (const auto *Cast = dyn_cast_or_null<CastExpr>(Up))
    return !Cast->getType()->isVoidType();
  return Up && (isa<Expr>(Up) ||
                isa<DeclStmt, ReturnStmt, IfStmt, WhileStmt, DoStmt, ForStmt, SwitchStmt>(Up));
}

Exchange exchange(const Program &P, const Function &F, const CallExpr *Call, int Channel,
                  bool Sends, const PrintingPolicy &Policy,
                  const std::function<std::string(const Expr *)> &Text) {
  const CallSpec &Spec = *P.spec(Call);
  llvm::StringRef Name = plainName(Spec.Name);
  Exchange Result;
  auto Move = [&](const std::string &Data, const std::string &Bytes, const std::string &Condition) {
    Result.Moves.push_back((Condition.empty() ? "" : "if (" + Condition + ") ") +
                           (Sends ? "foreread_send(" : "foreread_receive(") +
                           std::to_string(Channel) + ", " + Data + ", " + Bytes + ");");
  };
  bool Used = resultUsed(F, Call) && !Call->getType()->isVoidType();
  if (Name == "fgets") {
    // Pointers mean nothing to the other thread: a flag is sent, whether the pointer is null.
    Result.ResultType = "char *";
    std::string Line = Text(Call->getArg(0));
    if (Sends) {
      Result.Moves.push_back("int foreread_any = foreread_result != 0;");
      Move("&foreread_any", "sizeof(int)", "");
      Move(Line, "__builtin_strlen(" + Line + ") + 1", "foreread_any");
      Result.Result = "foreread_result";
    } else {
      Result.Moves.push_back("int foreread_any = 0;");
      Move("&foreread_any", "sizeof(int)", "");
      Move(Line, "(size_t)(" + Text(Call->getArg(1)) + ")", "foreread_any");
      Result.Moves.push_back("foreread_result = foreread_any ? " + Line + " : 0;");
      Result.Result = "foreread_result";
    }
    return Result;
  }
  if (Name == "getline" || Name == "getdelim") {
    std::string Line = "*(" + Text(Call->getArg(0)) + ")",
                Room = "*(" + Text(Call->getArg(1)) + ")";
    Result.ResultType = Call->getType().getUnqualifiedType().getAsString(Policy);
    Result.Result = "foreread_result";
    Move("&foreread_result", "sizeof(foreread_result)", "");
    // Each side has its own buffer.
    if (!Sends)
      Result.Moves.push_back("if (foreread_result >= 0 && (!" + Line + " || " + Room +
                             " <= (__SIZE_TYPE__)foreread_result)) " + Line +
                             " = (char *)__builtin_realloc(" + Line + ", " + Room +
                             " = (__SIZE_TYPE__)foreread_result + 1);");
    Move(Line, "(__SIZE_TYPE__)foreread_result + 1", "foreread_result >= 0");
    return Result;
  }
  bool Counted = Name == "read" || Name == "pread" || Name == "fread" || Name == "recv" ||
                 Name == "getrandom";
  if (Used || Counted) {
    Result.ResultType = Call->getType().getUnqualifiedType().getAsString(Policy);
    Result.Result = "foreread_result";
    Move("&foreread_result", "sizeof(foreread_result)", "");
  }
  for (unsigned I = 0; I < Call->getNumArgs(); ++I) {
    char Letter = Spec.parameter(I);
    const Expr *Argument = Call->getArg(I);
    if ((Letter != 'd' && Letter != 'w') || isNull(Argument, F))
      continue;
    std::string Data = Text(Argument);
    if (Name == "fread")
      Move(Data, "foreread_result * (" + Text(Call->getArg(1)) + ")", "foreread_result > 0");
    else if (Counted)
      Move(Data, "(__SIZE_TYPE__)foreread_result", "foreread_result > 0");
    else
      Move(Data, pointee(Argument, Text),
           isa<UnaryOperator>(Argument->IgnoreParenImpCasts()) ? "" : Data);
  }
  return Result;
}

} // namespace foreread::slicer
