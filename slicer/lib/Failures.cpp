#include "Failures.h"

#include "Cxx.h"

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

// The operand of n < 0 or n == -1, the usual tests for a failed call; or null.
const Expr *testedNegative(const Expr *Condition) {
  const auto *Test = dyn_cast<BinaryOperator>(Condition->IgnoreParenCasts());
  if (!Test)
    return nullptr;
  if (Test->getOpcode() == BO_LT) {
    const auto *Zero = dyn_cast<IntegerLiteral>(Test->getRHS()->IgnoreParenCasts());
    return Zero && Zero->getValue() == 0 ? Test->getLHS() : nullptr;
  }
  return Test->getOpcode() == BO_EQ && negativeConstant(Test->getRHS()) ? Test->getLHS() : nullptr;
}

// The local variable that an lvalue names, or null. Only its function assigns to a local variable.
const VarDecl *named(const Expr *Lvalue) {
  const auto *Ref = dyn_cast<DeclRefExpr>(Lvalue->IgnoreParenCasts());
  const auto *Variable = Ref ? dyn_cast<VarDecl>(Ref->getDecl()) : nullptr;
  return Variable && Variable->hasLocalStorage() ? Variable : nullptr;
}

// Collects all values that a function assigns to a variable. False if some of them are unknown.
bool assigned(const Stmt *S, const VarDecl *To, std::vector<const Expr *> &Into) {
  if (const auto *Declared = dyn_cast<DeclStmt>(S))
    for (const Decl *D : Declared->decls())
      if (const auto *Variable = dyn_cast<VarDecl>(D); Variable == To && Variable->getInit())
        Into.push_back(Variable->getInit());
  if (const auto *Binary = dyn_cast<BinaryOperator>(S);
      Binary && Binary->isAssignmentOp() && named(Binary->getLHS()) == To) {
    if (Binary->getOpcode() != BO_Assign)
      return false;
    Into.push_back(Binary->getRHS());
  }
  if (const auto *Unary = dyn_cast<UnaryOperator>(S);
      Unary && (Unary->isIncrementDecrementOp() || Unary->getOpcode() == UO_AddrOf) &&
      named(Unary->getSubExpr()) == To)
    return false;
  for (const Stmt *Child : S->children())
    if (Child && !assigned(Child, To, Into))
      return false;
  return true;
}

void returns(const Stmt *S, std::vector<const Expr *> &Into) {
  if (const auto *Return = dyn_cast<ReturnStmt>(S); Return && Return->getRetValue())
    Into.push_back(Return->getRetValue());
  if (isa<LambdaExpr>(S))
    return;
  for (const Stmt *Child : S->children())
    if (Child)
      returns(Child, Into);
}

// exit, _exit, _Exit, quick_exit: the status says whether the program has failed.
bool endsWithStatus(llvm::StringRef Name) { return Name.ends_with("xit"); }

bool zero(const Expr *E) {
  const auto *Number = dyn_cast<IntegerLiteral>(E->IgnoreParenCasts());
  return Number && Number->getValue() == 0;
}

} // namespace

// Collects functions that report an error on standard error, directly or by calling another such function.
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
    return Spec && Spec->Kind == CallKind::Exit && !endsWithStatus(Name);
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

// True if a call ends a program that has failed: exit(1), abort(), or a function of the program whose last statement is
// such a call.
bool Failures::endsProgram(const CallExpr *Call, unsigned Depth) const {
  const FunctionDecl *Callee = directCallee(Call);
  if (!Callee || Depth > 3)
    return false;
  if (const Function *F = P.function(Callee)) {
    const auto *Body = dyn_cast<CompoundStmt>(F->Decl->getBody());
    const auto *Last =
        Body && !Body->body_empty() ? dyn_cast<CallExpr>(Body->body_back()) : nullptr;
    if (!Last || !endsProgram(Last, Depth + 1))
      return false;
    // The status is a parameter of this function.
    const auto *Status = Last->getNumArgs() ? dyn_cast<DeclRefExpr>(Last->getArg(0)->IgnoreParenCasts()) : nullptr;
    const auto *Parameter = Status ? dyn_cast<ParmVarDecl>(Status->getDecl()) : nullptr;
    unsigned Index = Parameter ? Parameter->getFunctionScopeIndex() + firstArgument(Call) : Call->getNumArgs();
    return Index >= Call->getNumArgs() || !zero(Call->getArg(Index));
  }
  const CallSpec *Spec = P.spec(Call);
  if (!Spec || Spec->Kind != CallKind::Exit)
    return false;
  llvm::StringRef Name = plainName(Spec->Name);
  return !endsWithStatus(Name) || Call->getNumArgs() == 0 || !zero(Call->getArg(0));
}

