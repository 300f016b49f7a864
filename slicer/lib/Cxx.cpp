#include "Cxx.h"

#include <functional>

#include "Walk.h"

namespace foreread::slicer {

using namespace clang;

const Expr *objectOf(const CallExpr *Call) {
  if (const auto *Member = dyn_cast<CXXMemberCallExpr>(Call))
    return Member->getMethodDecl() ? Member->getImplicitObjectArgument() : nullptr;
  return firstArgument(Call) ? Call->getArg(0) : nullptr;
}

unsigned firstArgument(const CallExpr *Call) {
  const auto *Method = dyn_cast_or_null<CXXMethodDecl>(Call->getDirectCallee());
  return isa<CXXOperatorCallExpr>(Call) && Method && Method->isInstance();
}

llvm::SmallVector<const Expr *, 6> operandsOf(const CallExpr *Call) {
  llvm::SmallVector<const Expr *, 6> All;
  if (const Expr *Object = objectOf(Call))
    All.push_back(Object);
  for (unsigned I = firstArgument(Call); I < Call->getNumArgs(); ++I)
    All.push_back(Call->getArg(I));
  return All;
}

bool boundByReference(const FunctionDecl *Callee, unsigned Parameter) {
  return Callee && Parameter < Callee->getNumParams() &&
         Callee->getParamDecl(Parameter)->getType()->isReferenceType();
}

bool mayWrite(const CallExpr *Call, const Expr *Operand) {
  const FunctionDecl *Callee = Call->getDirectCallee();
  if (Operand == objectOf(Call))
    return !cast<CXXMethodDecl>(Callee)->isConst();
  QualType Type = Operand->getType();
  for (unsigned I = firstArgument(Call); I < Call->getNumArgs(); ++I)
    if (Call->getArg(I) == Operand && boundByReference(Callee, I - firstArgument(Call)))
      return !Callee->getParamDecl(I - firstArgument(Call))
                  ->getType()
                  .getNonReferenceType()
                  .isConstQualified();
  // An iterator or a closure may lead to other memory; a pointer to const does not change it.
  return Type->isRecordType() ||
         (Type->isPointerType() && !Type->getPointeeType().isConstQualified());
}

const Expr *givenBack(const CallExpr *Call) {
  auto Operands = operandsOf(Call);
  const FunctionDecl *Callee = Call->getDirectCallee();
  QualType Result = Callee ? Callee->getReturnType() : QualType();
  if (Operands.empty() || Result.isNull() || !Result->isLValueReferenceType())
    return nullptr;
  Result = Result->getPointeeType();
  const Expr *First = Operands.front();
  QualType Type =
      First->getType()->isPointerType() ? First->getType()->getPointeeType() : First->getType();
  return !Result.isConstQualified() && Result->isRecordType() &&
                 Callee->getASTContext().hasSameUnqualifiedType(Result, Type)
             ? First
             : nullptr;
}

const CXXMethodDecl *virtualCallee(const CallExpr *Call) {
  const auto *Method = dyn_cast_or_null<CXXMethodDecl>(Call->getDirectCallee());
  if (!Method || !Method->isVirtual() || Method->hasAttr<FinalAttr>() ||
      Method->getParent()->hasAttr<FinalAttr>())
    return nullptr;
  // Base::f() is not a virtual call.
  const auto *Named = dyn_cast<MemberExpr>(Call->getCallee()->IgnoreParens());
  return Named && Named->hasQualifier() ? nullptr : Method;
}

const CXXMethodDecl *firstOf(const CXXMethodDecl *Method) {
  while (Method->size_overridden_methods() == 1)
    Method = *Method->begin_overridden_methods();
  return Method->size_overridden_methods() == 0 ? Method : nullptr;
}

bool derives(const CXXRecordDecl *Class, const CXXRecordDecl *From) {
  std::string Name = From->getQualifiedNameAsString();
  return !Class->forallBases([&](const CXXRecordDecl *Base) {
    return Base->getQualifiedNameAsString() != Name;
  });
}

std::vector<Function *> seenBy(const Unit &U, const std::vector<Function *> &Functions) {
  std::vector<Function *> Result;
  for (Function *F : Functions) {
    bool Twice = F->Home != &U && llvm::any_of(Functions, [&](const Function *Other) {
                   return Other->Home == &U && Other->Decl->isExternallyVisible() && Other->Symbol == F->Symbol;
                 });
    if (!Twice)
      Result.push_back(F);
  }
  return Result;
}

const Expr *copied(const Expr *E) {
  const auto *Made = dyn_cast<CXXConstructExpr>(E);
  return Made && Made->getConstructor()->isCopyOrMoveConstructor() &&
                 Made->getConstructor()->isTrivial()
             ? Made->getArg(0)
             : nullptr;
}

bool assignsPlainly(const CallExpr *Call) {
  const auto *Method = dyn_cast_or_null<CXXMethodDecl>(Call->getDirectCallee());
  return isa<CXXOperatorCallExpr>(Call) && Method && Method->isTrivial() &&
         (Method->isCopyAssignmentOperator() || Method->isMoveAssignmentOperator());
}

const Expr *behind(const Expr *E) {
  if (const auto *Ref = dyn_cast<DeclRefExpr>(E))
    if (const auto *Part = dyn_cast<BindingDecl>(Ref->getDecl()))
      return Part->getBinding();
  if (const auto *Default = dyn_cast<CXXDefaultArgExpr>(E))
    return Default->getExpr();
  if (const auto *Default = dyn_cast<CXXDefaultInitExpr>(E))
    return Default->getExpr();
  if (const auto *Full = dyn_cast<FullExpr>(E))
    return Full->getSubExpr();
  if (const auto *Ended = dyn_cast<CXXBindTemporaryExpr>(E))
    return Ended->getSubExpr();
  return nullptr;
}

llvm::SmallVector<const VarDecl *, 4> holding(const VarDecl *Variable) {
  llvm::SmallVector<const VarDecl *, 4> All;
  if (const auto *Apart = dyn_cast<DecompositionDecl>(Variable))
    for (const BindingDecl *Part : Apart->bindings())
      if (const VarDecl *Each = Part->getHoldingVar())
        All.push_back(Each);
  return All;
}

bool isOpaque(const RecordDecl *Record) {
  return isa<CXXRecordDecl>(Record) && Record->getEnclosingNamespaceContext()->isNamespace() &&
         Record->getASTContext().getSourceManager().isInSystemHeader(Record->getLocation());
}

QualType signatureOf(QualType Holder) {
  const auto *Made = dyn_cast_or_null<ClassTemplateSpecializationDecl>(Holder->getAsCXXRecordDecl());
  return Made && Made->isInStdNamespace() && Made->getName() == "function" && Made->getTemplateArgs().size() == 1
             ? Made->getTemplateArgs()[0].getAsType().getCanonicalType()
             : QualType();
}

std::string shapeOf(QualType Callee, const ASTContext &Context) {
  Callee = Callee.getNonReferenceType();
  std::string Of;
  if (const auto *Member = Callee->getAs<MemberPointerType>()) {
    Of = QualType(Member->getClass(), 0).getCanonicalType().getAsString() + "::";
    Callee = Member->getPointeeType();
  } else if (Callee->isPointerType()) {
    Callee = Callee->getPointeeType();
  }
  if (!Callee->isFunctionProtoType())
    return "";
  return Of + const_cast<ASTContext &>(Context).getFunctionTypeWithExceptionSpec(Callee.getCanonicalType(), EST_None)
                  .getCanonicalType().getAsString();
}

namespace {

bool isThread(QualType Type) {
  const auto *Record = Type.getNonReferenceType()->getAsCXXRecordDecl();
  return Record && Record->isInStdNamespace() && Record->getIdentifier() &&
         (Record->getName() == "thread" || Record->getName() == "jthread");
}

} // namespace

bool startsAnswering(const Expr *E) {
  const auto *Call = dyn_cast<CallExpr>(E);
  const FunctionDecl *Callee = Call ? Call->getDirectCallee() : nullptr;
  if (!Callee || !Callee->isInStdNamespace() || !Callee->getIdentifier() || Callee->getName() != "async" ||
      Call->getNumArgs() < 2)
    return false;
  // With another policy the function may run where its result is asked for.
  const auto *Policy = dyn_cast<DeclRefExpr>(Call->getArg(0)->IgnoreUnlessSpelledInSource());
  return Policy && isa<EnumConstantDecl>(Policy->getDecl()) && Policy->getDecl()->getName() == "async";
}

const Expr *givenToThread(const Expr *E, const Expr *&Second) {
  auto Of = [&](auto *Call) -> const Expr * {
    Second = Call->getNumArgs() > 1 ? Call->getArg(1) : nullptr;
    return Call->getNumArgs() > 0 ? Call->getArg(0) : nullptr;
  };
  if (const auto *Made = dyn_cast<CXXConstructExpr>(E))
    return isThread(Made->getType()) && !Made->getConstructor()->isCopyOrMoveConstructor() ? Of(Made) : nullptr;
  if (startsAnswering(E)) {
    const auto *Call = cast<CallExpr>(E);
    Second = Call->getNumArgs() > 2 ? Call->getArg(2) : nullptr;
    return Call->getArg(1);
  }
  const auto *Call = dyn_cast<CXXMemberCallExpr>(E);
  const CXXMethodDecl *Method = Call ? Call->getMethodDecl() : nullptr;
  if (!Method || !Method->getIdentifier() || Method->getName() != "emplace_back")
    return nullptr;
  const auto *Holder = dyn_cast<ClassTemplateSpecializationDecl>(Method->getParent());
  return Holder && Holder->isInStdNamespace() && Holder->getTemplateArgs().size() > 0 &&
                 Holder->getTemplateArgs()[0].getKind() == TemplateArgument::Type &&
                 isThread(Holder->getTemplateArgs()[0].getAsType())
             ? Of(Call)
             : nullptr;
}

bool runsCode(QualType Type) {
  const auto *Record = Type->getBaseElementTypeUnsafe()->getAsCXXRecordDecl();
  return Record && Record->hasDefinition() &&
         (Record->isLambda() || !Record->hasTrivialDestructor() || !Record->hasTrivialDefaultConstructor() ||
          Record->hasNonTrivialCopyConstructor());
}

const CXXDestructorDecl *destructorOf(QualType Type) {
  const auto *Record = Type->getBaseElementTypeUnsafe()->getAsCXXRecordDecl();
  return Record && Record->hasDefinition() ? Record->getDestructor() : nullptr;
}

bool isPrivate(const Decl *D) {
  return D->getAccess() == AS_private || D->getAccess() == AS_protected;
}

std::optional<llvm::APSInt> constant(const DeclRefExpr *Ref) {
  if (const auto *Named = dyn_cast<EnumConstantDecl>(Ref->getDecl());
      Named && !cast<EnumDecl>(Named->getDeclContext())->getIdentifier())
    return Named->getInitVal();
  const auto *Variable = dyn_cast<VarDecl>(Ref->getDecl());
  if (!Variable || !Variable->getType()->isIntegerType() ||
      !Variable->isUsableInConstantExpressions(Variable->getASTContext()))
    return std::nullopt;
  const APValue *Value = Variable->evaluateValue();
  return Value && Value->isInt() ? std::optional(Value->getInt()) : std::nullopt;
}

bool namesPrivate(QualType Type) {
  return !allOf(Type, [](const clang::Type *Each) {
    const auto *Tag = dyn_cast<TagType>(Each);
    const auto *Named = dyn_cast<TypedefType>(Each);
    return !(Tag && isPrivate(Tag->getDecl())) && !(Named && isPrivate(Named->getDecl()));
  });
}

bool hasOwnAddress(const FieldDecl *Field) {
  // A pointer to a mutable member cannot change it in a const object.
  return !Field->isBitField() && !Field->isMutable() && !Field->getType()->isReferenceType() && Field->getIdentifier() &&
         !Field->getParent()->isAnonymousStructOrUnion() && !namesPrivate(Field->getType()) &&
         !namesPrivate(QualType(Field->getParent()->getTypeForDecl(), 0));
}

namespace {

// Uses of a closure in the function around it.
struct Closure : Walk {
  explicit Closure(const CXXRecordDecl *Type) : Type(Type) {}

