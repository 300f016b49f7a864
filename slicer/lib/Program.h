// The program as the translator sees it: its units, its functions, and its memory cut into nodes.
//
// A node is a piece of memory that is related to I/O or not as a whole: a variable (by declaration,
// so that scopes are kept apart), a piece of an array, a field of a structure (one node for all
// objects of the type), the memory of one allocation, what one function returns, a file that one
// call opens, and the hidden state of a library function.  Names with external linkage are one node
// in all units.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "Calls.h"
#include "Inclusions.h"

namespace foreread::slicer {

using NodeId = unsigned;
using NodeSet = llvm::SparseBitVector<>;

enum class NodeKind { Variable, Field, Return, Heap, Function, File, State, Varargs, Value, Text };

struct Node {
  NodeKind Kind;
  std::string Name;                  // for reports
  clang::QualType Type;              // null for memory of unknown type
  const clang::Decl *Decl = nullptr; // variable, field
  const clang::Expr *Site = nullptr; // Heap, File: the call or literal that makes it
  unsigned Owner = ~0u;              // Function: its index
  bool AddressTaken = false;         // Variable: something may point to it
  bool Local = false;                // Variable: of automatic storage
};

struct Unit {
  unsigned Index = 0;
  std::string File;      // as the compiler was told
  std::string Path;      // absolute
  std::string Directory; // where the compiler ran
  std::unique_ptr<clang::ASTUnit> AST;
  std::unique_ptr<Inclusions> Texts;
  std::string WholeBecause; // why it is left as it is; empty if it is analysed

  clang::ASTContext &context() const { return AST->getASTContext(); }
  const clang::SourceManager &sources() const { return AST->getSourceManager(); }
  bool cxx() const { return AST->getLangOpts().CPlusPlus; }
};

struct Function {
  unsigned Index = 0;
  const clang::FunctionDecl *Decl = nullptr; // the definition
  Unit *Home = nullptr;
  std::string Name;        // with its namespace and class
  std::string Symbol;      // the linker's name for it
  bool AtHand = false;     // its text can be changed
  bool Shared = false;     // it stands in a header, and units that have it have one and the same
  bool Private = false;    // static or inline: no other unit can name it
  bool Reachable = false;  // from main
  bool AddressTaken = false;
  bool LooseCalls = false; // calls pass another number of arguments than it has parameters
  bool Allocates =
      false; // returns memory it allocates: each call of it is an allocation of its own
  std::string NotCarried; // why it is left whole, should it matter; empty if it need not be
  std::string WholeBecause;
  // Left whole, but the prefetch thread can run it as it is and make the same reads, which its own text counts; and
  // whether there are any.
  bool CountsItself = false, Reads = false;
  bool Pauses = false;       // left whole, and what it calls is not counted meanwhile
  bool RunByLibrary = false; // a function of the library may call it, and which does is not known
  bool Through = false;      // … does call it, in calls that are known: runThrough()
  // The functions that give it to one of the C++ library that calls it through a pointer, and in which its version can stand
  // for it; whether it is given otherwise, too; and whether what gives it is a pointer, not its name.
  std::vector<const Function *> Givers;
  bool GivenAsIs = false, GivenByPointer = false;
  bool Gives = false; // it is such a function
  llvm::DenseMap<const clang::Stmt *, const clang::Stmt *> Parents;
  std::vector<const clang::CallExpr *> Calls;
  // Those of them that are written once for all arguments of a pack.
  llvm::DenseSet<const clang::CallExpr *> Expanded;
  // The objects it makes, and the lambda expressions: what runs without a call.
  std::vector<const clang::Expr *> Makes;

  // An object it is called on, as C++'s this.
  const clang::CXXMethodDecl *method() const {
    const auto *Method = llvm::dyn_cast<clang::CXXMethodDecl>(Decl);
    return Method && Method->isInstance() ? Method : nullptr;
  }
  // The body of a lambda expression.
  bool lambda() const { return method() && method()->getParent()->isLambda(); }
};

class Program {
public:
  Program() = default;
  Program(const Program &) = delete;

  std::vector<std::unique_ptr<Unit>> Units;
  std::vector<std::unique_ptr<Function>> Functions;
  std::vector<Node> Nodes;
  // Whether there is no unit of which nothing is known, and which may have copies of what headers define.
  bool AllKnown = true;

  // Fills Functions from Units.
  void index();

