#include "Program.h"

namespace foreread::slicer {

using namespace clang;

namespace {

// Collects a body's calls, and who contains whom.
void indexBody(Function &F, const Stmt *S) {
  if (const auto *Call = dyn_cast<CallExpr>(S))
    F.Calls.push_back(Call);
  for (const Stmt *Child : S->children())
    if (Child) {
      F.Parents[Child] = S;
      indexBody(F, Child);
    }
}

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

void Program::index() {
  for (auto &U : Units) {
    if (!U->AST || !U->WholeBecause.empty())
      continue;
    for (const Decl *D : U->context().getTranslationUnitDecl()->decls()) {
      const auto *Declared = dyn_cast<FunctionDecl>(D);
      if (!Declared || !Declared->isThisDeclarationADefinition() || !Declared->getBody())
        continue;
      // What the C library's headers define inline is the C library's.
      if (U->sources().isInSystemHeader(Declared->getLocation()))
        continue;
      auto F = std::make_unique<Function>();
      F->Index = Functions.size();
      F->Decl = Declared;
      F->Home = U.get();
      F->Name = Declared->getNameAsString();
      F->InMainFile =
          U->sources().isInMainFile(U->sources().getExpansionLoc(Declared->getBeginLoc())) &&
          U->sources().isInMainFile(U->sources().getExpansionLoc(Declared->getEndLoc()));
      indexBody(*F, Declared->getBody());
      Internal[Declared->getCanonicalDecl()] = F.get();
      F->Private = !Declared->isExternallyVisible() || Declared->isInlined();
      if (!F->Private)
        External[F->Name] = F.get();
      Functions.push_back(std::move(F));
    }
  }
  for (auto &Caller : Functions)
    for (const CallExpr *Call : Caller->Calls)
      if (Function *F = function(directCallee(Call));
          F && !F->Decl->isVariadic() && Call->getNumArgs() != F->Decl->getNumParams())
        F->LooseCalls = true;
}

Function *Program::function(const FunctionDecl *Decl) const {
  if (!Decl)
    return nullptr;
  if (Function *F = Internal.lookup(Decl->getCanonicalDecl()))
    return F;
  return Decl->isExternallyVisible() && Decl->getIdentifier() ? External.lookup(Decl->getName())
                                                              : nullptr;
}

Function *Program::functionNamed(llvm::StringRef Name) const { return External.lookup(Name); }

const CallSpec *Program::spec(const CallExpr *Call) const {
  const FunctionDecl *Callee = directCallee(Call);
  if (!Callee || !Callee->getIdentifier() || function(Callee))
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
  NodeId Id = Decl->hasExternalFormalLinkage() ? named("v " + New.Name, New) : add(New);
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
  if (Record->getIdentifier())
    return Record->getKindName().str() + " " + Record->getNameAsString();
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
  // The members of a union are the same memory; those of a structure without a name belong to the
  // structure around it, but are told apart by where they stand.
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
  auto Known = RecordFields.find(Decl);
  if (Known != RecordFields.end())
    return Known->second;
  NodeSet All;
  for (const FieldDecl *Part : Decl->fields()) {
    All.set(field(Part));
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