  const CXXRecordDecl *Type;
  const LambdaExpr *Made = nullptr;
  bool Given = false; // as an argument, where it is created
  bool Kept = false;  // in a variable
  llvm::DenseSet<const DeclRefExpr *> Called;
  llvm::SmallVector<const DeclRefExpr *, 8> Named;

  bool visitStmt(const Stmt *S) override {
    if (const auto *E = dyn_cast<LambdaExpr>(S)) {
      if (E->getLambdaClass() == Type)
        Made = E;
      // The body of another closure that captures this one is checked separately.
      for (const Expr *Captured : E->capture_inits())
        if (Captured)
          allow(copied(Captured) ? copied(Captured) : Captured);
    } else if (const auto *Call = dyn_cast<CallExpr>(S)) {
      // The closure is called, or passed to a function.
      for (const Expr *Argument : Call->arguments())
        give(Argument);
    } else if (const auto *Object = dyn_cast<CXXConstructExpr>(S)) {
      const Expr *Second = nullptr;
      if (const Expr *Body = givenToThread(Object, Second))
        give(Body);
      else if (!signatureOf(Object->getType()).isNull() && Object->getNumArgs() == 1)
        give(Object->getArg(0));
    } else if (const auto *Ref = dyn_cast<DeclRefExpr>(S)) {
      if (Ref->getType()->getAsCXXRecordDecl() == Type)
        Named.push_back(Ref);
    }
    return true;
  }
  bool visitDecl(const Decl *D) override {
    const auto *Variable = dyn_cast<VarDecl>(D);
    Kept |= Variable && Variable->getType()->getAsCXXRecordDecl() == Type && Variable->getInit() &&
            isa<LambdaExpr>(Variable->getInit()->IgnoreUnlessSpelledInSource());
    return true;
  }
  void give(const Expr *E) {
    const Expr *Written = E->IgnoreUnlessSpelledInSource();
    Given |= isa<LambdaExpr>(Written) && cast<LambdaExpr>(Written)->getLambdaClass() == Type;
    allow(Written);
  }
  void allow(const Expr *E) {
    if (const auto *Ref = dyn_cast<DeclRefExpr>(E->IgnoreParenImpCasts()))
      Called.insert(Ref);
  }
};

// True if the prefetch thread can create the closure, too: the captures neither define names nor make copies of their
// own.
bool capturesPlainly(const LambdaExpr *Made) {
  return llvm::all_of(Made->captures(), [](const LambdaCapture &Each) {
    return Each.getCaptureKind() == LCK_This ||
           (Each.capturesVariable() && isa<VarDecl>(Each.getCapturedVar()) &&
            !Each.getCapturedVar()->isInitCapture());
  });
}

} // namespace

llvm::SmallVector<const FunctionDecl *, 2> operatorsOf(const CXXRecordDecl *Closure) {
  if (!Closure->isGenericLambda())
    return {Closure->getLambdaCallOperator()};
  llvm::SmallVector<const FunctionDecl *, 2> All;
  for (const FunctionDecl *Made : Closure->getDependentLambdaCallOperator()->specializations())
    if (Made->getBody())
      All.push_back(Made);
  return All;
}

const FunctionDecl *operatorOf(const CXXRecordDecl *Closure) {
  auto All = operatorsOf(Closure);
  return All.size() == 1 ? All.front() : nullptr;
}

bool onlyCalled(const CXXRecordDecl *Type) {
  const auto *Around = dyn_cast<FunctionDecl>(Type->getDeclContext());
  size_t Operators = operatorsOf(Type).size();
  if (!Around || !Around->getBody() || !Operators)
    return false;
  Closure Uses(Type);
  Uses.walk(Around->getBody());
  // Each instantiation would have its own copy of the captured values that a mutable closure changes.
  if (Uses.Made && Uses.Made->isMutable() && Operators > 1)
    return false;
  bool Only = Uses.Made && (Uses.Given || Uses.Kept) && capturesPlainly(Uses.Made);
  for (const DeclRefExpr *Ref : Uses.Named)
    Only &= Uses.Called.contains(Ref);
  return Only;
}

bool standsAlone(const LambdaExpr *Made) {
  auto ChangesNothing = [](const Stmt *S) {
    if (const auto *Binary = dyn_cast<BinaryOperator>(S))
      return !Binary->isAssignmentOp();
    if (const auto *Unary = dyn_cast<UnaryOperator>(S))
      return !Unary->isIncrementDecrementOp();
    if (const auto *Call = dyn_cast<CallExpr>(S))
      return Call->getDirectCallee() && llvm::none_of(operandsOf(Call), [&](const Expr *Each) {
               return mayWrite(Call, Each);
             });
    return !isa<DeclStmt, LambdaExpr, CXXThisExpr>(S);
  };
  return !Made->isGenericLambda() && capturesPlainly(Made) && allOf(Made->getBody(), ChangesNothing);
}

std::string printedName(const VarDecl *Variable) {
  std::string Name = Variable->getNameAsString();
  const auto *Of = isa<ParmVarDecl>(Variable) ? dyn_cast<FunctionDecl>(Variable->getDeclContext()) : nullptr;
  if (!Of || Name.empty())
    return Name;
  unsigned All = 0, Number = 0;
  for (const ParmVarDecl *Each : Of->parameters())
    if (Each->getName() == Variable->getName()) {
      ++All;
      if (Each == Variable)
        Number = All;
    }
  return All > 1 ? "foreread_" + Name + "_" + std::to_string(Number) : Name;
}

const CompoundStmt *blockOf(const FunctionDecl *F) {
  const auto *Try = dyn_cast<CXXTryStmt>(F->getBody());
  return Try ? Try->getTryBlock() : dyn_cast<CompoundStmt>(F->getBody());
}

bool canThrow(const CXXThrowExpr *E) {
  return !E->getSubExpr() || allOf(E->getSubExpr(), [](const Stmt *S) {
    const auto *Part = dyn_cast<Expr>(S);
    return !isa<LambdaExpr>(S) && (!Part || notCarried(Part).empty());
  });
}

namespace {

bool anyLocal(const TemplateArgumentList &For);

// True for a type that is local to a function or is a lambda expression's, and for types made with one.
bool isLocal(QualType Type) {
  return !allOf(Type.getCanonicalType(), [](const clang::Type *Each) {
    const auto *Tag = dyn_cast<TagType>(Each);
    const auto *Made = Tag ? dyn_cast<ClassTemplateSpecializationDecl>(Tag->getDecl()) : nullptr;
    return !Tag || (!Tag->getDecl()->getParentFunctionOrMethod() && !(Made && anyLocal(Made->getTemplateArgs())));
  });
}

bool anyLocal(const TemplateArgumentList &For) {
  std::function<bool(const TemplateArgument &)> Is = [&](const TemplateArgument &Each) {
    if (Each.getKind() == TemplateArgument::Pack)
      return llvm::any_of(Each.pack_elements(), Is);
    return Each.getKind() == TemplateArgument::Type && isLocal(Each.getAsType());
  };
  return llvm::any_of(For.asArray(), Is);
}

// True for an instantiation with such a type.
bool madeForLocal(const FunctionDecl *F) {
  const auto *Method = dyn_cast<CXXMethodDecl>(F);
  const TemplateArgumentList *For = F->getTemplateSpecializationArgs();
  return (For && anyLocal(*For)) ||
         (Method && isLocal(QualType(Method->getParent()->getTypeForDecl(), 0)));
}

} // namespace

// True if the body still contains an unexpanded pack, as a generic lambda expression may.
static bool namesPack(const FunctionDecl *F) {
  return F->isTemplateInstantiation() && !allOf(F->getBody(), [](const Stmt *S) {
    return !isa<PackExpansionExpr, FunctionParmPackExpr, SubstNonTypeTemplateParmPackExpr>(S);
  });
}

std::string notCarried(const FunctionDecl *F) {
  if (namesPack(F))
    return "it is made from a template that takes any number of arguments, and names them together";
  const auto *Closure = dyn_cast<CXXRecordDecl>(F->getDeclContext());
  bool Generic = Closure && Closure->isLambda();
  if (F->isTemplateInstantiation() && !Generic && madeForLocal(F))
    return "it is made from a template for a type that is known in one function only";
  if (isa<CXXConstructorDecl>(F))
    return "it is a constructor";
  if (isa<CXXDestructorDecl>(F))
    return "it is a destructor";
  if (const auto *Method = dyn_cast<CXXMethodDecl>(F)) {
    const CXXRecordDecl *Of = Method->getParent();
    if (Of->isLambda() && !onlyCalled(Of))
      return "it is a lambda expression that is not only called";
    if (Of->isLocalClass() && !Of->isLambda())
      return "its class is known in one function only";
    if (Method->isInstance() && Method->getRefQualifier() != RQ_None)
      return "it has a ref-qualifier";
  }
  if (isa<CoroutineBodyStmt>(F->getBody()))
    return "it is a coroutine";
  const auto *Result = F->getReturnType()->getAsCXXRecordDecl();
  if (Result && !Result->hasDefaultConstructor())
    return "it returns an object without a default constructor";
  return "";
}

namespace {

// True if the call reads a stream of the C++ library that may be standard input.
bool readsStream(const CallExpr *Call) {
  for (const Expr *Operand : operandsOf(Call)) {
    // file >> a >> b reads from file.
    const Expr *Root = Operand->IgnoreParenImpCasts();
    while (const auto *Inner = dyn_cast<CallExpr>(Root)) {
      const Expr *Back = givenBack(Inner);
      if (!Back)
        break;
      Root = Back->IgnoreParenImpCasts();
    }
    const auto *Record = Root->getType()->getAsCXXRecordDecl();
    if (Record && Record->isInStdNamespace() && Record->getIdentifier() &&
        (Record->getName() == "basic_istream" || Record->getName() == "basic_iostream"))
      return true;
  }
  return false;
}

} // namespace

std::string notCarried(const Expr *E) {
  if (isa<CoawaitExpr, CoyieldExpr>(E))
    return "it is a coroutine";
  if (const auto *Call = dyn_cast<CallExpr>(E)) {
    if (isa<CXXMemberCallExpr>(Call) && !Call->getDirectCallee() &&
        !isa<CXXPseudoDestructorExpr>(Call->getCallee()->IgnoreParens()))
      return "it calls through a pointer to a member";
    if (readsStream(Call))
      return "a stream of the C++ library decides where it reads";
    return "";
  }
  return "";
}

} // namespace foreread::slicer
