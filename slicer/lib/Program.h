// The program as the translator sees it: its units, its functions, and its memory in nodes.
//
// A node is a piece of memory that is related to I/O or not as a whole: a variable (by declaration, so that scopes are
// distinguished), a piece of an array, a field of a structure (one node for all objects of the type), the memory of one
// allocation, the result of a function, a file opened by one call, or the hidden state of a library function. Names
// with external linkage are one node in all units.
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
  const clang::Expr *Site = nullptr; // Heap, File: the call or literal that creates it
  unsigned Owner = ~0u;              // Function: its index
  bool AddressTaken = false;         // Variable: pointers to it may exist
  bool Local = false;                // Variable: of automatic storage
};

struct Unit {
  unsigned Index = 0;
  std::string File;      // as given to the compiler
  std::string Path;      // absolute
  std::string Directory; // the compiler's working directory
  std::unique_ptr<clang::ASTUnit> AST;
  std::unique_ptr<Inclusions> Texts;
  std::string WholeBecause; // why the unit is left whole; empty if it is analysed

  clang::ASTContext &context() const { return AST->getASTContext(); }
  const clang::SourceManager &sources() const { return AST->getSourceManager(); }
  bool cxx() const { return AST->getLangOpts().CPlusPlus; }
};

struct Function {
  unsigned Index = 0;
  const clang::FunctionDecl *Decl = nullptr; // the definition
  Unit *Home = nullptr;
  std::string Name;        // with namespaces and classes
  std::string Symbol;      // the linker's name
  bool AtHand = false;     // its text can be changed
  bool Shared = false;     // defined in a header, and the same function in all units that include it
  bool Private = false;    // static or inline: other units cannot name it
  bool Reachable = false;  // from main
  bool AddressTaken = false;
  bool LooseCalls = false; // some calls pass another number of arguments than it has parameters
  bool Allocates = false;  // returns memory that it allocates: each call is an allocation of its own
  std::string NotCarried; // why it has to be left whole if it matters; empty if it can be sliced
  std::string WholeBecause;
  // Left whole, but the prefetch thread can run it unchanged and make the same reads, which its own text counts; Reads:
  // there are such reads.
  bool CountsItself = false, Reads = false;
  bool Pauses = false;       // left whole, and reads in its callees are not counted while it runs
  bool RunByLibrary = false; // a library function may call it, and it is unknown which one
  bool Through = false;      // library functions call it, and these calls are known: runThrough()
  // Functions that pass it to a function of the C++ library which calls it through a pointer, where its prefetch
  // version can replace it. GivenAsIs: it is also passed where that is impossible. GivenByPointer: a pointer to it, not
  // its name, is passed.
  std::vector<const Function *> Givers;
  bool GivenAsIs = false, GivenByPointer = false;
  bool Gives = false; // it passes functions in this way
  llvm::DenseMap<const clang::Stmt *, const clang::Stmt *> Parents;
  std::vector<const clang::CallExpr *> Calls;
  // Calls that are written once for all arguments of a pack.
  llvm::DenseSet<const clang::CallExpr *> Expanded;
  // Constructions of objects and lambda expressions: code that runs without a call expression.
  std::vector<const clang::Expr *> Makes;

  // The declaration, if it is a non-static member function; else null.
  const clang::CXXMethodDecl *method() const {
    const auto *Method = llvm::dyn_cast<clang::CXXMethodDecl>(Decl);
    return Method && Method->isInstance() ? Method : nullptr;
  }
  // True for the call operator of a lambda expression.
  bool lambda() const { return method() && method()->getParent()->isLambda(); }
};

class Program {
public:
  Program() = default;
  Program(const Program &) = delete;

  std::vector<std::unique_ptr<Unit>> Units;
  std::vector<std::unique_ptr<Function>> Functions;
  std::vector<Node> Nodes;
  // True if all units are known. An unknown unit may have copies of functions that headers define.
  bool AllKnown = true;

  // Fills Functions from Units.
  void index();

