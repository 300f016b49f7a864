// C++ text for use outside all namespaces and classes. Names and types carry their namespaces; this is the parameter
// self; private members are reached through a pointer that the class grants. Other private names need a compiler that
// does not check access.
#include "clang/AST/QualTypeNames.h"

#include "Cxx.h"
#include "Print.h"
#include "Walk.h"

namespace foreread::slicer {

using namespace clang;

// True if the type contains a template with an expression as an argument. Clang prints that expression as written,
// without namespaces.
static bool madeWithNames(QualType Type) {
  return !allOf(Type, [](const clang::Type *Each) {
    const auto *Made = dyn_cast<TemplateSpecializationType>(Each);
    return !Made || llvm::none_of(Made->template_arguments(), [](const TemplateArgument &Argument) {
             return Argument.getKind() == TemplateArgument::Expression;
           });
  });
}

std::string Printer::typed(QualType Type, const std::string &Name, const ASTContext &In) const {
  // The namespace belongs to the type of the array's elements.
  if (const auto *Array = dyn_cast<ConstantArrayType>(Type.IgnoreParens().getTypePtr()); Array && In.getLangOpts().CPlusPlus)
    return typed(In.getQualifiedType(Array->getElementType(), Type.getQualifiers()),
                 (llvm::StringRef(Name).starts_with("*") ? "(" + Name + ")" : Name) + "[" +
                     llvm::toString(Array->getSize(), 10, false) + "]",
                 In);
  if (In.getLangOpts().CPlusPlus) {
    // The types behind auto, decltype and template parameters.
    bool Deduced = Type->getContainedDeducedType() || isa<DecltypeType, TypeOfExprType>(Type) ||
                   F.Decl->getTemplateInstantiationPattern() || madeWithNames(Type);
    Type = Deduced ? Type.getCanonicalType() : TypeName::getFullyQualifiedType(Type, In);
  }
  Private |= In.getLangOpts().CPlusPlus && slicer::namesPrivate(Type);
  std::string Result = Name;
  Type.getAsStringInternal(Result, Policy);
  return Result;
}

std::string Printer::zero(QualType Type) const {
  std::string Name = typed(Type.getUnqualifiedType(), "");
  if (!F.Home->cxx())
    return Type->isRecordType() ? "(" + Name + "){0}" : "0";
  if (Type->isReferenceType())
    return "*(" + typed(Type.getNonReferenceType(), "*") + ")0";
  return Type->isRecordType() ? Name + "()" : Type->isEnumeralType() ? "(" + Name + ")0" : "0";
}

// A variable's type and name; auto [a, b] as written.
std::string Printer::declared(const VarDecl *Variable, QualType Type) const {
  const auto *Apart = dyn_cast<DecompositionDecl>(Variable);
  if (!Apart)
    return typed(Type, Variable->getNameAsString());
  std::string Names;
  for (const BindingDecl *Part : Apart->bindings())
    Names += (Names.empty() ? "" : ", ") + Part->getNameAsString();
  return std::string(Type.getNonReferenceType().isConstQualified() ? "const auto " : "auto ") +
         (Type->isLValueReferenceType() ? "&" : Type->isReferenceType() ? "&&" : "") + "[" + Names + "]";
}

// A pointer. Of an overloaded ->, Clang prints only the object.
std::string Printer::pointer(const Expr *E) {
  const auto *Arrow = dyn_cast<CXXOperatorCallExpr>(E->IgnoreParenImpCasts());
  return text(E) + (Arrow && Arrow->getOperator() == OO_Arrow ? ".operator->()" : "");
}

// The object argument of a member function's call.
std::string Printer::object(const CallExpr *Call) {
  const Expr *Object = objectOf(Call);
  if (!Slice.passesObject(Call))
    return "0";
  if (Object->getType()->isPointerType())
    return pointer(Object);
  const Expr *Plain = Object->IgnoreParenImpCasts();
  if (!Plain->isLValue())
    return "prefetch_address(" + text(Object) + ")";
  bool Simple = isa<DeclRefExpr, MemberExpr, ArraySubscriptExpr>(Plain);
  return Simple ? "&" + text(Object) : "&(" + text(Object) + ")";
}

// A virtual call: the function of the object's class, or of its nearest base class that has one.
std::string Printer::virtualCall(const CallExpr *Call) {
  PointsTo::Callees Callees = Pointers.callees(Call);
  auto Class = [](const Function *Of) { return cast<CXXMethodDecl>(Of->Decl)->getParent(); };
  auto Nearer = [&](const Function *One, const Function *Other) {
    return derives(Class(One), Class(Other));
  };
  std::vector<const Function *> Targets;
  for (const Function *Target : seenBy(*F.Home, Callees.Functions))
    Targets.insert(llvm::find_if(Targets, [&](auto *Each) { return Nearer(Target, Each); }), Target);
  std::string Result = "__extension__({ auto *foreread_object = " + object(Call) + "; ";
  std::string List;
  for (unsigned I = firstArgument(Call); I < Call->getNumArgs(); ++I)
    List += ", " + argument(Call, I);
  const CXXMethodDecl *Named = virtualCallee(Call);
  std::string AsItIs = "foreread_object->" + Named->getNameAsString() + "(" +
                       (List.empty() ? "" : List.substr(2)) + ")";
  for (const Function *Target : Targets) {
    std::string Self = "dynamic_cast<" +
                       typed(cast<CXXMethodDecl>(Target->Decl)->getThisType(), "") +
                       ">(foreread_object)";
    bool Version = !Meetings.runsAsIs(*Target);
    const FunctionDecl *Seen = Target->Decl;
    if (Target->Home != F.Home) {
      // The class has no name here: its unit is asked.
      Seen = firstOf(Named);
      std::string First = "(" + typed(firstOf(Named)->getThisType(), "") + ")";
      Self = First + Meetings.nameOf(*Target) + "_is(" + First + "foreread_object)";
    }
    if (Version)
      Called.insert({Target, Seen});
    Result += Self + " ? " +
              (Version ? Meetings.nameOf(*Target) + "(" + Self + List + ")" : AsItIs) + " : ";
  }
  QualType Type = Named->getReturnType();
  return Result + (Callees.Others ? AsItIs : Type->isVoidType() ? "(void)0" : zero(Type)) + "; })";
}

// The function that asks whether a pointer is to this function; for a virtual function, whether an object has it, and
// the address of the object as this function's class.
std::string Printer::asked(bool Declared) const {
  const CXXMethodDecl *Method = F.method();
  std::string Head = (Method ? "void *" : "int ") + Meetings.nameOf(F) + "_is(const void *pointer)";
  if (Declared)
    return Head;
  if (!Method)
    return Head + "\n{\n    return pointer == (const void *)" + address() + ";\n}\n";
  auto Pointer = [&](const CXXMethodDecl *To) {
    return typed(F.Home->context().getPointerType(QualType(To->getParent()->getTypeForDecl(), 0)), "");
  };
  return Head + "\n{\n    return dynamic_cast<" + Pointer(Method) + ">((" + Pointer(firstOf(Method)) + ")pointer);\n}\n";
}

std::string Printer::self(const FunctionDecl *Seen) const {
  const auto *Method = dyn_cast<CXXMethodDecl>(Seen);
  return Method && Method->isInstance() && !Method->getParent()->isLambda()
             ? typed(Method->getThisType(), "self", Seen->getASTContext())
             : "";
}

std::string Printer::address() const {
  // Of several functions with one name, the one with this type.
  QualType Type = F.Home->context().getPointerType(F.Decl->getType());
  return (F.Home->cxx() ? "(" + typed(Type, "") + ")" : "") + F.Name;
}

// A private member, through a pointer to it. The explicit instantiation of a template may name the member, since access
// is not checked there ([temp.spec]/6).
std::string Printer::granted(const MemberExpr *Member, const FieldDecl *Field) {
  QualType Class(Field->getParent()->getTypeForDecl(), 0);
  std::string Tag = "foreread_" + Program::qualified(Field);
  for (size_t Scope; (Scope = Tag.find("::")) != std::string::npos;)
    Tag.replace(Scope, 2, "_");
  for (char &Each : Tag)
    Each = isAsciiIdentifierContinue(Each) ? Each : '_';
  std::string Type = typed(Field->getType(), "(" + typed(Class, "") + "::*type)");
  Grants[Tag] = "struct " + Tag + " { typedef " + Type + "; friend type foreread_private(" + Tag +
                "); };\ntemplate struct foreread_grant<" + Tag + ", &" + Program::qualified(Field) +
                ">;\n";
  return "(" + text(Member->getBase()) + (Member->isArrow() ? "->*" : ".*") + "foreread_private(" +
         Tag + "()))";
}

// The captures of a lambda expression, of the explicit ones only those that are mentioned, and its parameters.
std::string Printer::lambdaHead() const {
  std::vector<std::string> Captured;
  if (Expression->getCaptureDefault() != LCD_None)
    Captured.push_back(Expression->getCaptureDefault() == LCD_ByRef ? "&" : "=");
  for (const LambdaCapture &Each : Expression->explicit_captures())
    if (Each.capturesThis())
      Captured.push_back(Expression->getCaptureDefault() == LCD_None ? "self" : "");
    else if (const ValueDecl *Variable = Each.getCapturedVar();
             Mentioned.contains(cast<VarDecl>(Variable)->getCanonicalDecl()))
      Captured.push_back((Each.getCaptureKind() == LCK_ByRef ? "&" : "") +
                         printedName(cast<VarDecl>(Variable)));
  std::string List;
  for (const std::string &Each : Captured)
    List += (List.empty() || Each.empty() ? "" : ", ") + Each;
  return "[" + List + "]" + parameters(F.Decl) + (Expression->isMutable() ? " mutable" : "") +
         " -> " + typed(F.Decl->getReturnType(), "");
}

// A lambda expression, printed in its place, so that it captures the same variables. Its body is sliced or left
// unchanged. For a generic one, all its instantiations.
std::string Printer::lambda(const LambdaExpr *Made) {
  std::string All;
  auto Operators = operatorsOf(Made->getLambdaClass());
  for (const FunctionDecl *Each : Operators)
    All += (All.empty() ? "" : ", ") + lambda(Made, *P.function(Each));
  return Operators.size() > 1 ? "prefetch_overloads(" + All + ")" : All;
}

std::string Printer::lambda(const LambdaExpr *Made, const Function &Inner) {
  Printer Body(P, Pointers, Slice, Meetings, Inner);
  Body.Expression = Made;
  std::string Result;
  if (Inner.WholeBecause.empty()) {
    Result = Body.function(Depth);
  } else {
    llvm::raw_string_ostream Out(Result);
    // Clang indents by two spaces.
    PrintingPolicy Here = Policy;
    Here.Indentation = 2;
    Made->getCompoundStmtBody()->printPretty(Out, &Body, Here, 2 * Depth);
    Result = Body.head() + "\n" + Out.str();
  }
  Mentioned.insert(Body.Mentioned.begin(), Body.Mentioned.end());
  Called.insert(Body.Called.begin(), Body.Called.end());
  Unseen.insert(Body.Unseen.begin(), Body.Unseen.end());
  Grants.insert(Body.Grants.begin(), Body.Grants.end());
  Private |= Body.Private;
  return llvm::StringRef(Result).trim().str();
}

void Printer::tryBlock(const CXXTryStmt *Try) {
  if (!Slice.catches())
    return statement(Try->getTryBlock());
  line("try {");
  ++Depth;
  block(Try->getTryBlock());
  --Depth;
  for (unsigned I = 0; I < Try->getNumHandlers(); ++I) {
    const VarDecl *Caught = Try->getHandler(I)->getExceptionDecl();
    line("} catch (" + (Caught ? typed(Caught->getType(), Caught->getNameAsString()) : "...") + ") {");
    ++Depth;
    block(Try->getHandler(I)->getHandlerBlock());
    --Depth;
  }
  line("}");
}

// The function that is passed to a thread. Its calls are counted with those of the program's thread.
std::string Printer::threadBody(const Expr *Starts) {
  const Expr *Given = P.thread(Starts).Body;
  const Function &Run = *P.thread(Starts).Target;
  bool Version = !Run.lambda() && !Meetings.runsAsIs(Run);
  if (Version)
    Called.insert({&Run, Run.Decl});
  const Expr *Outer = Body;
  Body = Given;
  std::string Wrapper = startsAnswering(Starts) ? "foreread_async_body(" : "foreread_body(";
  std::string Result = Wrapper + (Version ? Meetings.nameOf(Run) : text(Given)) + ")";
  Body = Outer;
  return Result;
}

// A pointer that the library will call through: to the prefetch version of its target.
std::string Printer::givenPointer(const Expr *E) {
  const Expr *Outer = Body;
  Body = E;
  std::string Pointer = text(E), Choice;
  Body = Outer;
  for (const Function *Target : Pointers.functions(E)) {
    if (!Slice.translated(*Target) || Meetings.runsAsIs(*Target) || Target->GivenAsIs)
      continue;
    Called.insert({Target, Target->Decl});
    Choice += "foreread_target == (decltype(foreread_target))" + Target->Name + " ? (decltype(foreread_target))" +
              Meetings.nameOf(*Target) + " : ";
  }
  return Choice.empty() ? Pointer
                        : "__extension__({ auto foreread_target = " + Pointer + "; " + Choice + "foreread_target; })";
}

bool Printer::handledCxx(const Expr *E, llvm::raw_ostream &Out) {
  auto Arguments = [&](const CXXConstructExpr *Made) {
    std::string List;
    for (const Expr *Argument : Made->arguments())
      if (!isa<CXXDefaultArgExpr>(Argument))
        List += (List.empty() ? "" : ", ") + text(Argument);
    return Made->isListInitialization() ? "{" + List + "}" : "(" + List + ")";
  };
  if (const auto *Made = dyn_cast<CXXConstructExpr>(E))
    Private |= isPrivate(Made->getConstructor());
  if (isa<CXXThisExpr>(E)) {
    Out << "self";
  } else if (const auto *Made = dyn_cast<LambdaExpr>(E)) {
    Out << lambda(Made);
  } else if (const auto *Ref = dyn_cast<DeclRefExpr>(E)) {
    if (const Function *Given = P.given(Ref); Given && Slice.translated(*Given) && !Meetings.runsAsIs(*Given)) {
      Called.insert({Given, cast<FunctionDecl>(Ref->getDecl())});
      Out << Meetings.nameOf(*Given);
      return true;
    }
    // An enumerator keeps its type unless it is converted to a number.
    if (isPrivate(Ref->getDecl()) && constant(Ref) && !isa<EnumConstantDecl>(Ref->getDecl())) {
      Out << llvm::toString(*constant(Ref), 10);
      return true;
    }
    Private |= isPrivate(Ref->getDecl());
    if (const auto *Parameter = dyn_cast<ParmVarDecl>(Ref->getDecl())) {
      Out << printedName(Parameter);
      return true;
    }
    if (Ref->hasExplicitTemplateArgs() || Ref->getDecl()->getParentFunctionOrMethod())
      return false;
    Out << Program::qualified(Ref->getDecl());
  } else if (const auto *Cast = dyn_cast<ImplicitCastExpr>(E)) {
    const auto *Ref = dyn_cast<DeclRefExpr>(Cast->getSubExpr());
    if (Cast->getCastKind() != CK_IntegralCast || !Ref || !isa<EnumConstantDecl>(Ref->getDecl()) ||
        !isPrivate(Ref->getDecl()) || !constant(Ref))
      return false;
    Out << llvm::toString(*constant(Ref), 10);
  } else if (const auto *Member = dyn_cast<MemberExpr>(E)) {
    const auto *Field = dyn_cast<FieldDecl>(Member->getMemberDecl());
    if (!Field || !isPrivate(Field) || !hasOwnAddress(Field)) {
      Private |= isPrivate(Member->getMemberDecl());
      return false;
    }
    Out << granted(Member, Field);
  } else if (const auto *Default = dyn_cast<CXXDefaultArgExpr>(E)) {
    Out << text(Default->getExpr());
  } else if (const auto *Throw = dyn_cast<CXXThrowExpr>(E)) {
    if (!Slice.throws(Throw))
      Out << "prefetch_exit(1)";
    else
      Out << (Throw->getSubExpr() ? "throw " + text(Throw->getSubExpr()) : std::string("throw"));
  } else if (const auto *Cast = dyn_cast<CXXNamedCastExpr>(E)) {
    Out << Cast->getCastName() << '<' << typed(Cast->getTypeAsWritten(), "") << ">("
        << text(Cast->getSubExpr()) << ')';
  } else if (const auto *Cast = dyn_cast<CStyleCastExpr>(E)) {
    Out << '(' << typed(Cast->getTypeAsWritten(), "") << ')' << text(Cast->getSubExpr());
  } else if (const auto *Cast = dyn_cast<CXXFunctionalCastExpr>(E)) {
    bool Braces = Cast->isListInitialization();
    std::string Inner = text(Cast->getSubExpr());
    Out << typed(Cast->getTypeAsWritten(), "")
        << (Braces && llvm::StringRef(Inner).starts_with("{") ? Inner : "(" + Inner + ")");
  } else if (const auto *Value = dyn_cast<CXXScalarValueInitExpr>(E)) {
    Out << typed(Value->getType(), "") << "()";
  } else if (const auto *Made = dyn_cast<CXXTemporaryObjectExpr>(E)) {
    std::string Text = typed(Made->getType(), "") + Arguments(Made);
    Out << (makesInPlace(Made) ? "(prefetch_whole(), " + Text + ")" : Text);
  } else if (const auto *Size = dyn_cast<UnaryExprOrTypeTraitExpr>(E);
             Size && Size->isArgumentType() && Size->getKind() == UETT_SizeOf) {
    Out << "sizeof(" << typed(Size->getArgumentType(), "") << ')';
  } else if (const auto *Size = dyn_cast<SizeOfPackExpr>(E)) {
    Out << Size->getPackLength() << "UL";
  } else if (const auto *New = dyn_cast<CXXNewExpr>(E); New && New->getNumPlacementArgs() == 0) {
    std::string Count = New->isArray() && *New->getArraySize()
                            ? "[" + text(*New->getArraySize()) + "]"
                            : std::string();
    const Expr *Init = New->getInitializer();
    bool Whole = makesInPlace(New->getConstructExpr());
    Out << (Whole ? "(prefetch_whole(), new " : "new ") << typed(New->getAllocatedType(), Count);
    if (const auto *Made = dyn_cast_or_null<CXXConstructExpr>(Init))
      Out << Arguments(Made);
    else if (isa_and_nonnull<InitListExpr>(Init))
      Out << text(Init);
    else if (isa_and_nonnull<ImplicitValueInitExpr>(Init))
      Out << "()";
    else if (Init)
      Out << (isa<ParenListExpr>(Init) ? text(Init) : "(" + text(Init) + ")");
    Out << (Whole ? ")" : "");
  } else {
    return false;
  }
  return true;
}

// A variable's initialisation, in the form in which it was written.
std::string Printer::initialisation(const VarDecl *Variable) {
  const Expr *Init = Variable->getInit();
  std::string Value = text(Init);
  if (Variable->getInitStyle() == VarDecl::CInit)
    return " = " + Value;
  if (llvm::StringRef(Value).starts_with("{"))
    return Value;
  const auto *Made = dyn_cast<CXXConstructExpr>(Init->IgnoreImplicit());
  return Made && Value.empty() ? "" : "(" + Value + ")";
}

} // namespace foreread::slicer
