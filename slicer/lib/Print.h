// Prints the kept parts of expressions and statements as C or C++.
//
// Clang prints expressions from the tree. This class prints the parts in which the prefetch thread differs: calls,
// arguments that are not needed, and macros of system headers, which are printed by name. It prints all statements.
#pragma once

#include <map>

#include "Plan.h"

namespace foreread::slicer {

class Printer : public clang::PrinterHelper {
public:
  Printer(Program &P, PointsTo &Pointers, Related &Slice, const Plan &Meetings, const Function &F);

  // The complete prefetch version.
  std::string function(unsigned At = 0);
  // The declaration of the prefetch version, without a semicolon.
  std::string declaration() const;

  // A function by which prefetch functions of other units ask whether a pointer is to this function, or whether an
  // object's class has it.
  std::string asked(bool Declared) const;
  // The original function, as a value.
  std::string address() const;

  bool handledStmt(clang::Stmt *S, llvm::raw_ostream &Out) override;

  // Functions of the program that the printed text calls, with the declarations that are visible there.
  const llvm::DenseMap<const Function *, const clang::FunctionDecl *> &called() const {
    return Called;
  }
  // Functions of other units that the printed text names and this unit does not declare.
  const llvm::DenseSet<const Function *> &unseen() const { return Unseen; }
  // Declarations that give the printed text access to private members, by name.
  const std::map<std::string, std::string> &grants() const { return Grants; }
  // True if the text names private members of a class, and access must not be checked.
  bool namesPrivate() const { return Private; }
  std::string plainDeclaration(const Function &Other) const;
  // The declaration of another function's prefetch version, by this unit's declaration of the function.
  std::string declaration(const Function &Other, const clang::FunctionDecl *Seen) const;

private:
  std::string head() const;
  std::string lambda(const clang::LambdaExpr *Made);
  std::string lambda(const clang::LambdaExpr *Made, const Function &Inner);
  std::string lambdaHead() const;
  std::string parameters(const clang::FunctionDecl *Seen) const;
  bool declaredHere(const Function &Other) const;
  std::string text(const clang::Expr *E);
  std::string typed(clang::QualType Type, const std::string &Name) const {
    return typed(Type, Name, F.Home->context());
  }
  std::string typed(clang::QualType Type, const std::string &Name,
                    const clang::ASTContext &In) const;
  std::string declared(const clang::VarDecl *Variable, clang::QualType Type) const;
  bool handledCxx(const clang::Expr *E, llvm::raw_ostream &Out);
  std::string pointer(const clang::Expr *E);
  std::string object(const clang::CallExpr *Call);
  std::string self(const clang::FunctionDecl *Seen) const;
  std::string granted(const clang::MemberExpr *Member, const clang::FieldDecl *Field);
  std::string initialisation(const clang::VarDecl *Variable);
  std::string asItIs(const clang::CallExpr *Call);
  std::string whole(const Function &Target, const std::string &Call) const;
  void tryBlock(const clang::CXXTryStmt *Try);
  bool otherArguments() const;
  std::string givenPointer(const clang::Expr *E);
  std::string threadBody(const clang::Expr *Starts);
  bool makesInPlace(const clang::Expr *Init) const;
  std::string call(const clang::CallExpr *Call);
  std::string virtualCall(const clang::CallExpr *Call);
  std::string userCall(const clang::CallExpr *Call);
  std::string libraryCall(const clang::CallExpr *Call, const CallSpec &Spec,
                          llvm::StringRef Prefix);
  std::string handingOver(const clang::CallExpr *Call, const CallSpec &Spec);
  std::string receive(const clang::CallExpr *Call, const CallSpec &Spec);
  std::string assumed(const clang::CallExpr *Call, const CallSpec &Spec);
  std::string opening(const clang::CallExpr *Call, const CallSpec &Spec);
  std::string argument(const clang::CallExpr *Call, unsigned Index);
  std::string zero(clang::QualType Type) const;
  bool asWritten(const clang::Expr *Literal, llvm::raw_ostream &Out) const;
  bool systemMacro(const clang::Expr *E, llvm::raw_ostream &Out);
  bool division(const clang::BinaryOperator *E, llvm::raw_ostream &Out);

  void line(const std::string &Text);
  void statement(const clang::Stmt *S);
  void label(const std::string &Name, const clang::Stmt *Labelled);
  void block(const clang::Stmt *S);
  void turn(const clang::Stmt *Body);
  void loads(const clang::Stmt *Loop);
  std::string load(const Load &Each);
  std::string effectText(const clang::Expr *E);
  void declare(const clang::DeclStmt *Declared);
  void variable(const clang::VarDecl *Variable);
  void loop(const clang::ForStmt *For);
  void branch(const clang::IfStmt *If);
  void effects(const clang::Expr *E);
  std::string effectsText(const clang::Expr *E);
  void result(const clang::ReturnStmt *Return);
  bool effectful(const clang::Expr *E) const;
  const clang::CallExpr *soleOpening(const clang::Expr *E) const;

  Program &P;
  PointsTo &Pointers;
  Related &Slice;
  const Plan &Meetings;
  const Function &F;
  clang::PrintingPolicy Policy;
  const clang::LambdaExpr *Expression = nullptr; // the lambda expression whose body the function is
  std::string Text;
  unsigned Depth = 0;
  llvm::DenseSet<const clang::VarDecl *> Mentioned;
  llvm::DenseMap<const Function *, const clang::FunctionDecl *> Called;
  llvm::DenseSet<const Function *> Unseen;
  std::map<std::string, std::string> Grants;
  mutable bool Private = false;
  llvm::DenseSet<const clang::CallExpr *> Waited; // calls whose wait has been printed
  const clang::CallExpr *Unwrapped = nullptr;
  const clang::Expr *Body = nullptr; // the body of a thread that is being printed
  const clang::Expr *Discarded = nullptr; // an expression whose value is not needed
  // A variable, and the text that is printed in its place.
  const clang::VarDecl *Replaced = nullptr;
  std::string Replacement;
};

} // namespace foreread::slicer
