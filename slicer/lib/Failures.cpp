#include "Failures.h"

namespace foreread::slicer {

using namespace clang;

namespace {

bool namesFailure(llvm::StringRef Label) {
  std::string Lower = Label.lower();
  for (const char *Part : {"err", "fail", "bad", "abort", "corrupt", "invalid"})
    if (llvm::StringRef(Lower).contains(Part))
      return true;
  return false;
}

bool negativeConstant(const Expr *E) {
  const auto *Minus = dyn_cast<UnaryOperator>(E->IgnoreParenCasts());
  return Minus && Minus->getOpcode() == UO_Minus &&
         isa<IntegerLiteral, DeclRefExpr>(Minus->getSubExpr()->IgnoreParenCasts());
}

// n < 0, n == -1: how a call's failure is asked for.
bool testsNegative(const Expr *Condition) {
  const auto *Test = dyn_cast<BinaryOperator>(Condition->IgnoreParenCasts());
  if (!Test)
    return false;
  if (Test->getOpcode() == BO_LT) {
    const auto *Zero = dyn_cast<IntegerLiteral>(Test->getRHS()->IgnoreParenCasts());
    return Zero && Zero->getValue() == 0;
  }
  return Test->getOpcode() == BO_EQ && negativeConstant(Test->getRHS());
}

} // namespace

// Functions that write to standard error, and those that only hand over to such a one.
Failures::Failures(const Program &P) : P(P) {
  bool Changed = true;
  while (Changed) {
    Changed = false;
    for (auto &F : P.Functions)
      // Larger functions do more than report.
      if (!Reporters.contains(F.get()) && F->Calls.size() < 12 && F->Name != "main" &&
          reports(F->Decl->getBody())) {
        Reporters.insert(F.get());
        Changed = true;
      }
  }
}

bool Failures::toStandardError(const CallExpr *Call) const {
  const FunctionDecl *Callee = directCallee(Call);
  if (!Callee || !Callee->getIdentifier())
    return false;
  if (const Function *F = P.function(Callee))
    return Reporters.contains(F);
  llvm::StringRef Name = plainName(Callee->getName());
  if (llvm::StringSwitch<bool>(Name)
          .Cases("perror", "warn", "warnx", "vwarn", "vwarnx", "err", "errx", "error", "syslog",
                 true)
          .Default(false))
    return true;
  const CallSpec *Spec = P.spec(Call);
  if (!Spec || Spec->Kind != CallKind::Write)
    return Spec && Spec->Kind == CallKind::Exit && Name != "exit" && Name != "_exit";
  for (unsigned I = 0; I < Call->getNumArgs(); ++I)
    if (Spec->parameter(I) == 's')
      if (const auto *Stream = dyn_cast<DeclRefExpr>(Call->getArg(I)->IgnoreParenCasts()))
        return Stream->getDecl()->getName() == "stderr";
  return false;
}

bool Failures::reports(const Stmt *S) const {
  if (!S)
    return false;
  if (const auto *Stream = dyn_cast<DeclRefExpr>(S);
      Stream && Stream->getDecl()->isInStdNamespace() && Stream->getDecl()->getIdentifier() &&
      Stream->getDecl()->getName() == "cerr")
    return true;
  if (const auto *Call = dyn_cast<CallExpr>(S); Call && toStandardError(Call))
    return true;
  for (const Stmt *Child : S->children())
    if (reports(Child))
      return true;
  return false;
}

// Whether a call ends a program that has failed: exit(1), abort(), or a function of the program's
// whose last statement is one of these.
bool Failures::endsProgram(const CallExpr *Call, unsigned Depth) const {
  const FunctionDecl *Callee = directCallee(Call);
  if (!Callee || Depth > 3)
    return false;
  if (const Function *F = P.function(Callee)) {
    const auto *Body = dyn_cast<CompoundStmt>(F->Decl->getBody());
    const auto *Last =
        Body && !Body->body_empty() ? dyn_cast<CallExpr>(Body->body_back()) : nullptr;
    return Last && endsProgram(Last, Depth + 1);
  }
  const CallSpec *Spec = P.spec(Call);
  if (!Spec || Spec->Kind != CallKind::Exit)
    return false;
  const auto *Status =
      Call->getNumArgs() ? dyn_cast<IntegerLiteral>(Call->getArg(0)->IgnoreParenCasts()) : nullptr;
  // What a parameter says is nonzero where such a function is called for a failure.
  return Depth > 0 || !Status || Status->getValue() != 0;
}

// Whether control leaves at the end of the branch; and whether it does so in a way that by itself
// says that something is wrong.
bool Failures::leaves(const Stmt *S, bool &Negative) const {
  if (const auto *Body = dyn_cast<CompoundStmt>(S))
    return !Body->body_empty() && leaves(Body->body_back(), Negative);
  if (const auto *Return = dyn_cast<ReturnStmt>(S)) {
    Negative = Return->getRetValue() && negativeConstant(Return->getRetValue());
    return true;
  }
  if (const auto *Goto = dyn_cast<GotoStmt>(S)) {
    Negative = namesFailure(Goto->getLabel()->getName());
    return true;
  }
  if (const auto *Call = dyn_cast<CallExpr>(S); Call && endsProgram(Call)) {
    Negative = true;
    return true;
  }
  if (const auto *E = dyn_cast<Expr>(S); E && isa<CXXThrowExpr>(E->IgnoreImplicit())) {
    Negative = true;
    return true;
  }
  return isa<BreakStmt, ContinueStmt>(S);
}

bool Failures::isFailure(const IfStmt *If) const {
  bool Negative = false;
  if (If->getElse() || !leaves(If->getThen(), Negative))
    return false;
  return Negative || testsNegative(If->getCond()) || reports(If->getThen());
}

} // namespace foreread::slicer
