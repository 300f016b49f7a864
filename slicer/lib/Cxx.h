// C++ seen as C: a member function is a function with one more parameter, a reference is a pointer
// that is always followed, copying an object of plain data is assigning it.  What cannot be seen so
// is named here, as a reason for leaving the function around it whole.
#pragma once

#include <optional>

#include "Program.h"

namespace foreread::slicer {

// The object that a member function is called on, or null; a pointer if it is followed by ->.
const clang::Expr *objectOf(const clang::CallExpr *Call);
// The number of the argument that is the first parameter: 1 where an operator's object is the
// first.
unsigned firstArgument(const clang::CallExpr *Call);
// What a call is given: its object, if any, and its arguments.
llvm::SmallVector<const clang::Expr *, 6> operandsOf(const clang::CallExpr *Call);
// Whether operand and parameter are one object: the parameter is a reference.
bool boundByReference(const clang::FunctionDecl *Callee, unsigned Parameter);
// Whether a call may change what an operand stands for or leads to, by the types.
bool mayWrite(const clang::CallExpr *Call, const clang::Expr *Operand);

// The operand that a function of the C++ library gives back, by the types: cout << x is cout.  Or
// null.
const clang::Expr *givenBack(const clang::CallExpr *Call);

// The function a virtual call names, which need not be the one that is called; or null.
const clang::CXXMethodDecl *virtualCallee(const clang::CallExpr *Call);
// The first of the functions that a virtual one overrides, or null where it overrides several.
const clang::CXXMethodDecl *firstOf(const clang::CXXMethodDecl *Method);
// Whether a class is made from another, which another unit may have declared.
bool derives(const clang::CXXRecordDecl *Class, const clang::CXXRecordDecl *From);
// Functions as one unit knows them: where several units have one and the same, the unit's own.
std::vector<Function *> seenBy(const Unit &U, const std::vector<Function *> &Functions);
// What is copied, where making an object is copying plain data; or null.
const clang::Expr *copied(const clang::Expr *E);
// Whether the call assigns plain data.
bool assignsPlainly(const clang::CallExpr *Call);
// The expression that stands behind a default, behind a name of auto [a, b], or within what only ends temporary objects.
const clang::Expr *behind(const clang::Expr *E);
// The variables that auto [a, b] declares for what functions give for them.
llvm::SmallVector<const clang::VarDecl *, 4> holding(const clang::VarDecl *Variable);
// Whether it is a class of the C++ library: one piece of memory, whatever it consists of.
bool isOpaque(const clang::RecordDecl *Record);
// Whether making or ending objects of this type runs code, or says what is run.
bool runsCode(clang::QualType Type);
const clang::CXXDestructorDecl *destructorOf(clang::QualType Type);

// Whether prefetch functions, which are members of nothing, may name it.
bool isPrivate(const clang::Decl *D);
// The number that a constant is, which can be written where the constant's name cannot.
std::optional<llvm::APSInt> constant(const clang::DeclRefExpr *Ref);
// Whether a type's name is private, or a part of it is.
bool namesPrivate(clang::QualType Type);
// Whether there can be a pointer to the member, of a type that all may name.
bool hasOwnAddress(const clang::FieldDecl *Field);

// What a std::function is called with and gives, as a function's type; null of other types.
clang::QualType signatureOf(clang::QualType Holder);

// The type of the function that is called through a pointer, to a member or not, as text; empty if it is none. Whether it
// may throw does not matter.
std::string shapeOf(clang::QualType Callee, const clang::ASTContext &Context);

// What a call, or what makes an object, hands to a new thread of the C++ library to be run, and the first argument of that;
// or null.
const clang::Expr *givenToThread(const clang::Expr *E, const clang::Expr *&Second);
// Whether that thread's answer is handed over: std::async.
bool startsAnswering(const clang::Expr *E);

// The function that a lambda expression is; of a generic one what is made of it, if that is one only.
const clang::FunctionDecl *operatorOf(const clang::CXXRecordDecl *Closure);
// The functions that it is, of a generic one all that are made of it.
llvm::SmallVector<const clang::FunctionDecl *, 2> operatorsOf(const clang::CXXRecordDecl *Closure);
// Whether nothing is done with a lambda expression but to call it, or to hand it to a function.
bool onlyCalled(const clang::CXXRecordDecl *Closure);
// Whether a lambda expression only computes a value, and can be printed as it is: nothing is
// declared or changed in it, and it does not capture the object around it.
bool standsAlone(const clang::LambdaExpr *Made);

// The name that a variable has in the prefetch functions: the parameters that a pack comes to have one name, and need several.
std::string printedName(const clang::VarDecl *Variable);

// The block that a function's body is, or that of its try.
const clang::CompoundStmt *blockOf(const clang::FunctionDecl *F);
// Whether the prefetch thread can throw what an expression throws.
bool canThrow(const clang::CXXThrowExpr *E);

// Why a function has no prefetch version, whatever is in it; empty if it may have one.
std::string notCarried(const clang::FunctionDecl *F);
// Why an expression cannot be evaluated by the prefetch thread; empty if it can.
std::string notCarried(const clang::Expr *E);

} // namespace foreread::slicer
