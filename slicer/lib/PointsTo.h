// Points-to sets by Andersen's analysis (inclusion constraints, insensitive to flow and context), field-sensitive.
// Descriptors and streams are traced as pointers to the file that they were opened for: one analysis answers "which
// object" and "which file".
//
// A node stands for a piece of memory and for its content. Each call of a function that only allocates is treated as an
// allocation of its own.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "Program.h"

namespace foreread::slicer {

class PointsTo {
public:
  explicit PointsTo(Program &P) : P(P) {}

  // Generates the constraints of the whole program and solves them.
  void run();

  // The nodes that an lvalue may refer to.
  NodeSet locations(const clang::Expr *Lvalue);
  // The nodes that a pointer, descriptor or stream may point to.
  NodeSet pointees(const clang::Expr *Pointer);
  const NodeSet &pointees(NodeId Cell) { return cell(Cell).Points; }
  // The possible callees of a call.
  struct Callees {
    std::vector<Function *> Functions;
    bool Complete = true; // false: only unknown functions may be called
    bool Others = false;  // unknown functions may be called, too
  };
  Callees callees(const clang::CallExpr *Call);
  // The functions of the program that an argument may point to.
  std::vector<Function *> functions(const clang::Expr *Pointer);

  // The node of the descriptors that dup2() or dup3() give this number, or 0.
  NodeId numbered(uint64_t Number) const {
    auto Known = Numbers.find(Number);
    return Known == Numbers.end() ? 0 : Known->second;
  }

  // All nodes of an object: its own, and the fields of its type and of the record types that it is used as.
  NodeSet whole(NodeId Object);
  // The same, and the other nodes that an access through a pointer to this type may be of.
  NodeSet bytes(NodeId Object, clang::QualType As);
  // The fields that share bytes with a field or a variable.
  const NodeSet &overlapping(NodeId Field);

private:
  struct Place {
    NodeId Direct = 0;
    NodeId Pointer = 0;
  };
  struct Cell {
    NodeSet Points, Done;
    std::vector<NodeId> Copies, Loads, Stores;
    std::vector<const clang::CallExpr *> Calls;
    bool Queued = false;
  };

  void cover(const clang::Stmt *S);
  void declare(const clang::VarDecl *Variable);
  void initialise(NodeId Into, clang::QualType Type, const clang::Expr *Value);
  void initialiseObject(NodeId Into, clang::QualType Type, const clang::Expr *Value);
  NodeId value(const clang::Expr *E);
  NodeId generate(const clang::Expr *E);
  Place place(const clang::Expr *E);
  NodeId load(Place From);
  NodeId address(Place Of);
  void store(Place Into, NodeId From);
  NodeId bound(const clang::Expr *E, bool ByReference);
  std::optional<NodeId> generateCxx(const clang::Expr *E);
  std::optional<Place> placeCxx(const clang::Expr *E);
  std::optional<NodeSet> locationsCxx(const clang::Expr *Lvalue);
  void construct(NodeId Object, const clang::CXXConstructExpr *Made);
  void initialisers(const Function &F);
  void part(const Function &F, const clang::Expr *Init);
  NodeId call(const clang::CallExpr *Call);
  NodeId libraryCall(const clang::CallExpr *Call, const CallSpec &Spec);
  NodeId unknownCall(const clang::CallExpr *Call);
  // A call that may return anything it is passed, and store it in memory that it may write to.
  NodeId anything(NodeId Result, llvm::ArrayRef<NodeId> Given, llvm::ArrayRef<NodeId> Written);
  void connect(const clang::CallExpr *Call, Function &F);
  void runThread(Function &Body, llvm::ArrayRef<NodeId> Given);
  void connectThrough(const clang::FunctionDecl *Library, NodeId Given);
  void connectCallback(const clang::CallExpr *Call, Function &F);
  void findAllocators();
  void findNumbers();
  std::optional<uint64_t> numberOf(const clang::Expr *Descriptor) const;

  NodeId fresh();
  void points(NodeId At, NodeId Object);
  void copy(NodeId From, NodeId To);
  void solve();
  void touch(NodeId At);
  Cell &cell(NodeId Id);
  bool overlap();
  void link(NodeId One, NodeId Other);
  void lay(const clang::RecordDecl *Record, const clang::RecordDecl *Over, uint64_t At);
  void layUnion(NodeId Whole, const llvm::DenseSet<const clang::FieldDecl *> &Members);
  void layObject(NodeId Object, const clang::RecordDecl *As, llvm::SmallVectorImpl<const clang::RecordDecl *> &Others);

  Program &P;
  std::deque<Cell> Cells;
  // Copy edges that exist already.
  llvm::DenseSet<std::pair<NodeId, NodeId>> Edges;
  // First in, first out: facts that a cell gains while it waits are propagated with the rest.
  std::deque<NodeId> Work;
  llvm::DenseMap<const clang::Expr *, NodeId> Values;
  llvm::DenseMap<NodeId, NodeId> Addresses;
  // Any number may be looked up; a DenseMap reserves two keys.
  std::map<uint64_t, NodeId> Numbers;
  llvm::DenseSet<std::pair<const clang::CallExpr *, unsigned>> Connected;
  std::vector<std::pair<NodeId, clang::QualType>> UsedAs;
  llvm::DenseMap<NodeId, NodeSet> Contents;
  // Pointers through which pointers are accessed, possibly as bytes of a structure.
  std::vector<std::pair<NodeId, clang::QualType>> Raw;
  // The union members that are named anywhere, by the node of the union.
  std::map<NodeId, llvm::DenseSet<const clang::FieldDecl *>> UnionMembers;
  llvm::DenseMap<NodeId, NodeSet> Overlaps;
  std::set<std::tuple<NodeId, NodeId, uint64_t>> Laid;
  const Function *Current = nullptr;
  clang::ASTContext *Context = nullptr;
};

} // namespace foreread::slicer
