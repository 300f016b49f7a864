#include "Program.h"

#include <functional>

#include "clang/AST/Mangle.h"
#include "llvm/Support/Path.h"

#include "Cxx.h"
#include "Walk.h"

namespace foreread::slicer {

using namespace clang;

namespace {

// Collects a body's calls and the parent of each statement.
void indexBody(Function &F, const Stmt *S) {
  if (const auto *Call = dyn_cast<CallExpr>(S))
    F.Calls.push_back(Call);
  if (const auto *Lambda = dyn_cast<LambdaExpr>(S)) {
    // The body of a lambda expression is a separate function.
    F.Makes.push_back(Lambda);
    return;
  }
  if (const auto *Made = dyn_cast<CXXConstructExpr>(S))
    F.Makes.push_back(Made);
  // auto [a, b] calls the functions that return its parts, which the declaration does not show.
  if (const auto *Declared = dyn_cast<DeclStmt>(S))
    for (const Decl *D : Declared->decls())
      if (const auto *Variable = dyn_cast<VarDecl>(D))
        for (const VarDecl *Part : holding(Variable)) {
          F.Parents[Part->getInit()] = S;
          indexBody(F, Part->getInit());
        }
  for (const Stmt *Child : S->children())
    if (Child) {
      F.Parents[Child] = S;
      indexBody(F, Child);
    }
}

// Collects the calls that are written once for all arguments of a pack, in an instantiation and in lambda expressions
// inside it.
void findExpanded(Function &F) {
  const FunctionDecl *Around = F.Decl, *Pattern = nullptr;
  for (; Around && !Pattern; Around = dyn_cast_or_null<FunctionDecl>(Around->getParentFunctionOrMethod()))
    Pattern = Around->getTemplateInstantiationPattern();
  if (!Pattern || !Pattern->getBody())
    return;
  std::vector<SourceRange> Expansions;
  allOf(Pattern->getBody(), [&](const Stmt *S) {
    if (isa<PackExpansionExpr, CXXFoldExpr>(S))
      Expansions.push_back(S->getSourceRange());
    return true;
  });
  const SourceManager &Sources = F.Home->sources();
  SourceRange Body = F.Decl->getBody()->getSourceRange();
  for (SourceRange Each : Expansions)
    for (const CallExpr *Call : F.Calls)
      if (Sources.isPointWithin(Each.getBegin(), Body.getBegin(), Body.getEnd()) &&
          Sources.isPointWithin(Call->getBeginLoc(), Each.getBegin(), Each.getEnd()))
        F.Expanded.insert(Call);
}

// The functions of a unit that have a body: in namespaces, classes, instantiations and lambda expressions. Functions
// that system headers define belong to the system.
class Definitions : public Walk {
public:
  Definitions(const SourceManager &Sources, std::function<void(const FunctionDecl *)> Found)
      : Sources(Sources), Found(std::move(Found)) {
    Instantiations = true;
  }

  bool entersDecl(const Decl *D) override {
    return isa<TranslationUnitDecl>(D) || !Sources.isInSystemHeader(D->getLocation());
  }
  bool visitDecl(const Decl *D) override {
    if (const auto *F = dyn_cast<FunctionDecl>(D))
      define(F);
    // A default constructor that the compiler adds.
    const auto *Class = dyn_cast<CXXRecordDecl>(D);
    if (Class && Class->isThisDeclarationADefinition())
      for (const CXXConstructorDecl *Each : Class->ctors())
        if (Each->isImplicit() && Each->isDefaultConstructor())
          define(Each);
    return true;
  }
  bool visitStmt(const Stmt *S) override {
    if (const auto *Lambda = dyn_cast<LambdaExpr>(S))
      for (const FunctionDecl *Each : operatorsOf(Lambda->getLambdaClass()))
        define(Each);
    return true;
  }

private:
  void define(const FunctionDecl *F) {
    if (F->isThisDeclarationADefinition() && F->getBody() && !F->isDependentContext())
      Found(F);
  }

