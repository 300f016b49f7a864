// Functions of the program whose address the C++ library receives: the target of a std::function, the argument of
// for_each(). The library calls them through a pointer, which may point to any function of its type. Where the program
// passes such a function, by name or by a pointer, the prefetch thread passes the prefetch version.
#include "Given.h"

#include "Cxx.h"
#include "Walk.h"

namespace foreread::slicer {

using namespace clang;

namespace {

std::string shapeOf(const FunctionDecl *F) {
  const auto *Method = dyn_cast<CXXMethodDecl>(F);
  QualType Type = F->getType();
  if (Method && Method->isInstance())
    Type = F->getASTContext().getMemberPointerType(Type, Method->getParent()->getTypeForDecl());
  return slicer::shapeOf(Type, F->getASTContext());
}

// The function name that an argument consists of, or null.
const DeclRefExpr *nameIn(const Expr *Argument) {
  const Expr *E = Argument->IgnoreUnlessSpelledInSource()->IgnoreParenCasts();
  if (const auto *Address = dyn_cast<UnaryOperator>(E); Address && Address->getOpcode() == UO_AddrOf)
    E = Address->getSubExpr()->IgnoreParens();
  const auto *Ref = dyn_cast<DeclRefExpr>(E);
  return Ref && isa<FunctionDecl>(Ref->getDecl()) ? Ref : nullptr;
}

// The functions of the program that are named other than as callees, and the arguments passed to functions.
struct Taking : Walk {
  Taking() { ImplicitCode = true; }

  llvm::DenseSet<const Expr *> Callees;
  std::vector<const FunctionDecl *> Named;
  struct Place {
    const FunctionDecl *Callee;
    const Expr *Argument;
    bool Written; // false inside default arguments and initializers, which are not printed
  };
  std::vector<Place> Given;
  bool Written = true;

