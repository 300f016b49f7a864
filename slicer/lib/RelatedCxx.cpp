// What C++ adds to expressions and statements: objects that are made and ended, references, calls
// of member functions, exceptions.
#include "Cxx.h"
#include "Related.h"

namespace foreread::slicer {

using namespace clang;

// An operand of what may do anything: it, and all it leads to.
void Related::operand(const Expr *E) {
  if (!E->isGLValue() && !E->getType()->isRecordType()) {
    value(E);
    return markReachable(Pointers.pointees(E));
  }
  E->isGLValue() ? address(E) : value(E);
  markReachable(Pointers.locations(E));
}

// What is handed over to a parameter.
void Related::hand(const Expr *E) { E->isGLValue() ? address(E) : value(E); }

// Whether the library is given the prefetch version of a function wherever it is given one, and calls it no other way.
bool Related::givenVersion(const Function &F) const {
  return F.Through && !F.RunByLibrary && !F.GivenAsIs && !F.Givers.empty() && F.WholeBecause.empty() &&
         llvm::all_of(F.Givers, [&](const Function *Each) {
           return Each->WholeBecause.empty() && !Wholes.test(Each->Index);
         });
}

// A function that is called where no call is written.
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

// What a new thread is given: the function that it runs is given the rest.
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
    // What is kept of its body tells what is needed of what it captures.
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
    // Where nobody goes on after it: the end of a program that has failed.  Where somebody does, a function that only throws
    // has that for an effect.
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

// Whether a handler goes on with the program. Of main's it is known when something is kept there.
void Related::findCatching() {
  Catches = llvm::any_of(P.Functions, [](auto &F) {
    bool Tries = llvm::any_of(F->Parents, [](auto &Each) { return isa<CXXTryStmt>(Each.first); });
    return F->Reachable && F->Name != "main" && (Tries || isa<CXXTryStmt>(F->Decl->getBody()));
  });
}

// Where nobody goes on after an exception, the way on which nothing is thrown.
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

// A variable of a class: where it is needed, so is what makes it and what ends it.
void Related::object(const VarDecl *Variable) {
  const Expr *Init = Variable->getInit();
  const auto *Made = Init ? dyn_cast<CXXConstructExpr>(Init->IgnoreImplicit()) : nullptr;
  // What a thread's answer is asked of ends with the thread.
  bool Holds = Made || (Init && startsThread(Init->IgnoreUnlessSpelledInSource()));
  if (Holds && runsCode(Variable->getType()) && (defines(Variable) || effects(Init)))
    mark(P.variable(Variable));
}

// What functions give for the parts of auto [a, b]: they are called, as they are, where it is declared.
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

// What a constructor does before its body.
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

// for (T x : range): all that makes up the loop is needed for what is kept in it.
bool Related::rangeFor(const CXXForRangeStmt *For) {
  bool Any = statement(For->getBody());
  Any |= For->getInc() && effects(For->getInc());
  if (!Any)
    return statement(For->getRangeStmt());
  if (For->getInit())
    refuse(*Current, "a loop over a range declares something more");
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
