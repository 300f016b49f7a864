// Aliased bytes. A node stands for a field of all objects of a type. Memory that is used as objects of two types
// therefore has two nodes for the same bytes: an object whose address is cast, two structures that begin alike, the
// structures of a union, bytes accessed by their offset. Such nodes overlap: a change of one may be a change of the
// other, and both may hold the same pointers.
//
// A pointer to an object is assumed to point to its beginning. A pointer to a field that is converted to one to the
// structure around it (container_of) leads to that structure's own nodes, and nothing of this is needed.
#include "Cxx.h"
#include "PointsTo.h"

#include "clang/AST/RecordLayout.h"

namespace foreread::slicer {

using namespace clang;

namespace {

struct Bytes {
  uint64_t Begin, End;
  NodeId Id;
};

// The structure, union or class of a type, or of an array's elements; null for others.
const RecordDecl *record(QualType Type) {
  if (Type.isNull())
    return nullptr;
  Type = Type.getCanonicalType();
  while (const auto *Array = dyn_cast<clang::ArrayType>(Type.getTypePtr()))
    Type = Array->getElementType().getCanonicalType();
  const auto *Record = Type->getAs<RecordType>();
  const RecordDecl *Decl = Record ? Record->getDecl()->getDefinition() : nullptr;
  bool Known = Decl && !Decl->isInvalidDecl() && !Decl->isDependentContext() && !isOpaque(Decl);
  return Known ? Decl : nullptr;
}

uint64_t offset(const FieldDecl *Field) {
  ASTContext &Context = Field->getASTContext();
  return Context.getFieldOffset(Field) / Context.getCharWidth();
}

// Collects the byte ranges of a structure's fields, those of its parts included. A field of a structure in an array may
// be anywhere in the array.
void layOut(Program &P, const RecordDecl *Record, uint64_t At, uint64_t Spread, std::vector<Bytes> &Into) {
  ASTContext &Context = Record->getASTContext();
  const ASTRecordLayout &Layout = Context.getASTRecordLayout(Record);
  if (const auto *Class = dyn_cast<CXXRecordDecl>(Record))
    for (const CXXBaseSpecifier &Base : Class->bases())
      if (const RecordDecl *Of = record(Base.getType()); Of && !Base.isVirtual())
        layOut(P, Of, At + Layout.getBaseClassOffset(cast<CXXRecordDecl>(Of)).getQuantity(), Spread, Into);
  for (const FieldDecl *Field : Record->fields()) {
    QualType Type = Field->getType();
    if (Field->isUnnamedBitField() || Type->isIncompleteType() || Type->isReferenceType())
      continue;
    uint64_t Bits = Layout.getFieldOffset(Field->getFieldIndex()), Width = Context.getCharWidth();
    uint64_t Begin = At + Bits / Width;
    uint64_t End = Begin + (Field->isBitField() ? (Bits % Width + Field->getBitWidthValue(Context) + Width - 1) / Width
                                                : Context.getTypeSizeInChars(Type).getQuantity());
    if (const RecordDecl *Inner = record(Type)) {
      uint64_t Elements = Type->isArrayType() ? End - Begin - Context.getTypeSizeInChars(Context.getRecordType(Inner)).getQuantity() : 0;
      layOut(P, Inner, Begin, Spread + Elements, Into);
      if (!Record->isUnion())
        continue;
    }
    for (NodeId Piece : P.pieces(P.field(Field)))
      Into.push_back({Begin, End + Spread, Piece});
  }
}

// A field that identifies a structure, in whichever unit it is declared.
NodeId sign(Program &P, const RecordDecl *Record) {
  NodeSet Fields = P.fields(Record->getASTContext().getRecordType(Record));
  return Fields.empty() ? 0 : Fields.find_first();
}

} // namespace

const NodeSet &PointsTo::overlapping(NodeId Field) {
  static const NodeSet None;
  auto Known = Overlaps.find(Field);
  return Known == Overlaps.end() ? None : Known->second;
}

void PointsTo::link(NodeId One, NodeId Other) {
  if (One == Other || !Overlaps[One].test_and_set(Other))
    return;
  Overlaps[Other].set(One);
  copy(One, Other);
  copy(Other, One);
}

// Links the fields of two structures where the second begins the given number of bytes after the first.
void PointsTo::lay(const RecordDecl *Record, const RecordDecl *Over, uint64_t At) {
  NodeId One = sign(P, Record), Other = sign(P, Over);
  if (!One || !Other || (One == Other && At == 0) || !Laid.insert({One, Other, At}).second)
    return;
  std::vector<Bytes> Here, There;
  layOut(P, Record, 0, 0, Here);
  layOut(P, Over, At, 0, There);
  for (const Bytes &A : Here)
    for (const Bytes &B : There)
      if (A.Begin < B.End && B.Begin < A.End)
        link(A.Id, B.Id);
}

// Links the structures of a union with each other and with its other members.
void PointsTo::layUnion(NodeId Whole, const llvm::DenseSet<const FieldDecl *> &Members) {
  std::vector<const RecordDecl *> Records;
  bool Others = false;
  for (const FieldDecl *Member : Members)
    if (const RecordDecl *Record = record(Member->getType()))
      Records.push_back(Record);
    else
      Others = true;
  for (size_t I = 0; I < Records.size(); ++I) {
    for (size_t J = 0; J < I; ++J)
      lay(Records[I], Records[J], 0);
    if (Others)
      for (NodeId Field : P.fields(Records[I]->getASTContext().getRecordType(Records[I])))
        link(Whole, Field);
  }
}

// Links the fields of a structure that an object is used as with those of the object's own type, and of other
// structures that it is used as.
void PointsTo::layObject(NodeId Object, const RecordDecl *As, llvm::SmallVectorImpl<const RecordDecl *> &Others) {
  const Node &Now = P.Nodes[Object];
  if (const auto *Field = dyn_cast_or_null<FieldDecl>(Now.Decl); Field && Now.Kind == NodeKind::Field) {
    QualType Type = As->getASTContext().getRecordType(As);
    if (!P.fields(Type).test(Object) && record(As->getASTContext().getRecordType(Field->getParent())))
      lay(Field->getParent()->getDefinition(), As, offset(Field));
    return;
  }
  if (const RecordDecl *Own = record(Now.Type))
    lay(Own, As, 0);
  else if (Now.Kind == NodeKind::Variable && !Now.Type.isNull() && Now.Type->isScalarType())
    for (NodeId Field : P.fields(As->getASTContext().getRecordType(As)))
      link(Object, Field);
  for (const RecordDecl *Other : Others)
    lay(Other, As, 0);
  Others.push_back(As);
}

// Finds overlaps in the present points-to sets. True if there are more than before.
bool PointsTo::overlap() {
  size_t Before = Edges.size();
  for (auto &[Whole, Members] : UnionMembers)
    layUnion(Whole, Members);
  llvm::DenseMap<NodeId, llvm::SmallVector<const RecordDecl *, 2>> Views;
  llvm::DenseSet<std::pair<NodeId, NodeId>> Seen;
  for (auto &[Pointer, Type] : UsedAs)
    if (const RecordDecl *As = record(Type))
      if (NodeId Sign = sign(P, As))
        for (NodeId Object : NodeSet(cell(Pointer).Points))
          if (Seen.insert({Object, Sign}).second)
            layObject(Object, As, Views[Object]);
  // Pointers that are accessed as bytes.
  for (auto &[Pointer, Type] : Raw)
    for (NodeId Object : NodeSet(cell(Pointer).Points))
      for (NodeId Part : bytes(Object, Type))
        if (Part != Object && !P.Nodes[Part].Type.isNull() && P.Nodes[Part].Type->isPointerType()) {
          copy(Object, Part);
          copy(Part, Object);
        }
  return Edges.size() > Before;
}

// The nodes that an access of this type through a pointer to an object may be of: the whole object; and if a field is
// accessed as another type, the whole structure around it. An access to an array stays in the array.
NodeSet PointsTo::bytes(NodeId Object, QualType As) {
  NodeSet All = whole(Object);
  const Node &Now = P.Nodes[Object];
  const auto *Field = Now.Kind == NodeKind::Field ? dyn_cast_or_null<FieldDecl>(Now.Decl) : nullptr;
  if (!Field || As.isNull() || Now.Type.isNull() || Now.Type->isArrayType() || Now.Type->isIncompleteType() ||
      As->isIncompleteType())
    return All;
  ASTContext &Context = Field->getASTContext();
  bool Same = Now.Type->isScalarType() && As->isScalarType() &&
              Now.Type->isPointerType() == As->isPointerType() &&
              Context.getTypeSize(Now.Type) == Context.getTypeSize(As.getCanonicalType());
  if (!Same)
    All |= P.fields(Context.getRecordType(Field->getParent()));
  return All;
}

} // namespace foreread::slicer
