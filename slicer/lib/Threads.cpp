// Threads of the C++ library: the function passed to std::thread, also through a container's emplace_back(), and to
// std::async with the policy std::launch::async. The program and the prefetch thread wrap the function in the same
// text, by which their threads are matched.
#include "Threads.h"

#include "Cxx.h"
#include "Edits.h"
#include "Walk.h"

namespace foreread::slicer {

using namespace clang;

namespace {

const FunctionDecl *runs(const Expr *E, const Expr *Second) {
  E = E->IgnoreUnlessSpelledInSource();
  if (const auto *Lambda = dyn_cast<LambdaExpr>(E))
    return operatorOf(Lambda->getLambdaClass());
  if (const auto *Address = dyn_cast<UnaryOperator>(E); Address && Address->getOpcode() == UO_AddrOf)
    E = Address->getSubExpr()->IgnoreParenImpCasts();
  const auto *Ref = dyn_cast<DeclRefExpr>(E);
  if (!Ref)
    return nullptr;
  if (const auto *Variable = dyn_cast<VarDecl>(Ref->getDecl())) {
    const CXXRecordDecl *Closure = Variable->getType()->getAsCXXRecordDecl();
    return Closure && Closure->isLambda() ? operatorOf(Closure) : nullptr;
  }
  const auto *Method = dyn_cast<CXXMethodDecl>(Ref->getDecl());
  if (Method && Method->isInstance() && (Method->isVirtual() || !Second || !Second->getType()->isPointerType()))
    return nullptr;
  return dyn_cast<FunctionDecl>(Ref->getDecl());
}

// True if moving or copying a closure has no visible effects.
bool movesUnseen(const FunctionDecl *Body) {
  const auto *Method = dyn_cast<CXXMethodDecl>(Body);
  if (!Method || !Method->getParent()->isLambda())
    return true;
  return llvm::all_of(Method->getParent()->fields(), [&](const FieldDecl *Captured) {
    QualType Type = Captured->getType();
    const auto *Record = Type->getAsCXXRecordDecl();
    return Type->isReferenceType() || !Record || isOpaque(Record) ||
           Type.isTriviallyCopyableType(Body->getASTContext());
  });
}

// Closures among the operands of an expression, by lambda expression or by name.
struct Closures : Walk {
  std::vector<const CXXRecordDecl *> Found;
  bool entersStmt(const Stmt *S) override {
    // The body belongs to the closure. Other calls are visited separately.
    if (const auto *Lambda = dyn_cast<LambdaExpr>(S)) {
      Found.push_back(Lambda->getLambdaClass());
      return false;
    }
    const auto *Made = dyn_cast<CXXConstructExpr>(S);
    const auto *Record = Made ? Made->getType()->getAsCXXRecordDecl() : nullptr;
    return !isa<CallExpr>(S) && (!Record || Record->isLambda());
  }
  bool visitStmt(const Stmt *S) override {
    const auto *Ref = dyn_cast<DeclRefExpr>(S);
    const CXXRecordDecl *Record = Ref ? Ref->getType()->getAsCXXRecordDecl() : nullptr;
    if (Record && Record->isLambda())
      Found.push_back(Record);
    return true;
  }
};

} // namespace

void findThreads(Program &P) {
  // Closures that are passed to the library in other ways, too.
  llvm::DenseSet<const Function *> Others;
  for (auto &F : P.Functions) {
    auto See = [&](const Expr *E) {
      const Expr *Second = nullptr, *Body = givenToThread(E, Second);
      Function *Target = Body ? P.function(runs(Body, Second)) : nullptr;
      bool Can = Target && F->AtHand && !F->Shared && textOf(*F->Home, Body).Valid && movesUnseen(Target->Decl) &&
                 !Body->getBeginLoc().isMacroID() && Target->Home == F->Home;
      if (Can) {
        P.Threads[E] = {Body, Target};
        P.ThreadBodies[Body] = E;
      }
      if (Can || (isa<CallExpr>(E) && P.function(directCallee(cast<CallExpr>(E)))))
        return;
      Closures Given;
      for (const Stmt *Part : E->children())
        if (const auto *Argument = dyn_cast_or_null<Expr>(Part))
          Given.walk(Argument);
      const auto *Made = dyn_cast<CXXConstructExpr>(E);
      // A copy of the closure is passed.
      const auto *Record = Made ? Made->getType()->getAsCXXRecordDecl() : nullptr;
      if (!Record || !Record->isLambda())
        for (const CXXRecordDecl *Each : Given.Found)
          for (const FunctionDecl *Operator : operatorsOf(Each))
            Others.insert(P.function(Operator));
    };
    for (const CallExpr *Call : F->Calls)
      if (!isa<CXXOperatorCallExpr>(Call) || !isa_and_nonnull<CXXMethodDecl>(directCallee(Call)))
        See(Call);
    for (const Expr *Made : F->Makes)
      if (isa<CXXConstructExpr>(Made))
        See(Made);
  }
  for (auto &[E, Start] : P.Threads)
    if (Start.Target->lambda() && !Others.contains(Start.Target))
      Start.Target->RunByLibrary = false;
}

} // namespace foreread::slicer
