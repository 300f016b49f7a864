// Expressions and statements of C++: objects that are constructed and destroyed, references, calls of member functions,
// exceptions.
#include "Cxx.h"
#include "Related.h"

namespace foreread::slicer {

using namespace clang;

// An operand of an unknown function: the operand and everything that it leads to are needed.
void Related::operand(const Expr *E) {
  if (!E->isGLValue() && !E->getType()->isRecordType()) {
    value(E);
    return markReachable(Pointers.pointees(E));
  }
  E->isGLValue() ? address(E) : value(E);
  markReachable(Pointers.locations(E));
}

// An argument or an initialiser: its address if it is an lvalue, else its value.
void Related::hand(const Expr *E) { E->isGLValue() ? address(E) : value(E); }

// True if the library receives only the prefetch version of a function, and calls it in no other way.
bool Related::givenVersion(const Function &F) const {
  return F.Through && !F.RunByLibrary && !F.GivenAsIs && !F.Givers.empty() && F.WholeBecause.empty() &&
         llvm::all_of(F.Givers, [&](const Function *Each) {
           return Each->WholeBecause.empty() && !Wholes.test(Each->Index);
         });
}

// A function that runs without a written call.
void Related::runs(const FunctionDecl *Unwritten) {
  Function *F = P.function(Unwritten);
  if (!F)
    return;
  if (Reached.test_and_set(F->Index))
    Changed = true;
  if (!AsItIs && givenVersion(*F)) {
    mark(P.result(*F));
    return markAll(P.fields(F->Decl->getReturnType()));
  }
  if (!F->WholeBecause.empty() || AsItIs || F->Through)
    whole(*F);
}

bool Related::startsThread(const Expr *E) const {
  const Function *Body = P.thread(E).Target;
  return Body && mayHaveEffects(*Body);
}

// An argument of a new thread. The function that the thread runs receives the following ones.
void Related::start(const Expr *E, const Expr *Argument) {
  Function &Body = *P.thread(E).Target;
  if (Reached.test_and_set(Body.Index) || !Threads)
    Changed = true;
  Threads = true;
  if (!Body.WholeBecause.empty())
    whole(Body);
  if (startsAnswering(E)) {
    mark(P.result(Body));
    markAll(P.fields(Body.Decl->getReturnType()));
  }
  hand(Argument);
}

void Related::make(const CXXConstructExpr *Made) {
  const CXXConstructorDecl *Constructor = Made->getConstructor();
  runs(Constructor);
  for (Function *F : P.runThrough(Constructor))
    runs(F->Decl);
  bool Plain = Constructor->isTrivial();
  for (const Expr *Argument : Made->arguments())
    if (startsThread(Made))
      start(Made, Argument);
    else
      P.function(Constructor) || Plain ? hand(Argument) : operand(Argument);
  if (const CXXDestructorDecl *End = destructorOf(Made->getType()))
    runs(End);
  if (!Plain)
    effect({}, false);
}

void Related::refuseUncarried(const Expr *E) {
  if (AsItIs || !Current->Home->cxx())
    return;
  std::string Why = notCarried(E);
  if (const auto *Lambda = dyn_cast<LambdaExpr>(E)) {
    bool Whole = !onlyCalled(Lambda->getLambdaClass()), Known = false, Effects = false;
    for (const FunctionDecl *Each : operatorsOf(Lambda->getLambdaClass()))
      if (const Function *Body = P.function(Each)) {
        Known = true;
        Whole |= !Body->WholeBecause.empty();
        Effects |= mayHaveEffects(*Body);
      }
    if (Whole && (!Known || Effects || !standsAlone(Lambda)))
      Why = "it makes a lambda expression that is left whole";
  }
  if (!Why.empty())
    refuse(*Current, Why);
}

bool Related::valueCxx(const Expr *E) {
  refuseUncarried(E);
  if (const Expr *Inner = behind(E)) {
    value(Inner);
  } else if (isa<CXXThisExpr>(E)) {
    mark(P.self(*Current));
  } else if (const Expr *From = copied(E)) {
    address(From);
    markAll(defined(From));
  } else if (const auto *Made = dyn_cast<CXXConstructExpr>(E)) {
    make(Made);
  } else if (const auto *Lambda = dyn_cast<LambdaExpr>(E)) {
    // The kept parts of its body decide which captures are needed.
    if (AsItIs)
      for (const Expr *Captured : Lambda->capture_inits())
        if (Captured)
          operand(Captured);
    for (const FunctionDecl *Each : operatorsOf(Lambda->getLambdaClass()))
      runs(Each);
  } else if (const auto *Call = dyn_cast<CallExpr>(E); Call && assignsPlainly(Call)) {
    address(Call->getArg(0));
    if (relatedAny(defined(Call->getArg(0))))
      effect(defined(Call->getArg(0)), isa<DeclRefExpr>(strip(Call->getArg(0))));
    hand(Call->getArg(1));
    markAll(defined(Call->getArg(1)));
  } else if (const auto *Temporary = dyn_cast<MaterializeTemporaryExpr>(E)) {
    value(Temporary->getSubExpr());
  } else {
    return false;
  }
  return true;
}

bool Related::effectsCxx(const Expr *E, bool &Any) {
  auto Whole = [&] {
    value(E);
    if (Effects.insert(E).second)
      Changed = true;
    Any = true;
  };
  auto RunsEffects = [&](const CXXConstructExpr *Made) {
    if (Made && startsThread(Made))
      return true;
    Function *F = Made ? P.function(Made->getConstructor()) : nullptr;
    return Made && (F ? mayHaveEffects(*F) : readsThrough(Made->getConstructor()));
  };
  Any = false;
  if (const Expr *Inner = behind(E)) {
    Any = effects(Inner);
  } else if (isa<LambdaExpr>(E)) {
    return true;
  } else if (const auto *Throw = dyn_cast<CXXThrowExpr>(E)) {
    // If nothing handles exceptions, a throw is the end of a program that has failed. Otherwise it is an effect of a
    // function that only throws.
    if ((paid(E) || (throws(Throw) && decided(E))) && Effects.insert(E).second)
      Changed = true;
    Any = Effects.contains(E);
    if (Any) {
      if (throws(Throw) && Throw->getSubExpr())
        value(Throw->getSubExpr());
      effect({}, false);
    }
  } else if (const auto *Made = dyn_cast<CXXConstructExpr>(E)) {
    if (!RunsEffects(Made))
      return false;
    Whole();
  } else if (const auto *New = dyn_cast<CXXNewExpr>(E)) {
    if (!RunsEffects(New->getConstructExpr()))
      return false;
    Whole();
  } else if (const auto *Delete = dyn_cast<CXXDeleteExpr>(E)) {
    const Expr *Pointer = Delete->getArgument();
    if (runsCode(Pointer->getType()->getPointeeType()) ||
        !relatedAny(defined(Pointer->IgnoreParenCasts())))
      return false;
    Whole();
  } else if (const auto *Call = dyn_cast<CallExpr>(E); Call && assignsPlainly(Call)) {
    Any = assignment(E, Call->getArg(0), nullptr, false);
    if (Any) {
      hand(Call->getArg(1));
      markAll(defined(Call->getArg(1)));
    } else {
      Any = effects(Call->getArg(1));
    }
  } else {
    return false;
  }
  if (Any)
    keep(E);
  return true;
}

// Exceptions may be handled in any reachable function except main. For main's handlers tryBlock() decides, once
// something is kept there.
void Related::findCatching() {
  Catches = llvm::any_of(P.Functions, [](auto &F) {
    bool Tries = llvm::any_of(F->Parents, [](auto &Each) { return isa<CXXTryStmt>(Each.first); });
    return F->Reachable && F->Name != "main" && (Tries || isa<CXXTryStmt>(F->Decl->getBody()));
  });
}

// If nothing handles exceptions, only the path without one is kept.
bool Related::tryBlock(const CXXTryStmt *Try) {
  bool Any = statement(Try->getTryBlock()), Handled = false;
  for (unsigned I = 0; I < Try->getNumHandlers(); ++I)
    Handled |= statement(Try->getHandler(I)->getHandlerBlock());
  if (!Catches && (Handled || (Any && keptAfter(Try))))
    Catches = Changed = true;
  for (unsigned I = 0; Catches && (Any || Handled) && I < Try->getNumHandlers(); ++I)
    keep(Try->getHandler(I));
  return Any || Handled;
}

// A variable of a class: if it is needed, so are its constructor and destructor.
void Related::object(const VarDecl *Variable) {
  const Expr *Init = Variable->getInit();
  const auto *Made = Init ? dyn_cast<CXXConstructExpr>(Init->IgnoreImplicit()) : nullptr;
  // The object that holds a thread's result is destroyed when the thread ends.
  bool Holds = Made || (Init && startsThread(Init->IgnoreUnlessSpelledInSource()));
  if (Holds && runsCode(Variable->getType()) && (defines(Variable) || effects(Init)))
    mark(P.variable(Variable));
}

// Parts of auto [a, b] that functions return: the declaration calls these functions, unchanged.
void Related::parts(const VarDecl *Variable) {
  for (const VarDecl *Part : holding(Variable)) {
    const auto *Call = dyn_cast<CallExpr>(Part->getInit()->IgnoreUnlessSpelledInSource());
    Function *F = Call ? P.function(directCallee(Call)) : nullptr;
    if (F && mayHaveEffects(*F)) {
      refuse(*F, "it gives a part of an object that is declared as auto [a, b]");
      mark(P.variable(Variable));
      effect({}, false);
    }
    if (!defines(Variable))
      continue;
    bool Was = AsItIs;
    AsItIs = true;
    value(Part->getInit());
    AsItIs = Was;
  }
}

// The initialisers of a constructor.
bool Related::initialisers(const Function &F) {
  const auto *Constructor = dyn_cast<CXXConstructorDecl>(F.Decl);
  bool Any = false;
  if (Constructor)
    for (const CXXCtorInitializer *Part : Constructor->inits()) {
      const FieldDecl *Field = Part->getAnyMember();
      NodeSet Defines = Field ? P.fields(Field->getType()) : NodeSet();
      if (Field)
        Defines |= P.pieces(P.field(Field));
      if (relatedAny(Defines)) {
        value(Part->getInit());
        effect({}, false);
        Any = true;
      } else {
        Any |= effects(Part->getInit());
      }
    }
  return Any;
}

// for (T x : range): if something in the loop is kept, all parts of the loop are needed.
bool Related::rangeFor(const CXXForRangeStmt *For) {
  bool Any = statement(For->getBody());
  Any |= For->getInc() && effects(For->getInc());
  if (!Any)
    return statement(For->getRangeStmt());
  if (For->getInit())
    refuse(*Current, "a loop over a range has an initialiser");
  value(For->getCond());
  value(For->getInc());
  for (const DeclStmt *Declared : {For->getRangeStmt(), For->getBeginStmt(), For->getEndStmt()})
    for (const Decl *D : Declared->decls()) {
      mark(P.variable(cast<VarDecl>(D)));
      declaration(cast<VarDecl>(D));
    }
  declaration(For->getLoopVariable());
  keep(For);
  return true;
}

} // namespace foreread::slicer