  // The definition a declaration stands for, or null: a library's function.
  Function *function(const clang::FunctionDecl *Decl) const;
  Function *functionNamed(llvm::StringRef Name) const;
  // The variables of a unit that are there while it runs, those of namespaces and classes too.
  std::vector<const clang::VarDecl *> globals(const Unit &U) const;
  // The functions that a virtual call of this one may call.
  std::vector<Function *> overriders(const clang::CXXMethodDecl *Method) const;
  // The functions of the program that one without a body in it comes to call by their names: a template of the C++
  // library, or a name that is resolved when the program is loaded.
  const std::vector<Function *> &runThrough(const clang::FunctionDecl *Library);
  // What functions of the library, and names that are resolved when the program is loaded, call by name (Library.h).
  llvm::DenseMap<const clang::FunctionDecl *, std::vector<const clang::FunctionDecl *>> LibraryCalls;
  // The functions that are made from the same template: they have one text, and the parts of their trees that say the
  // same in each of them.
  std::vector<Function *> sameText(const Function &F) const;
  // A thread of the C++ library that an expression starts, a call or what makes an object: what is given to it, and what
  // that runs.
  struct Thread {
    const clang::Expr *Body = nullptr;
    Function *Target = nullptr;
  };
  Thread thread(const clang::Expr *Starts) const { return Threads.lookup(Starts); }
  // What starts the thread that is given this to run, or null.
  const clang::Expr *threadOf(const clang::Expr *Given) const { return ThreadBodies.lookup(Given); }
  llvm::DenseMap<const clang::Expr *, Thread> Threads;
  llvm::DenseMap<const clang::Expr *, const clang::Expr *> ThreadBodies;
  // The function that a name gives to the C++ library to be called, or null.
  Function *given(const clang::DeclRefExpr *Name) const { return GivenNames.lookup(Name); }
  // Whether it is a pointer that does.
  bool givesPointer(const clang::Expr *E) const { return GivenPointers.contains(E); }
  llvm::DenseMap<const clang::DeclRefExpr *, Function *> GivenNames;
  llvm::DenseSet<const clang::Expr *> GivenPointers;
  // What the call table says of a call, or null.  Functions of the program are not looked up.
  const CallSpec *spec(const clang::CallExpr *Call) const;

  NodeId add(Node New);
  NodeId variable(const clang::VarDecl *Decl);
  // The node a reference to a variable means: that of its web, if the variable is split.
  NodeId reference(const clang::DeclRefExpr *Ref);
  llvm::DenseMap<const clang::DeclRefExpr *, NodeId> Webs;
  // For x += 1 and the like, where reading and writing may be of two webs: what is read.
  llvm::DenseMap<const clang::DeclRefExpr *, NodeId> WebsRead;
  // What an assignment operator reads of its target beside what it writes, or 0.
  NodeId readBy(const clang::Expr *Target) const;
  // Arrays that are cut: where each piece begins; all pieces, by any of them; and those that an
  // access may mean.
  llvm::DenseMap<NodeId, std::vector<std::pair<uint64_t, NodeId>>> Arrays;
  llvm::DenseMap<NodeId, NodeSet> Pieces;
  llvm::DenseMap<const clang::ArraySubscriptExpr *, NodeSet> Elements;
  void cut(NodeId Array, const std::vector<std::pair<uint64_t, NodeId>> &Into);
  // The pieces of an array, or the node alone.
  NodeSet pieces(NodeId Id) const;
  // The piece that has an element.
  NodeId piece(NodeId Array, uint64_t Index) const;
  NodeId field(const clang::FieldDecl *Decl);
  NodeId result(const Function &F);
  NodeId varargs(const Function &F);
  NodeId functionObject(const Function &F);
  NodeId heap(const clang::Expr *Site);
  NodeId file(const clang::CallExpr *Site);
  NodeId standardStream(llvm::StringRef Name);
  NodeId state(llvm::StringRef Name);
  NodeId text();
  NodeId parameter(const Function &F, unsigned Index);
  // The pointer to the object that a member function is called on.
  NodeId self(const Function &F);

  // The fields of a record type, those of its parts included; empty for other types.
  NodeSet fields(clang::QualType Type);

  Function *mainFunction() const { return functionNamed("main"); }
  const clang::FunctionDecl *enclosing(const clang::Decl *Local) const;
  // The name by which text outside of all namespaces and classes means it.
  static std::string qualified(const clang::NamedDecl *Named);
  // "file:line" of a place, for reports.
  static std::string place(const Unit &U, clang::SourceLocation Where);

private:
  void add(Unit &U, const clang::FunctionDecl *Declared);
  static std::string pattern(const Function &F);
  void alias(Unit &U, const clang::FunctionDecl *Other);
  void leaveChosen(Unit &U, const clang::FunctionDecl *Other);
  void findTemplates();
  std::string symbol(const clang::NamedDecl *Named) const;

  llvm::StringMap<Function *> External;
  llvm::StringMap<std::vector<Function *>> Overriders;
  llvm::DenseMap<const clang::FunctionDecl *, Function *> Internal;
  llvm::DenseMap<const clang::FunctionDecl *, std::vector<Function *>> ThroughKnown;
  llvm::StringMap<std::vector<Function *>> FromTemplate;
  llvm::DenseMap<const void *, NodeId> ByDecl;
  llvm::StringMap<NodeId> ByName;
  llvm::DenseMap<const void *, NodeSet> RecordFields;
  std::string recordName(const clang::RecordDecl *Record);
  NodeId named(std::string Key, Node New);
};

// An expression without parentheses and implicit conversions.
const clang::Expr *strip(const clang::Expr *E);
// The function a call names, or null for a call through a pointer.
const clang::FunctionDecl *directCallee(const clang::CallExpr *Call);
// Whether evaluating the expression does more than compute a value.
bool hasSideEffects(const clang::Expr *E);

} // namespace foreread::slicer
