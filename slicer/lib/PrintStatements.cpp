// Statements of the prefetch thread: only those that are kept, always in braces.
#include "Cxx.h"
#include "Print.h"

namespace foreread::slicer {

using namespace clang;

void Printer::line(const std::string &What) { Text += std::string(4 * Depth, ' ') + What + "\n"; }

bool Printer::effectful(const Expr *E) const { return E && Slice.keeps(E); }

std::string Printer::declaration() const {
  if (F.Name != "main")
    return declaration(F, F.Decl);
  auto Parameter = [&](unsigned I, const char *Default) {
    return F.Decl->getNumParams() > I && F.Decl->getParamDecl(I)->getIdentifier()
               ? F.Decl->getParamDecl(I)->getNameAsString()
               : std::string(Default);
  };
  return "static void " + Meetings.nameOf(F) + "(int " + Parameter(0, "argc") + ", char **" +
         (otherArguments() ? "foreread_argv" : Parameter(1, "argv")) + ")";
}

// True if the type of main's second parameter is not char **.
bool Printer::otherArguments() const {
  ASTContext &Context = F.Home->context();
  return F.Decl->getNumParams() > 1 && F.Decl->getParamDecl(1)->getIdentifier() &&
         !Context.hasSameUnqualifiedType(F.Decl->getParamDecl(1)->getType(),
                                         Context.getPointerType(Context.getPointerType(Context.CharTy)));
}

// On some machines va_list is an array, and a parameter of that type a pointer to a type without a name.
static QualType parameterType(const ParmVarDecl *Parameter) {
  QualType Written = Parameter->getOriginalType();
  return Written->getAs<TypedefType>() ? Written : Parameter->getType();
}

std::string Printer::parameters(const FunctionDecl *Seen) const {
  const Function *Defined = P.function(Seen);
  if (!Seen->hasPrototype() || (Defined && Defined->LooseCalls))
    return "()";
  std::string List = self(Seen);
  for (unsigned I = 0; I < Seen->getNumParams(); ++I) {
    const ParmVarDecl *Parameter = Seen->getParamDecl(I);
    List += (List.empty() ? "" : ", ") +
            typed(parameterType(Parameter), printedName(Parameter), Seen->getASTContext());
  }
  return "(" + (List.empty() ? "void" : List) + (Seen->isVariadic() ? ", ..." : "") + ")";
}

std::string Printer::declaration(const Function &Other, const FunctionDecl *Seen) const {
  bool Static = Other.Private && !Meetings.exported(Other);
  return (Static ? "static " : "") + typed(Seen->getReturnType(),
                                           Meetings.nameOf(Other) + parameters(Seen),
                                           Seen->getASTContext());
}

std::string Printer::plainDeclaration(const Function &Other) const {
  return typed(Other.Decl->getReturnType(), Other.Name + parameters(Other.Decl));
}

// The head of the definition. Parameters are printed in the old style if they were written so: calls may then still
// pass other arguments.
std::string Printer::head() const {
  if (Expression)
    return lambdaHead();
  if (F.Name == "main" || (F.Decl->hasPrototype() && !F.LooseCalls))
    return declaration();
  std::string Names, Types;
  for (unsigned I = 0; I < F.Decl->getNumParams(); ++I) {
    const ParmVarDecl *Parameter = F.Decl->getParamDecl(I);
    Names += (I ? ", " : "") + Parameter->getNameAsString();
    Types += " " + typed(parameterType(Parameter), Parameter->getNameAsString()) + ";";
  }
  bool Static = F.Private && !Meetings.exported(F);
  return (Static ? "static " : "") +
         typed(F.Decl->getReturnType(), Meetings.nameOf(F) + "(" + Names + ")") + Types;
}

std::string Printer::function(unsigned At) {
  // The printed text decides which variables are declared, and declarations are part of it. Printing is repeated until
  // no more variables are mentioned.
  size_t Before;
  do {
    Before = Mentioned.size();
    Text.clear();
    Waited.clear();
    Depth = At;
    line(head());
    line("{");
    ++Depth;
    if (F.Name == "main" && F.Decl->getNumParams() > 2 &&
        Mentioned.contains(F.Decl->getParamDecl(2)->getCanonicalDecl())) {
      line("extern char **environ;");
      line("char **" + F.Decl->getParamDecl(2)->getNameAsString() + " = environ;");
    }
    if (F.Name == "main" && otherArguments()) {
      const ParmVarDecl *Values = F.Decl->getParamDecl(1);
      line(typed(Values->getType(), Values->getNameAsString()) + " = (" + typed(Values->getType(), "") + ")foreread_argv;");
    }
    turn(F.Decl->getBody());
    // If nothing kept returns a value, nobody needs this one, but C++ requires a return at the end.
    QualType Result = F.Decl->getReturnType();
    const CompoundStmt *Body = blockOf(F.Decl);
    bool Returns =
        !Body->body_empty() && isa<ReturnStmt>(Body->body_back()) && Slice.keeps(Body->body_back());
    if (F.Home->cxx() && F.Name != "main" && !Result->isVoidType() && !Returns)
      line("return " + zero(Result) + ";");
    --Depth;
    line("}");
  } while (Mentioned.size() != Before);
  return Text;
}

// The statements of a body, without its braces.
void Printer::block(const Stmt *S) {
  if (const auto *Body = dyn_cast<CompoundStmt>(S)) {
    for (const Stmt *Part : Body->body())
      statement(Part);
  } else {
    statement(S);
  }
}

// One iteration of a loop, or one call of the function.
void Printer::turn(const Stmt *Body) {
  if (Slice.counts(Body))
    line("prefetch_call();");
  block(Body);
}

std::string Printer::load(const Load &Each) {
  std::string Place = text(Each.Place);
  return "prefetch_load(&" + Place + ", sizeof(" + Place + "))";
}

std::string Printer::effectText(const Expr *E) {
  const Load *Made = Slice.loadMade(E);
  return Made ? load(*Made) : text(E);
}

// Announces the loads of all iterations of a loop, from the addresses of the first two.
void Printer::loads(const Stmt *Loop) {
  auto Grouped = [&](const Expr *E) {
    E = E->IgnoreParenImpCasts();
    return isa<IntegerLiteral, DeclRefExpr>(E) ? text(E) : "(" + text(E) + ")";
  };
  for (const Load *Each : Slice.loadsBefore(Loop)) {
    if (!Each->Over) {
      line(load(*Each) + ";");
      continue;
    }
    const Progression &Over = *Each->Over;
    QualType Type = Over.Index->getType().getUnqualifiedType();
    std::string First = Grouped(Over.First), Bound = Grouped(Over.Bound),
                Step = std::to_string(std::abs(Over.Step));
    if (!F.Home->context().hasSameType(Over.First->IgnoreImpCasts()->getType(), Type))
      First = "(" + typed(Type, "") + ")" + First;
    bool Up = Over.Step > 0, Inclusive = Over.Compare == BO_LE || Over.Compare == BO_GE;
    std::string Count = (Up ? Bound + " - " + First : First + " - " + Bound) +
                        (Inclusive     ? " + " + Step
                         : Step == "1" ? ""
                                       : " + " + Step + " - 1");
    if (Step != "1")
      Count = "(" + Count + ") / " + Step;
    std::optional<uint64_t> Turns = Over.turns(F.Home->context());
    if (Turns)
      Count = std::to_string(*Turns);
    auto Address = [&](const std::string &Index) {
      Replaced = Over.Index;
      Replacement = Index;
      std::string Place = text(Each->Place);
      Replaced = nullptr;
      return "&" + Place;
    };
    std::string Here = Address("(" + First + ")"),
                Next = Address("(" + First + (Up ? " + " : " - ") + Step + ")");
    if (!Turns) {
      line("if (" + First + " " + BinaryOperator::getOpcodeStr(Over.Compare).str() + " " + Bound +
           ") {");
      ++Depth;
    }
    line("prefetch_loads(" + Here + ", " + Next + ", sizeof(" +
         typed(Each->Place->getType().getUnqualifiedType(), "") + "), " + Count + ");");
    if (!Turns) {
      --Depth;
      line("}");
    }
  }
}

void Printer::variable(const VarDecl *Variable) {
  bool Value = Variable->getInit() && (Slice.defines(Variable) || Variable->isStaticLocal());
  // In C++ a variable without a value cannot be const.
  QualType Type =
      Value || !F.Home->cxx() ? Variable->getType() : Variable->getType().getUnqualifiedType();
  const auto *Record = Type->getAsCXXRecordDecl();
  std::string Declared = Record && Record->isLambda()
                             ? "auto " + Variable->getNameAsString()
                             : declared(Variable, Type);
  if (Variable->isStaticLocal())
    Declared = "static " + Declared;
  else if (Variable->hasExternalStorage())
    Declared = "extern " + Declared;
  if (Value)
    Declared += initialisation(Variable);
  if (Value && makesInPlace(Variable->getInit()))
    line("prefetch_whole();");
  line(Declared + ";");
}

void Printer::declare(const DeclStmt *Declared) {
  bool Types = false, Any = false;
  for (const Decl *D : Declared->decls()) {
    Types |= isa<TagDecl>(D);
    const auto *Variable = dyn_cast<VarDecl>(D);
    Any |= !Variable || Mentioned.contains(Variable->getCanonicalDecl());
  }
  if (!Any && !Slice.keeps(Declared))
    return;
  if (Types || (Any && isa<TypeDecl, FunctionDecl>(*Declared->decl_begin()))) {
    // A type that is defined on the spot is printed with the declaration.
    std::string Whole;
    llvm::raw_string_ostream Out(Whole);
    // Clang indents by two spaces.
    PrintingPolicy Here = Policy;
    Here.Indentation = 2;
    const_cast<DeclStmt *>(Declared)->printPretty(Out, this, Here, 2 * Depth);
    Out.flush();
    line(llvm::StringRef(Whole).trim().str());
    return;
  }
  for (const Decl *D : Declared->decls()) {
    const auto *Variable = dyn_cast<VarDecl>(D);
    if (!Variable)
      continue;
    const Expr *Init = Variable->getInit();
    bool Mention = Mentioned.contains(Variable->getCanonicalDecl());
    if (Mention || Slice.defines(Variable)) {
      if (Init && Slice.defines(Variable))
        if (const CallExpr *Opening = soleOpening(Init)) {
          line("foreread_synchronize(" + std::to_string(Meetings.at(Opening).Point) +
               ", FOREREAD_WAIT);");
          Waited.insert(Opening);
        }
      variable(Variable);
    }
    if (Init && effectful(Init) && !Slice.defines(Variable) && !Variable->isStaticLocal())
      effects(Init);
  }
}

// The opening call that an assignment or initialisation consists of, if the prefetch thread waits there; else null.
const CallExpr *Printer::soleOpening(const Expr *E) const {
  E = E->IgnoreParenCasts();
  if (const auto *Binary = dyn_cast<BinaryOperator>(E); Binary && Binary->getOpcode() == BO_Assign)
    E = Binary->getRHS()->IgnoreParenCasts();
  const auto *Call = dyn_cast<CallExpr>(E);
  if (!Call || !P.spec(Call) || P.spec(Call)->Kind != CallKind::Open || !Meetings.at(Call).Point)
    return nullptr;
  return Call;
}

// The kept effects of an expression whose value is not needed, as statements.
void Printer::effects(const Expr *E) {
  if (!effectful(E))
    return;
  if (Slice.isEffect(E)) {
    if (const CallExpr *Opening = soleOpening(E)) {
      line("foreread_synchronize(" + std::to_string(Meetings.at(Opening).Point) +
           ", FOREREAD_WAIT);");
      Waited.insert(Opening);
    }
    Discarded = E;
    line(effectText(E) + ";");
    Discarded = nullptr;
    return;
  }
  auto When = [&](const std::string &Condition, const Expr *Then) {
    line("if (" + Condition + ") {");
    ++Depth;
    effects(Then);
    --Depth;
    line("}");
  };
  if (const auto *Binary = dyn_cast<BinaryOperator>(E); Binary && Binary->isLogicalOp()) {
    if (!effectful(Binary->getRHS()))
      return effects(Binary->getLHS());
    std::string Condition = text(Binary->getLHS());
    return When(Binary->getOpcode() == BO_LAnd ? Condition : "!(" + Condition + ")",
                Binary->getRHS());
  }
  if (const auto *Choice = dyn_cast<ConditionalOperator>(E)) {
    bool True = effectful(Choice->getTrueExpr()), False = effectful(Choice->getFalseExpr());
    if (!True && !False)
      return effects(Choice->getCond());
    std::string Condition = text(Choice->getCond());
    if (!False)
      return When(Condition, Choice->getTrueExpr());
    if (!True)
      return When("!(" + Condition + ")", Choice->getFalseExpr());
    line("if (" + Condition + ") {");
    ++Depth;
    effects(Choice->getTrueExpr());
    --Depth;
    line("} else {");
    ++Depth;
    effects(Choice->getFalseExpr());
    --Depth;
    return line("}");
  }
  if (const auto *Short = dyn_cast<BinaryConditionalOperator>(E)) {
    if (!effectful(Short->getFalseExpr()))
      return effects(Short->getCommon());
    return When("!(" + text(Short->getCommon()) + ")", Short->getFalseExpr());
  }
  if (const auto *Block = dyn_cast<StmtExpr>(E)) {
    line("{");
    ++Depth;
    block(Block->getSubStmt());
    --Depth;
    return line("}");
  }
  for (const Stmt *Child : E->children())
    if (const auto *Part = dyn_cast_or_null<Expr>(Child))
      effects(Part);
}

// The same as one expression, for the increment of a for loop.
std::string Printer::effectsText(const Expr *E) {
  if (!effectful(E))
    return "";
  if (Slice.isEffect(E))
    return effectText(E);
  if (const auto *Binary = dyn_cast<BinaryOperator>(E); Binary && Binary->getOpcode() == BO_Comma) {
    std::string Left = effectsText(Binary->getLHS()), Right = effectsText(Binary->getRHS());
    return Left + (Left.empty() || Right.empty() ? "" : ", ") + Right;
  }
  std::string Outer;
  std::swap(Outer, Text);
  unsigned Was = Depth;
  Depth = 0;
  effects(E);
  Depth = Was;
  std::swap(Outer, Text);
  std::string Flat = Outer;
  std::replace(Flat.begin(), Flat.end(), '\n', ' ');
  return "(void)__extension__({ " + Flat + "0; })";
}

void Printer::result(const ReturnStmt *Return) {
  const Expr *Value = Return->getRetValue();
  bool Main = F.Name == "main";
  if (Value && !Main && !Value->getType()->isVoidType() && Slice.related(P.result(F)))
    return line("return " + text(Value) + ";");
  if (Value)
    effects(Value);
  if (Main || F.Decl->getReturnType()->isVoidType())
    return line("return;");
  line("return " + zero(F.Decl->getReturnType()) + ";");
}

void Printer::loop(const ForStmt *For) {
  const auto *Declared = dyn_cast_or_null<DeclStmt>(For->getInit());
  bool Body = Slice.keeps(For->getBody()) || effectful(For->getInc()) || effectful(For->getCond());
  if (!Body && !(For->getInit() && Slice.keeps(For->getInit())))
    return;
  std::string Init;
  bool Braces = false;
  if (Declared) {
    const auto *Only =
        Declared->isSingleDecl() ? dyn_cast<VarDecl>(Declared->getSingleDecl()) : nullptr;
    if (Only && Body && !(Only->getInit() && soleOpening(Only->getInit())) &&
        (Mentioned.contains(Only->getCanonicalDecl()) || Slice.defines(Only)) &&
        !(Only->getInit() && effectful(Only->getInit()) && !Slice.defines(Only))) {
      Init = typed(Only->getType(), Only->getNameAsString());
      if (Only->getInit() && Slice.defines(Only))
        Init += initialisation(Only);
    } else {
      Braces = true;
      line("{");
      ++Depth;
      declare(Declared);
    }
  } else if (const auto *E = dyn_cast_or_null<Expr>(For->getInit())) {
    if (Body)
      Init = effectsText(E);
    else
      effects(E);
  }
  if (Body) {
    line("for (" + Init + ";" + (For->getCond() ? " " + text(For->getCond()) : "") + ";" +
         (effectful(For->getInc()) ? " " + effectsText(For->getInc()) : "") + ") {");
    ++Depth;
    turn(For->getBody());
    --Depth;
    line("}");
  }
  if (Braces) {
    --Depth;
    line("}");
  }
}

void Printer::branch(const IfStmt *If) {
  bool Then = Slice.keeps(If->getThen()), Else = If->getElse() && Slice.keeps(If->getElse());
  if (!Then && !Else)
    return effects(If->getCond());
  std::string Condition = text(If->getCond());
  line("if (" + (Then ? Condition : "!(" + Condition + ")") + ") {");
  ++Depth;
  block(Then ? If->getThen() : If->getElse());
  --Depth;
  if (Then && Else) {
    line("} else {");
    ++Depth;
    block(If->getElse());
    --Depth;
  }
  line("}");
}

// A label of a switch is indented by one level less. If nothing kept follows, it labels an empty statement.
void Printer::label(const std::string &Name, const Stmt *Labelled) {
  bool Something = isa<SwitchCase>(Labelled) || (Slice.keeps(Labelled) && !isa<DeclStmt>(Labelled));
  Depth -= Depth > 0;
  line(Name + (Something ? ":" : ":;"));
  ++Depth;
  statement(Labelled);
}

void Printer::statement(const Stmt *S) {
  if (!S)
    return;
  // Declarations are printed if their variables are mentioned, kept or not.
  if (const auto *Declared = dyn_cast<DeclStmt>(S))
    return declare(Declared);
  if (!Slice.keeps(S) && !isa<SwitchCase>(S))
    return;
  if (const auto *E = dyn_cast<Expr>(S))
    return effects(E);
  loads(S);
  switch (S->getStmtClass()) {
  case Stmt::CompoundStmtClass:
    line("{");
    ++Depth;
    block(S);
    --Depth;
    return line("}");
  case Stmt::IfStmtClass: {
    const auto *If = cast<IfStmt>(S);
    bool Scope = If->getInit() || If->getConditionVariable();
    if (Scope) {
      line("{");
      ++Depth;
      statement(If->getInit());
      statement(If->getConditionVariableDeclStmt());
    }
    branch(If);
    if (Scope) {
      --Depth;
      line("}");
    }
    return;
  }
  case Stmt::CXXForRangeStmtClass: {
    const auto *For = cast<CXXForRangeStmt>(S);
    const VarDecl *Each = For->getLoopVariable();
    if (!Slice.keeps(For->getBody()))
      return statement(For->getRangeStmt());
    line("for (" + declared(Each, Each->getType()) + " : " +
         text(For->getRangeInit()) + ") {");
    ++Depth;
    block(For->getBody());
    --Depth;
    return line("}");
  }
  case Stmt::CXXTryStmtClass:
    return tryBlock(cast<CXXTryStmt>(S));
  case Stmt::SwitchStmtClass: {
    const auto *Switch = cast<SwitchStmt>(S);
    if (!Slice.keeps(Switch->getBody()))
      return effects(Switch->getCond());
    line("switch (" + text(Switch->getCond()) + ") {");
    ++Depth;
    block(Switch->getBody());
    --Depth;
    return line("}");
  }
  case Stmt::WhileStmtClass: {
    const auto *While = cast<WhileStmt>(S);
    line("while (" + text(While->getCond()) + ") {");
    ++Depth;
    turn(While->getBody());
    --Depth;
    return line("}");
  }
  case Stmt::DoStmtClass: {
    const auto *Do = cast<DoStmt>(S);
    line("do {");
    ++Depth;
    turn(Do->getBody());
    --Depth;
    return line("} while (" + text(Do->getCond()) + ");");
  }
  case Stmt::ForStmtClass:
    return loop(cast<ForStmt>(S));
  case Stmt::CaseStmtClass: {
    const auto *Case = cast<CaseStmt>(S);
    return label("case " + text(Case->getLHS()) +
                     (Case->getRHS() ? " ... " + text(Case->getRHS()) : ""),
                 Case->getSubStmt());
  }
  case Stmt::DefaultStmtClass:
    return label("default", cast<DefaultStmt>(S)->getSubStmt());
  case Stmt::LabelStmtClass:
    line(std::string(cast<LabelStmt>(S)->getName()) + ":;");
    return statement(cast<LabelStmt>(S)->getSubStmt());
  case Stmt::ReturnStmtClass:
    return result(cast<ReturnStmt>(S));
  case Stmt::BreakStmtClass:
    return line("break;");
  case Stmt::ContinueStmtClass:
    return line("continue;");
  case Stmt::GotoStmtClass:
    return line("goto " + cast<GotoStmt>(S)->getLabel()->getNameAsString() + ";");
  case Stmt::AttributedStmtClass:
    return statement(cast<AttributedStmt>(S)->getSubStmt());
  default:
    return;
  }
}

} // namespace foreread::slicer