  // The definition of a declared function; null for a library function.
  Function *function(const clang::FunctionDecl *Decl) const;
  Function *functionNamed(llvm::StringRef Name) const;
  // The variables of a unit with static storage outside functions, those of namespaces and classes included.
  std::vector<const clang::VarDecl *> globals(const Unit &U) const;
  // The functions that a virtual call of this one may reach.
  std::vector<Function *> overriders(const clang::CXXMethodDecl *Method) const;
  // The program's functions that a function without a body in the program calls by name: a template of the C++ library,
  // or a name that is resolved when the program is loaded.
  const std::vector<Function *> &runThrough(const clang::FunctionDecl *Library);
  // Calls by name made by library functions, and targets of names that are resolved when the program is loaded
  // (Library.h).
  llvm::DenseMap<const clang::FunctionDecl *, std::vector<const clang::FunctionDecl *>> LibraryCalls;
  // Instantiations of one template: they share one text, and the parts of their trees that do not depend on the
  // arguments.
  std::vector<Function *> sameText(const Function &F) const;
  // A thread of the C++ library started by a call or a construction: the expression passed to it, and the function that
  // it runs.
  struct Thread {
    const clang::Expr *Body = nullptr;
    Function *Target = nullptr;
  };
  Thread thread(const clang::Expr *Starts) const { return Threads.lookup(Starts); }
  // The expression that starts the thread which runs the given expression, or null.
  const clang::Expr *threadOf(const clang::Expr *Given) const { return ThreadBodies.lookup(Given); }
  llvm::DenseMap<const clang::Expr *, Thread> Threads;
  llvm::DenseMap<const clang::Expr *, const clang::Expr *> ThreadBodies;
  // The function that a name passes to the C++ library to be called, or null.
  Function *given(const clang::DeclRefExpr *Name) const { return GivenNames.lookup(Name); }
  // True if the expression passes a function by a pointer.
  bool givesPointer(const clang::Expr *E) const { return GivenPointers.contains(E); }
  llvm::DenseMap<const clang::DeclRefExpr *, Function *> GivenNames;
  llvm::DenseSet<const clang::Expr *> GivenPointers;
  // The call table's line for a call, or null. Functions of the program are not looked up.
  const CallSpec *spec(const clang::CallExpr *Call) const;

  NodeId add(Node New);
  NodeId variable(const clang::VarDecl *Decl);
  // The node of a reference to a variable: that of its web, if the variable is split.
  NodeId reference(const clang::DeclRefExpr *Ref);
  llvm::DenseMap<const clang::DeclRefExpr *, NodeId> Webs;
  // For x += 1 and the like, which may read one web and write another: the web that is read.
  llvm::DenseMap<const clang::DeclRefExpr *, NodeId> WebsRead;
  // The node that an assignment operator reads of its target, if another than it writes; or 0.
  NodeId readBy(const clang::Expr *Target) const;
  // Split arrays: the start of each piece; all pieces, by any of them; and the pieces that an access may be of.
  llvm::DenseMap<NodeId, std::vector<std::pair<uint64_t, NodeId>>> Arrays;
  llvm::DenseMap<NodeId, NodeSet> Pieces;
  llvm::DenseMap<const clang::ArraySubscriptExpr *, NodeSet> Elements;
  void cut(NodeId Array, const std::vector<std::pair<uint64_t, NodeId>> &Into);
  // The pieces of an array, or the node alone if it is not split.
  NodeSet pieces(NodeId Id) const;
  // The piece that contains an element.
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
  // The pointer to the object that a member function is called on (this).
  NodeId self(const Function &F);

  // The fields of a record type, including those of its parts; empty for other types.
  NodeSet fields(clang::QualType Type);

  Function *mainFunction() const { return functionNamed("main"); }
  const clang::FunctionDecl *enclosing(const clang::Decl *Local) const;
  // The name to be used outside of all namespaces and classes.
  static std::string qualified(const clang::NamedDecl *Named);
  // "file:line" of a location, for reports.
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
// The function that a call names, or null for a call through a pointer.
const clang::FunctionDecl *directCallee(const clang::CallExpr *Call);
// True if the expression contains a call, an assignment, an increment or the like.
bool hasSideEffects(const clang::Expr *E);

} // namespace foreread::slicer
