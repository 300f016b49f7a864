#include "Elements.h"

#include <map>
#include <set>

#include "Ranges.h"

namespace foreread::slicer {

using namespace clang;

namespace {

// An array with more pieces than this is not split.
constexpr size_t Most = 64;

struct Access {
  const ArraySubscriptExpr *Element;
  std::optional<Range> Of; // none: any element
};

struct Array {
  uint64_t Size = 0; // elements of the first dimension; 0 if unknown
  std::vector<Access> Accesses;
};

class Collector {
public:
  Collector(Program &P, std::map<NodeId, Array> &Into) : P(P), Into(Into) {}

  void function(const Function &Each) {
    F = &Each;
    Known.emplace(Each);
    collect(F->Decl->getBody());
  }

private:
  void collect(const Stmt *S) {
    if (const auto *Element = dyn_cast<ArraySubscriptExpr>(S))
      enter(Element);
    for (const Stmt *Child : S->children())
      if (Child)
        collect(Child);
  }

  // In a[i][j], too, the index of the first dimension decides: i.
  void enter(const ArraySubscriptExpr *Element) {
    for (const ArraySubscriptExpr *At = Element;;) {
      const auto *Decay = dyn_cast<CastExpr>(At->getBase()->IgnoreParens());
      if (!Decay || Decay->getCastKind() != CK_ArrayToPointerDecay)
        return;
      const Expr *Of = Decay->getSubExpr()->IgnoreParens();
      if (const auto *Outer = dyn_cast<ArraySubscriptExpr>(Of)) {
        At = Outer;
        continue;
      }
      NodeId Id = node(Of);
      if (!Id)
        return;
      Array &Here = Into[Id];
      if (const auto *Type = F->Home->context().getAsConstantArrayType(Of->getType()))
        Here.Size = Type->getSize().getZExtValue();
      Here.Accesses.push_back({Element, Known->of(At->getIdx())});
      return;
    }
  }

  // Node of the array if it is a variable or a field, else 0. The members of a union share memory and are not split.
  NodeId node(const Expr *Of) {
    if (const auto *Ref = dyn_cast<DeclRefExpr>(Of))
      if (const auto *Variable = dyn_cast<VarDecl>(Ref->getDecl()))
        return P.variable(Variable);
    if (const auto *Member = dyn_cast<MemberExpr>(Of))
      if (const auto *Field = dyn_cast<FieldDecl>(Member->getMemberDecl());
          Field && !Field->getParent()->isUnion())
        return P.field(Field);
    return 0;
  }

  Program &P;
  std::map<NodeId, Array> &Into;
  const Function *F = nullptr;
  std::optional<Ranges> Known;
};

void split(Program &P, NodeId Id, const Array &Of) {
  int64_t Size = Of.Size;
  auto Known = [&](const Access &Each) {
    return Each.Of && Each.Of->First >= 0 && Each.Of->Last < Size;
  };
  std::set<int64_t> Starts{0};
  for (const Access &Each : Of.Accesses)
    if (Known(Each)) {
      Starts.insert(Each.Of->First);
      if (Each.Of->Last + 1 < Size)
        Starts.insert(Each.Of->Last + 1);
    }
  if (Starts.size() < 2 || Starts.size() > Most)
    return;
  // The first piece is the array's own node.
  std::vector<std::pair<uint64_t, NodeId>> Pieces;
  for (int64_t Start : Starts) {
    NodeId Piece = Start == 0 ? Id : P.add(Node(P.Nodes[Id]));
    Pieces.push_back({Start, Piece});
  }
  P.cut(Id, Pieces);
  for (const Access &Each : Of.Accesses) {
    NodeSet &Meant = P.Elements[Each.Element];
    for (auto &[Start, Piece] : Pieces)
      if (!Known(Each) || (static_cast<int64_t>(Start) >= Each.Of->First &&
                           static_cast<int64_t>(Start) <= Each.Of->Last))
        Meant.set(Piece);
  }
}

} // namespace

void splitArrays(Program &P) {
  std::map<NodeId, Array> Arrays;
  Collector Collect(P, Arrays);
  for (auto &F : P.Functions)
    Collect.function(*F);
  for (auto &[Id, Each] : Arrays)
    split(P, Id, Each);
}

} // namespace foreread::slicer
