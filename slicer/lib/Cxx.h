// C++ in terms of C: a member function is a function with one more parameter, a reference is a pointer that is always
// followed, copying an object of plain data is an assignment. Constructs that cannot be expressed so are listed here,
// as reasons for leaving the function around them whole.
#pragma once

#include <optional>

#include "Program.h"

namespace foreread::slicer {

// The object that a member function is called on, or null; a pointer if the call is written with ->.
const clang::Expr *objectOf(const clang::CallExpr *Call);
// Index of the argument that belongs to the first parameter: 1 for an overloaded operator whose first argument is the
// object.
unsigned firstArgument(const clang::CallExpr *Call);
// The operands of a call: its object, if any, and its arguments.
llvm::SmallVector<const clang::Expr *, 6> operandsOf(const clang::CallExpr *Call);
// True if the parameter is a reference, an alias of its operand.
bool boundByReference(const clang::FunctionDecl *Callee, unsigned Parameter);
// True if, by the types, a call may change its operand or the memory that the operand leads to.
bool mayWrite(const clang::CallExpr *Call, const clang::Expr *Operand);

// The operand that a function of the C++ library returns, by the types (cout << x returns cout), or null.
const clang::Expr *givenBack(const clang::CallExpr *Call);

// The function named by a virtual call, which may be overridden in the object called on; or null.
const clang::CXXMethodDecl *virtualCallee(const clang::CallExpr *Call);
// The base-most function that a virtual one overrides, itself if there is none; null if it overrides several.
const clang::CXXMethodDecl *firstOf(const clang::CXXMethodDecl *Method);
// True if a class is derived from another. Classes are compared by name, since they may be of different units.
bool derives(const clang::CXXRecordDecl *Class, const clang::CXXRecordDecl *From);
// Functions as one unit sees them: of a function that several units share, the unit's own copy.
std::vector<Function *> seenBy(const Unit &U, const std::vector<Function *> &Functions);
// The operand copied, if the construction of an object is a copy of plain data; or null.
const clang::Expr *copied(const clang::Expr *E);
// Whether the call assigns plain data.
bool assignsPlainly(const clang::CallExpr *Call);
// The expression behind a default argument or initializer, behind a name of auto [a, b], or inside a node that only destroys
// temporaries.
const clang::Expr *behind(const clang::Expr *E);
// The hidden variables that hold the parts of auto [a, b] where functions return them.
llvm::SmallVector<const clang::VarDecl *, 4> holding(const clang::VarDecl *Variable);
// True for a class of a system header in a namespace, as those of the C++ library: one piece of memory, whatever its members are.
bool isOpaque(const clang::RecordDecl *Record);
// True if constructing or destroying objects of this type runs code or decides which code runs.
bool runsCode(clang::QualType Type);
const clang::CXXDestructorDecl *destructorOf(clang::QualType Type);

// True if prefetch functions, which are members of nothing, may not name it.
bool isPrivate(const clang::Decl *D);
// The value of a constant, for text in which the constant's name cannot be used.
std::optional<llvm::APSInt> constant(const clang::DeclRefExpr *Ref);
// True if the name of a type, or of a part of it, is private.
bool namesPrivate(clang::QualType Type);
// True if a pointer to this member can be formed, and of a type that may be named anywhere.
bool hasOwnAddress(const clang::FieldDecl *Field);

// The function type of a std::function; null for other types.
clang::QualType signatureOf(clang::QualType Holder);

// Text of the type of the function called through a pointer, to a member or not; empty if it is no function. Without
// noexcept.
std::string shapeOf(clang::QualType Callee, const clang::ASTContext &Context);

// The function that a call or a construction passes to a new thread of the C++ library, with that function's first
// argument; or null.
const clang::Expr *givenToThread(const clang::Expr *E, const clang::Expr *&Second);
// True if the thread's result is returned: std::async.
bool startsAnswering(const clang::Expr *E);

// The call operator of a lambda expression; of a generic one, its instantiation if there is exactly one.
const clang::FunctionDecl *operatorOf(const clang::CXXRecordDecl *Closure);
// The call operators of a lambda expression; of a generic one, all its instantiations.
llvm::SmallVector<const clang::FunctionDecl *, 2> operatorsOf(const clang::CXXRecordDecl *Closure);
// True if a lambda expression is only called or passed to functions.
bool onlyCalled(const clang::CXXRecordDecl *Closure);
// True if a lambda expression only computes a value and can be printed as it is: it declares and changes nothing, and
// does not capture the object around it.
bool standsAlone(const clang::LambdaExpr *Made);

// Name of a variable in the prefetch functions. The parameters that a pack expands to share one name and need several.
std::string printedName(const clang::VarDecl *Variable);

// The block that is a function's body, or the block of a function-try.
const clang::CompoundStmt *blockOf(const clang::FunctionDecl *F);
// True if the prefetch thread can throw the operand of a throw expression.
bool canThrow(const clang::CXXThrowExpr *E);

// Why a function has no prefetch version, whatever its body; empty if it may have one.
std::string notCarried(const clang::FunctionDecl *F);
// Why the prefetch thread cannot evaluate an expression; empty if it can.
std::string notCarried(const clang::Expr *E);

} // namespace foreread::slicer