// True if a call returns a negative number exactly if the system could not do what it was asked for. A comparison
// (memcmp) returns one for other reasons.
bool Failures::isStatus(const CallExpr *Call, unsigned Depth) const {
  const FunctionDecl *Callee = directCallee(Call);
  if (const Function *F = Callee ? P.function(Callee) : nullptr) {
    if (Depth > 3)
      return false;
    std::vector<const Expr *> Values;
    returns(F->Decl->getBody(), Values);
    for (const Expr *Value : Values)
      if (!negativeConstant(Value) && !zero(Value) && !isStatus(Value, *F, Depth + 1))
        return false;
    return !Values.empty();
  }
  const CallSpec *Spec = P.spec(Call);
  if (!Spec)
    return false;
  switch (Spec->Kind) {
  case CallKind::Query:
  case CallKind::Open:
  case CallKind::Stream:
  case CallKind::Close:
  case CallKind::Read:
  case CallKind::Seek:
  case CallKind::Tell:
  case CallKind::Unmap:
  case CallKind::Write:
  case CallKind::Effect:
    return true;
  default:
    return false;
  }
}

bool Failures::isStatus(const Expr *E, const Function &In, unsigned Depth) const {
  E = E->IgnoreParenCasts();
  if (const auto *Call = dyn_cast<CallExpr>(E))
    return isStatus(Call, Depth);
  if (const auto *Binary = dyn_cast<BinaryOperator>(E); Binary && Binary->getOpcode() == BO_Assign)
    return isStatus(Binary->getRHS(), In, Depth);
  const VarDecl *Named = Depth > 3 ? nullptr : named(E);
  std::vector<const Expr *> Values;
  if (!Named || isa<ParmVarDecl>(Named) || !assigned(In.Decl->getBody(), Named, Values))
    return false;
  bool Any = false;
  for (const Expr *Value : Values) {
    if (negativeConstant(Value) || zero(Value))
      continue;
    if (!isStatus(Value, In, Depth + 1))
      return false;
    Any = true;
  }
  return Any;
}

bool Failures::testsStatus(const Expr *Condition, const Function &In) const {
  const Expr *Tested = testedNegative(Condition);
  return Tested && isStatus(Tested, In);
}

Failures::End Failures::end(const Stmt *S) const {
  if (const auto *Body = dyn_cast<CompoundStmt>(S))
    return Body->body_empty() ? End::Below : end(Body->body_back());
  if (const auto *Return = dyn_cast<ReturnStmt>(S))
    return Return->getRetValue() && negativeConstant(Return->getRetValue()) ? End::Error : End::Out;
  if (const auto *Goto = dyn_cast<GotoStmt>(S))
    return namesFailure(Goto->getLabel()->getName()) ? End::Error : End::Out;
  if (const auto *Call = dyn_cast<CallExpr>(S); Call && endsProgram(Call))
    return End::Error;
  if (const auto *E = dyn_cast<Expr>(S); E && isa<CXXThrowExpr>(E->IgnoreImplicit()))
    return End::Error;
  return isa<BreakStmt, ContinueStmt>(S) ? End::Jump : End::Below;
}

bool Failures::isFailure(const IfStmt *If, const Function &In) const {
  if (If->getElse())
    return false;
  switch (end(If->getThen())) {
  case End::Below:
    return false;
  case End::Jump:
    return reports(If->getThen());
  case End::Out:
    return reports(If->getThen()) || testsStatus(If->getCond(), In);
  case End::Error:
    return true;
  }
  return false;
}

} // namespace foreread::slicer