  const SourceManager &Sources;
  std::function<void(const FunctionDecl *)> Found;
};

} // namespace

const Expr *strip(const Expr *E) { return E ? E->IgnoreParenImpCasts() : nullptr; }

const FunctionDecl *directCallee(const CallExpr *Call) { return Call->getDirectCallee(); }

bool hasSideEffects(const Expr *E) {
  if (isa<CallExpr, StmtExpr, VAArgExpr, AtomicExpr>(E))
    return true;
  if (const auto *Binary = dyn_cast<BinaryOperator>(E); Binary && Binary->isAssignmentOp())
    return true;
  if (const auto *Unary = dyn_cast<UnaryOperator>(E); Unary && Unary->isIncrementDecrementOp())
    return true;
  if (isa<UnaryExprOrTypeTraitExpr>(E))
    return false;
  for (const Stmt *Child : E->children())
    if (const auto *Part = dyn_cast_or_null<Expr>(Child); Part && hasSideEffects(Part))
      return true;
  return false;
}

void Program::add(Unit &U, const FunctionDecl *Declared) {
  auto F = std::make_unique<Function>();
  F->Decl = Declared;
  F->Home = &U;
  F->Name = qualified(Declared);
  F->Symbol = symbol(Declared);
  FileID File = U.sources().getFileID(U.sources().getExpansionLoc(Declared->getBeginLoc()));
  // Of several copies of one function, the linker may take any, also that of an unknown unit.
  bool Each = Declared->isInlined() || Declared->isTemplateInstantiation();
  bool Copied = Each && File != U.sources().getMainFileID() && Declared->isExternallyVisible();
  F->Shared = Copied && U.cxx();
  F->AtHand = U.Texts->atHand(File) && (!Copied || (F->Shared && AllKnown)) &&
              File == U.sources().getFileID(U.sources().getExpansionLoc(Declared->getEndLoc()));
  if (Function *Known = F->Shared ? External.lookup(F->Symbol) : nullptr; Known && Known->Shared) {
    Known->AtHand &= F->AtHand;
    Internal[Declared->getCanonicalDecl()] = Known;
    return;
  }
  F->Index = Functions.size();
  if (U.cxx())
    F->NotCarried = notCarried(Declared);
  if (const auto *Made = dyn_cast<CXXConstructorDecl>(Declared))
    for (const CXXCtorInitializer *Part : Made->inits())
      indexBody(*F, Part->getInit());
  indexBody(*F, Declared->getBody());
  findExpanded(*F);
  Internal[Declared->getCanonicalDecl()] = F.get();
  F->Private = !Declared->isExternallyVisible() || (Each && !F->Shared);
  if (!F->Private)
    External[F->Symbol] = F.get();
  std::vector<const CXXMethodDecl *> Overridden;
  if (const auto *Method = dyn_cast<CXXMethodDecl>(Declared); Method && Method->isVirtual())
    Overridden.push_back(Method);
  while (!Overridden.empty()) {
    const CXXMethodDecl *Method = Overridden.back();
    Overridden.pop_back();
    F->RunByLibrary |= U.sources().isInSystemHeader(Method->getLocation());
    Overriders[symbol(Method)].push_back(F.get());
    Overridden.insert(Overridden.end(), Method->begin_overridden_methods(),
                      Method->end_overridden_methods());
  }
  Functions.push_back(std::move(F));
}

// An alias of a function of the same unit.
void Program::alias(Unit &U, const FunctionDecl *Other) {
  llvm::StringRef Name = Other->getAttr<AliasAttr>()->getAliasee();
  for (auto &F : Functions)
    if (F->Home == &U && F->Symbol == Name) {
      Internal[Other->getCanonicalDecl()] = F.get();
      if (Other->isExternallyVisible())
        External[symbol(Other)] = F.get();
    }
}

// A name whose function is chosen when the program is loaded (ifunc): any that its resolver names. Calls by that name
// are not attributed to one of them; each of these functions counts itself.
void Program::leaveChosen(Unit &U, const FunctionDecl *Other) {
  auto Leave = [&](const Stmt *S) {
    const auto *Ref = dyn_cast<DeclRefExpr>(S);
    if (Function *Named = Ref ? function(dyn_cast<FunctionDecl>(Ref->getDecl())) : nullptr) {
      Named->NotCarried = "it may be called by a name that is resolved when the program is loaded";
      LibraryCalls[Other->getCanonicalDecl()].push_back(Named->Decl);
    }
    return true;
  };
  llvm::StringRef Resolver = Other->getAttr<IFuncAttr>()->getResolver();
  for (auto &F : Functions)
    if (F->Home == &U && F->Symbol == Resolver)
      allOf(F->Decl->getBody(), Leave);
}

// Instantiations of one template share their text and parts of their trees.
void Program::findTemplates() {
  for (auto &F : Functions)
    if (std::string Where = pattern(*F); !Where.empty())
      FromTemplate[Where].push_back(F.get());
}

std::vector<Function *> Program::sameText(const Function &F) const { return FromTemplate.lookup(pattern(F)); }

// Location of the template that a function is an instantiation of; empty if there is none.
std::string Program::pattern(const Function &F) {
  const FunctionDecl *Pattern = F.Decl->getTemplateInstantiationPattern();
  if (!Pattern)
    return "";
  auto [File, Offset] = F.Home->sources().getDecomposedExpansionLoc(Pattern->getLocation());
  return F.Home->Texts->path(File) + ":" + std::to_string(Offset);
}

void Program::index() {
  for (auto &U : Units) {
    if (U->AST)
      U->Texts = std::make_unique<Inclusions>(U->sources(), U->context().getLangOpts());
    llvm::StringRef Extension = llvm::sys::path::extension(U->File);
    AllKnown &= U->AST || Extension == ".s" || Extension == ".S";
  }
  for (auto &U : Units)
    if (U->AST && U->WholeBecause.empty())
      Definitions(U->sources(), [&](const FunctionDecl *F) {
        if (!Internal.count(F->getCanonicalDecl()))
          add(*U, F);
      }).walk(U->context().getTranslationUnitDecl());
  findTemplates();
  for (auto &U : Units)
    if (U->AST && U->WholeBecause.empty())
      for (const Decl *D : U->context().getTranslationUnitDecl()->decls()) {
        const auto *Other = dyn_cast<FunctionDecl>(D);
        if (Other && Other->hasAttr<AliasAttr>())
          alias(*U, Other);
        else if (Other && Other->hasAttr<IFuncAttr>())
          leaveChosen(*U, Other);
      }
  for (auto &Caller : Functions)
    for (const CallExpr *Call : Caller->Calls)
      if (Function *F = function(directCallee(Call)); F && !F->Decl->isVariadic() &&
                                                      !F->Home->cxx() &&
                                                      Call->getNumArgs() != F->Decl->getNumParams())
        F->LooseCalls = true;
}

std::string Program::symbol(const NamedDecl *Named) const {
  ASTContext &Context = Named->getASTContext();
  if (!Context.getLangOpts().CPlusPlus || !Named->isExternallyVisible())
    return Named->getNameAsString();
  return ASTNameGenerator(Context).getName(Named);
}

std::string Program::qualified(const NamedDecl *Named) {
  if (Named->getParentFunctionOrMethod())
    return Named->getNameAsString();
  PrintingPolicy Policy(Named->getASTContext().getLangOpts());
  Policy.SuppressUnwrittenScope = true;
  std::string Name;
  llvm::raw_string_ostream Out(Name);
  Named->printQualifiedName(Out, Policy);
  return Name;
}

namespace {

void collect(const DeclContext *In, const SourceManager &Sources,
             std::vector<const VarDecl *> &Into) {
  for (const Decl *D : In->decls()) {
    if (const auto *Variable = dyn_cast<VarDecl>(D); Variable && !Variable->isTemplated())
      Into.push_back(Variable);
    bool Own = In->getParent() == nullptr || !Sources.isInSystemHeader(D->getLocation());
    if (isa<LinkageSpecDecl, NamespaceDecl>(D) || (isa<CXXRecordDecl>(D) && Own))
      if (!D->isTemplated())
        collect(cast<DeclContext>(D), Sources, Into);
  }
}

} // namespace

std::vector<const VarDecl *> Program::globals(const Unit &U) const {
  std::vector<const VarDecl *> All;
  collect(U.context().getTranslationUnitDecl(), U.sources(), All);
  return All;
}

std::vector<Function *> Program::overriders(const CXXMethodDecl *Method) const {
  return Overriders.lookup(symbol(Method));
}

Function *Program::function(const FunctionDecl *Decl) const {
  if (!Decl)
    return nullptr;
  if (Function *F = Internal.lookup(Decl->getCanonicalDecl()))
    return F;
  return Decl->isExternallyVisible() && !Decl->isDependentContext() ? External.lookup(symbol(Decl))
                                                                    : nullptr;
}

Function *Program::functionNamed(llvm::StringRef Name) const { return External.lookup(Name); }

const std::vector<Function *> &Program::runThrough(const FunctionDecl *Library) {
  static const std::vector<Function *> None;
  if (!Library || !LibraryCalls.count(Library->getCanonicalDecl()))
    return None;
  auto [Known, Fresh] = ThroughKnown.try_emplace(Library->getCanonicalDecl());
  if (!Fresh)
    return Known->second;
  std::vector<Function *> Result;
  llvm::DenseSet<const FunctionDecl *> Seen;
  std::vector<const FunctionDecl *> Work{Library->getCanonicalDecl()};
  while (!Work.empty()) {
    const FunctionDecl *At = Work.back();
    Work.pop_back();
    if (!Seen.insert(At).second)
      continue;
    Function *F = function(At);
    if (F && !llvm::is_contained(Result, F))
      Result.push_back(F);
    auto Calls = LibraryCalls.find(At);
    if (!F && Calls != LibraryCalls.end())
      llvm::append_range(Work, Calls->second);
  }
  return ThroughKnown[Library->getCanonicalDecl()] = Result;
}

const CallSpec *Program::spec(const CallExpr *Call) const {
  const FunctionDecl *Callee = directCallee(Call);
  if (!Callee || !Callee->getIdentifier() || function(Callee))
    return nullptr;
  // A function in a namespace or class is not of the C library, whatever its name.
  if (!Callee->getDeclContext()->getRedeclContext()->isTranslationUnit())
    return nullptr;
  return findCall(Callee->getName());
}

NodeId Program::add(Node New) {
  Nodes.push_back(std::move(New));
  return Nodes.size() - 1;
}

NodeId Program::named(std::string Key, Node New) {
  auto [At, Fresh] = ByName.try_emplace(Key, 0);
  if (Fresh)
    At->second = add(std::move(New));
  return At->second;
}

NodeId Program::variable(const VarDecl *Decl) {
  Decl = Decl->getCanonicalDecl();
  auto Known = ByDecl.find(Decl);
  if (Known != ByDecl.end())
    return Known->second;
  Node New{NodeKind::Variable, Decl->getNameAsString(), Decl->getType(), Decl};
  New.Local = Decl->hasLocalStorage();
  NodeId Id = Decl->isExternallyVisible() ? named("v " + symbol(Decl), New) : add(New);
  return ByDecl[Decl] = Id;
}

NodeId Program::reference(const DeclRefExpr *Ref) {
  auto Web = Webs.find(Ref);
  return Web == Webs.end() ? variable(cast<VarDecl>(Ref->getDecl())) : Web->second;
}

NodeId Program::readBy(const Expr *Target) const {
  const auto *Ref = dyn_cast<DeclRefExpr>(Target->IgnoreParens());
  return Ref ? WebsRead.lookup(Ref) : 0;
}

void Program::cut(NodeId Array, const std::vector<std::pair<uint64_t, NodeId>> &Into) {
  NodeSet All;
  for (auto &[Start, Piece] : Into)
    All.set(Piece);
  for (auto &[Start, Piece] : Into)
    Pieces[Piece] = All;
  Arrays[Array] = Into;
  // The fields of records were computed without the pieces.
  RecordFields.clear();
}

NodeSet Program::pieces(NodeId Id) const {
  auto At = Pieces.find(Id);
  if (At != Pieces.end())
    return At->second;
  NodeSet Alone;
  Alone.set(Id);
  return Alone;
}

NodeId Program::piece(NodeId Array, uint64_t Index) const {
  auto At = Arrays.find(Array);
  if (At == Arrays.end())
    return Array;
  NodeId Result = Array;
  for (auto &[Start, Piece] : At->second)
    if (Start <= Index)
      Result = Piece;
  return Result;
}

std::string Program::recordName(const RecordDecl *Record) {
  Record = Record->getDefinition() ? Record->getDefinition() : Record;
  if (isa<ClassTemplateSpecializationDecl>(Record))
    return QualType(Record->getTypeForDecl(), 0).getCanonicalType().getAsString();
  if (Record->getIdentifier())
    return (Record->isUnion() ? "union " : "struct ") + Record->getQualifiedNameAsString();
  if (const TypedefNameDecl *Alias = Record->getTypedefNameForAnonDecl())
    return "typedef " + Alias->getNameAsString();
  return "at " + Record->getLocation().printToString(Record->getASTContext().getSourceManager());
}

NodeId Program::field(const FieldDecl *Decl) {
  Decl = Decl->getCanonicalDecl();
  auto Known = ByDecl.find(Decl);
  if (Known != ByDecl.end())
    return Known->second;
  const RecordDecl *Record = Decl->getParent();
  // The members of a union are one memory. Members without a name, such as anonymous structures, are distinguished by
  // their index.
  std::string Name = Record->isUnion() ? "(union)" : Decl->getNameAsString();
  if (!Decl->getIdentifier() && !Record->isUnion())
    Name = "#" + std::to_string(Decl->getFieldIndex());
  std::string Of = recordName(Record);
  NodeId Id =
      named("f " + Of + "." + Name, Node{NodeKind::Field, Of + "." + Name, Decl->getType(), Decl});
  return ByDecl[Decl] = Id;
}

NodeId Program::result(const Function &F) {
  return named("r " + std::to_string(F.Index),
               Node{NodeKind::Return, F.Name + "()", F.Decl->getReturnType()});
}

NodeId Program::varargs(const Function &F) {
  return named("a " + std::to_string(F.Index), Node{NodeKind::Varargs, F.Name + "(...)", {}});
}

NodeId Program::functionObject(const Function &F) {
  Node New{NodeKind::Function, F.Name, {}};
  New.Owner = F.Index;
  return named("F " + std::to_string(F.Index), New);
}

NodeId Program::heap(const Expr *Site) {
  auto Known = ByDecl.find(Site);
  if (Known != ByDecl.end())
    return Known->second;
  Node New{NodeKind::Heap, "memory", {}};
  New.Site = Site;
  return ByDecl[Site] = add(New);
}

NodeId Program::file(const CallExpr *Site) {
  auto Known = ByDecl.find(Site);
  if (Known != ByDecl.end())
    return Known->second;
  Node New{NodeKind::File, "file", {}};
  New.Site = Site;
  return ByDecl[Site] = add(New);
}

NodeId Program::state(llvm::StringRef Name) {
  return named("s " + Name.str(), Node{NodeKind::State, Name.str(), {}});
}

NodeId Program::standardStream(llvm::StringRef Name) {
  return named("std " + Name.str(), Node{NodeKind::File, Name.str(), {}});
}

NodeId Program::text() { return named("t", Node{NodeKind::Text, "constant", {}}); }

NodeId Program::parameter(const Function &F, unsigned Index) {
  return variable(F.Decl->getParamDecl(Index));
}

NodeId Program::self(const Function &F) {
  // this in a lambda expression is that of the function around it.
  const auto *Method = dyn_cast<CXXMethodDecl>(F.Decl);
  if (Method && Method->getParent()->isLambda())
    if (const auto *Outer = dyn_cast_or_null<FunctionDecl>(Method->getParent()->getDeclContext()))
      if (const Function *Around = function(Outer))
        return self(*Around);
  return named("this " + std::to_string(F.Index), Node{NodeKind::Value, "this", {}});
}

NodeSet Program::fields(QualType Type) {
  if (Type.isNull())
    return {};
  Type = Type.getCanonicalType();
  while (const auto *Array = dyn_cast<clang::ArrayType>(Type.getTypePtr()))
    Type = Array->getElementType().getCanonicalType();
  const auto *Record = Type->getAs<RecordType>();
  if (!Record || !Record->getDecl()->getDefinition())
    return {};
  const RecordDecl *Decl = Record->getDecl()->getDefinition();
  if (isOpaque(Decl))
    return {};
  auto Known = RecordFields.find(Decl);
  if (Known != RecordFields.end())
    return Known->second;
  NodeSet All;
  if (const auto *Class = dyn_cast<CXXRecordDecl>(Decl))
    for (const CXXBaseSpecifier &Base : Class->bases())
      All |= fields(Base.getType());
  for (const FieldDecl *Part : Decl->fields()) {
    All |= pieces(field(Part));
    NodeSet Inner = fields(Part->getType());
    All |= Inner;
  }
  return RecordFields[Decl] = All;
}

std::string Program::place(const Unit &U, SourceLocation Where) {
  PresumedLoc At = U.sources().getPresumedLoc(U.sources().getExpansionLoc(Where));
  return At.isValid() ? std::string(At.getFilename()) + ":" + std::to_string(At.getLine()) : U.File;
}

} // namespace foreread::slicer