  bool visitStmt(const Stmt *S) override {
    if (const auto *Call = dyn_cast<CallExpr>(S)) {
      Callees.insert(Call->getCallee()->IgnoreParenImpCasts());
      give(Call->getDirectCallee(), Call);
    } else if (const auto *Made = dyn_cast<CXXConstructExpr>(S)) {
      give(Made->getConstructor(), Made);
    } else if (const auto *Ref = dyn_cast<DeclRefExpr>(S)) {
      if (const auto *F = dyn_cast<FunctionDecl>(Ref->getDecl()); F && !Callees.contains(Ref))
        Named.push_back(F);
    }
    return true;
  }
  bool entersStmt(const Stmt *S) override {
    const Expr *Default = nullptr;
    if (const auto *Member = dyn_cast<CXXDefaultInitExpr>(S))
      Default = Member->getExpr();
    else if (const auto *Argument = dyn_cast<CXXDefaultArgExpr>(S))
      Default = Argument->getExpr();
    if (!Default)
      return true;
    bool Was = Written;
    Written = false;
    walk(Default);
    Written = Was;
    return false;
  }
  // The function that a thread runs is not passed to its callee: Threads.cpp follows it.
  template <typename Caller> void give(const FunctionDecl *Callee, const Caller *E) {
    const Expr *Second = nullptr, *Body = givenToThread(E, Second);
    for (const Expr *Argument : E->arguments())
      if (Callee && Argument != Body)
        Given.push_back({Callee->getCanonicalDecl(), Argument, Written});
  }
};

// True if a library function, with all functions that it calls by name or takes the address of, calls through a pointer
// of that type. False if a function of the program on the way might receive the pointer itself.
bool callsThrough(const Program &P, const Library &Of, const FunctionDecl *From, const std::string &Shape) {
  llvm::DenseSet<const FunctionDecl *> Seen;
  std::vector<const FunctionDecl *> Work{From};
  while (!Work.empty()) {
    const FunctionDecl *At = Work.back();
    Work.pop_back();
    if (!Seen.insert(At).second)
      continue;
    if (const Function *F = P.function(At)) {
      // This function may receive the pointer itself.
      if (llvm::any_of(F->Decl->parameters(), [&](const ParmVarDecl *Each) {
            return slicer::shapeOf(Each->getType(), F->Home->context()) == Shape;
          }))
        return false;
      continue;
    }
    auto Calls = P.LibraryCalls.find(At), Taken = Of.Taken.find(At);
    if (Calls != P.LibraryCalls.end())
      llvm::append_range(Work, Calls->second);
    if (Taken != Of.Taken.end())
      llvm::append_range(Work, Taken->second);
  }
  auto Calling = Of.Pointers.find(Shape);
  return Calling != Of.Pointers.end() &&
         llvm::any_of(Calling->second, [&](const FunctionDecl *Each) { return Seen.contains(Each); });
}

} // namespace

void findGiven(Program &P, const Library &Of) {
  if (Of.Pointers.empty())
    return;
  llvm::StringMap<std::vector<Function *>> Named;
  // Functions passed by a pointer, by type: the functions that pass them and in which the prefetch version can replace
  // them, or null where it cannot.
  llvm::StringMap<std::vector<const Function *>> ByPointer;
  llvm::DenseSet<Function *> Given;
  auto See = [&](Taking &In, Function *Giver) {
    for (const FunctionDecl *Each : In.Named)
      if (Function *F = P.function(Each))
        Named[shapeOf(Each)].push_back(F);
    for (auto [Callee, Argument, Written] : In.Given) {
      if (!P.LibraryCalls.count(Callee) || P.function(Callee))
        continue;
      std::string Shape = slicer::shapeOf(Argument->getType(), Callee->getASTContext());
      const DeclRefExpr *Name = nameIn(Argument);
      if (Shape.empty() || !Of.Pointers.count(Shape))
        continue;
      Function *F = Name ? P.function(cast<FunctionDecl>(Name->getDecl())) : nullptr;
      bool Version = Giver && Giver->NotCarried.empty() && Written && callsThrough(P, Of, Callee, Shape) &&
                     slicer::shapeOf(Callee->getReturnType(), Callee->getASTContext()).empty();
      if (Version)
        Giver->Gives = true;
      if (!Name) {
        ByPointer[Shape].push_back(Version ? Giver : nullptr);
        if (Version && Argument->getType().getNonReferenceType()->isPointerType())
          P.GivenPointers.insert(Argument);
      } else if (F) {
        Given.insert(F);
        if (!Version || F->method() || (F->Private && F->Home != Giver->Home)) {
          F->GivenAsIs = true;
          continue;
        }
        F->Givers.push_back(Giver);
        P.GivenNames[Name] = F;
      }
    }
  };
  for (auto &F : P.Functions) {
    Taking In;
    if (const auto *Made = dyn_cast<CXXConstructorDecl>(F->Decl))
      for (const CXXCtorInitializer *Part : Made->inits())
        In.walk(Part->getInit());
    // The body of a lambda expression is visited as part of the function around it, and for the lambda expression
    // itself.
    In.walk(F->Decl->getBody());
    See(In, F.get());
  }
  for (auto &U : P.Units)
    if (U->AST && U->WholeBecause.empty() && U->cxx())
      for (const VarDecl *Variable : P.globals(*U))
        if (Variable->getInit()) {
          Taking In;
          In.walk(Variable->getInit());
          See(In, nullptr);
        }
  // A pointer may point to any function of its type. The prefetch thread compares it with the functions that can be
  // named there.
  for (auto &Entry : ByPointer)
    for (Function *F : Named.lookup(Entry.getKey()))
      for (const Function *Giver : Entry.second) {
        Given.insert(F);
        F->GivenByPointer = true;
        if (!Giver || Giver->Home != F->Home || F->method() || F->Decl->isTemplateInstantiation() || isPrivate(F->Decl))
          F->GivenAsIs = true;
        else
          F->Givers.push_back(Giver);
      }
  for (auto &[Callee, Calls] : P.LibraryCalls)
    for (const FunctionDecl *Each : Calls)
      if (Function *F = P.function(Each); F && Given.contains(F))
        F->GivenAsIs = true;
  for (auto &F : P.Functions)
    if (Given.contains(F.get()))
      for (const FunctionDecl *Calling : Of.Pointers.lookup(shapeOf(F->Decl)))
        P.LibraryCalls[Calling].push_back(F->Decl->getCanonicalDecl());
}

// Nobody sees calls that a library object makes in its destructor.
void findEnding(Program &P) {
  std::vector<const FunctionDecl *> Ending;
  for (auto &[Callee, Calls] : P.LibraryCalls)
    if (isa<CXXDestructorDecl>(Callee))
      Ending.push_back(Callee);
  for (const FunctionDecl *Each : Ending)
    for (Function *F : P.runThrough(Each))
      F->RunByLibrary |= F->GivenAsIs || !F->Givers.empty();
}

} // namespace foreread::slicer
