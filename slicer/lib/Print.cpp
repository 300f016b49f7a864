// Expressions of the prefetch thread.
#include "Print.h"

#include "Cxx.h"
#include "Exchange.h"

#include "clang/Basic/CharInfo.h"

namespace foreread::slicer {

using namespace clang;

namespace {

PrintingPolicy policy(const ASTContext &Context) {
  PrintingPolicy Policy(Context.getLangOpts());
  Policy.Bool = Context.getLangOpts().CPlusPlus;
  Policy.SuppressUnwrittenScope = true;
  Policy.AnonymousTagLocations = false;
  Policy.ConstantsAsWritten = true;
  Policy.EntireContentsOfLargeArray = true;
  Policy.Indentation = 4;
  return Policy;
}

// The prefetch library's name for a call.
std::string libraryName(llvm::StringRef Name) {
  Name = plainName(Name);
  return llvm::StringSwitch<std::string>(Name)
      .Cases("fgetc", "getc", "_IO_getc", "getchar", "getc")
      .Case("scanf", "fscanf")
      .Default(Name.str());
}

// Calls that are made unchanged on the prefetch thread's real, read-only descriptors and streams.
bool plainOnDescriptors(llvm::StringRef Name) { return Name == "fstat" || Name == "fileno"; }

} // namespace

Printer::Printer(Program &P, PointsTo &Pointers, Related &Slice, const Plan &Meetings,
                 const Function &F)
    : P(P), Pointers(Pointers), Slice(Slice), Meetings(Meetings), F(F),
      Policy(policy(F.Home->context())) {}

std::string Printer::text(const Expr *E) {
  std::string Result;
  llvm::raw_string_ostream Out(Result);
  const_cast<Expr *>(E)->printPretty(Out, this, Policy);
  return Result;
}

// Prints O_RDONLY rather than 00: a macro of a system header that takes no arguments and whose whole expansion the
// expression is.
bool Printer::systemMacro(const Expr *E, llvm::raw_ostream &Out) {
  if (!E->getBeginLoc().isMacroID() || !E->getEndLoc().isMacroID())
    return false;
  const SourceManager &Sources = F.Home->sources();
  const LangOptions &Language = F.Home->context().getLangOpts();
  SourceLocation Begin, End;
  if (!Lexer::isAtStartOfMacroExpansion(E->getBeginLoc(), Sources, Language, &Begin) ||
      !Lexer::isAtEndOfMacroExpansion(E->getEndLoc(), Sources, Language, &End) || Begin != End)
    return false;
  llvm::StringRef Name =
      Lexer::getSourceText(CharSourceRange::getTokenRange(Begin), Sources, Language);
  const Preprocessor &Macros = F.Home->AST->getPreprocessor();
  const IdentifierInfo *Identifier = Macros.getIdentifierInfo(Name);
  const MacroInfo *Macro = Identifier ? Macros.getMacroInfo(Identifier) : nullptr;
  if (!Macro || !Macro->isObjectLike() || !Sources.isInSystemHeader(Macro->getDefinitionLoc()))
    return false;
  Out << Name;
  return true;
}

// A number in the program's notation: 0x7f, 0.9.
bool Printer::asWritten(const Expr *Literal, llvm::raw_ostream &Out) const {
  const SourceManager &Sources = F.Home->sources();
  llvm::StringRef Token = Lexer::getSourceText(
      CharSourceRange::getTokenRange(Sources.getSpellingLoc(Literal->getBeginLoc())), Sources,
      F.Home->context().getLangOpts());
  if (Token.empty() || (!isDigit(Token.front()) && Token.front() != '.'))
    return false;
  Out << Token;
  return true;
}

// A division of ints by a divisor that is not constant. In computations of file offsets such divisors are sizes of
// bricks, pages or buckets, mostly powers of two, and the division takes most of the slice's time.
bool Printer::division(const BinaryOperator *E, llvm::raw_ostream &Out) {
  bool Quotient = E->getOpcode() == BO_Div;
  const ASTContext &Context = F.Home->context();
  if (!Quotient && E->getOpcode() != BO_Rem)
    return false;
  for (const Expr *Part : {E->getLHS(), E->getRHS()})
    if (!Context.hasSameUnqualifiedType(Part->getType(), Context.IntTy))
      return false;
  if (E->getRHS()->isValueDependent() || E->getRHS()->isEvaluatable(Context))
    return false;
  Out << (Quotient ? "prefetch_quotient(" : "prefetch_remainder(") << text(E->getLHS()) << ", "
      << text(E->getRHS()) << ")";
  return true;
}

// The size of a structure without a name that is declared in place, `sizeof(struct { ... })`: gnulib's assertions
// contain it.
static bool sizeOfUnnamed(const Expr *E, const ASTContext &Context, llvm::raw_ostream &Out) {
  const auto *Size = dyn_cast<UnaryExprOrTypeTraitExpr>(E);
  if (!Size || !Size->isArgumentType())
    return false;
  QualType Type = Context.getBaseElementType(Size->getArgumentType());
  const TagDecl *Tag = Type->getAsTagDecl();
  Expr::EvalResult Value;
  if (!Tag || Tag->getIdentifier() || Tag->getTypedefNameForAnonDecl() || !Size->EvaluateAsInt(Value, Context))
    return false;
  Out << llvm::toString(Value.Val.getInt(), 10) << "UL";
  return true;
}

bool Printer::handledStmt(Stmt *S, llvm::raw_ostream &Out) {
  const auto *E = dyn_cast<Expr>(S);
  if (!E)
    return false;
  if (E != Body && F.Home->cxx())
    if (const Expr *Starts = P.threadOf(E); Starts && Slice.countsThread(*P.thread(Starts).Target)) {
      Out << threadBody(Starts);
      return true;
    }
  if (E != Body && P.givesPointer(E)) {
    Out << givenPointer(E);
    return true;
  }
  if (const auto *Call = dyn_cast<CallExpr>(E)) {
    if (Call == Unwrapped)
      return false;
    if (systemMacro(E, Out))
      return true;
    Out << call(Call);
    return true;
  }
  if (const auto *Ref = dyn_cast<DeclRefExpr>(E)) {
    if (Replaced && Ref->getDecl() == Replaced) {
      Out << Replacement;
      return true;
    }
    if (const auto *Part = dyn_cast<BindingDecl>(Ref->getDecl()))
      Mentioned.insert(cast<VarDecl>(Part->getDecomposedDecl())->getCanonicalDecl());
    if (const auto *Variable = dyn_cast<VarDecl>(Ref->getDecl()))
      Mentioned.insert(Variable->getCanonicalDecl());
    return F.Home->cxx() && handledCxx(E, Out);
  }
  if (isa<IntegerLiteral, CharacterLiteral, FloatingLiteral, ParenExpr, UnaryOperator,
          CStyleCastExpr, ImplicitCastExpr>(E))
    if (systemMacro(E, Out)) {
      return true;
    }
  if (sizeOfUnnamed(E, F.Home->context(), Out))
    return true;
  if (F.Home->cxx() && handledCxx(E, Out))
    return true;
  if (isa<IntegerLiteral, FloatingLiteral, ImaginaryLiteral>(E))
    return asWritten(E, Out);
  if (const auto *Binary = dyn_cast<BinaryOperator>(E); Binary && division(Binary, Out))
    return true;
  if (const auto *Block = dyn_cast<StmtExpr>(E)) {
    std::string Outer;
    std::swap(Outer, Text);
    const CompoundStmt *Body = Block->getSubStmt();
    Depth += 1;
    for (const Stmt *Part : Body->body()) {
      if (const auto *Last = dyn_cast<Expr>(Part); Last && Part == Body->body_back())
        line(text(Last) + ";");
      else
        statement(Part);
    }
    Depth -= 1;
    std::swap(Outer, Text);
    Out << "__extension__({\n" << Outer << std::string(4 * Depth, ' ') << "})";
    return true;
  }
  return false;
}

std::string Printer::argument(const CallExpr *Call, unsigned Index) {
  const Expr *E = Call->getArg(Index);
  if (Slice.passes(Call, Index) && !Meetings.buffers().needless(Call, Index, Pointers.callees(Call).Functions))
    return text(E);
  unsigned Number = Index - firstArgument(Call);
  const FunctionDecl *Callee = directCallee(Call);
  return zero(boundByReference(Callee, Number) ? Callee->getParamDecl(Number)->getType()
                                               : E->getType());
}

bool Printer::declaredHere(const Function &Other) const {
  if (Other.Home == F.Home)
    return true;
  ASTContext &Context = F.Home->context();
  for (const NamedDecl *Found :
       Context.getTranslationUnitDecl()->lookup(&Context.Idents.get(Other.Name)))
    if (isa<FunctionDecl>(Found))
      return true;
  return false;
}

// A call of a function of the program. Through a pointer: of the prefetch version of its target.
std::string Printer::userCall(const CallExpr *Call) {
  auto Passed = [&](const Function &Target, unsigned I) {
    return Meetings.runsAsIs(Target) ? text(Call->getArg(I)) : argument(Call, I);
  };
  auto Arguments = [&](const Function &Target) {
    std::string List = Target.method() && !Target.lambda() ? object(Call) : "";
    for (unsigned I = firstArgument(Call); I < Call->getNumArgs(); ++I)
      List += (List.empty() ? "" : ", ") + Passed(Target, I);
    return "(" + List + ")";
  };
  // The types of the arguments select the instantiation of a generic lambda expression.
  auto Typed = [&](const Function &Target) {
    std::string List;
    for (unsigned I = firstArgument(Call); I < Call->getNumArgs(); ++I) {
      QualType Type = Target.Decl->getParamDecl(I - firstArgument(Call))->getType();
      std::string Given = argument(Call, I);
      List += (List.empty() ? "" : ", ") + (Type->isScalarType() ? "(" + typed(Type, "") + ")(" + Given + ")" : Given);
    }
    return "(" + List + ")";
  };
  if (virtualCallee(Call))
    return virtualCall(Call);
  if (const FunctionDecl *Direct = directCallee(Call)) {
    const Function &Target = *P.function(Direct);
    if (F.Home->cxx() && Meetings.runsAsIs(Target))
      return whole(Target, asItIs(Call));
    if (Target.lambda())
      return text(objectOf(Call)) +
             (operatorOf(Target.method()->getParent()) ? Arguments(Target) : Typed(Target));
    if (!Meetings.runsAsIs(Target))
      Called.insert({&Target, Direct});
    std::string Made = Meetings.nameOf(Target) + Arguments(Target);
    return Meetings.runsAsIs(Target) ? whole(Target, Made) : Made;
  }
  QualType Type = Call->getType();
  // Through a union or a cast, a function may be called with another type. Such a call passes as many arguments as the
  // function has parameters, converted to their types.
  auto Alike = [](QualType Given, QualType Wanted) {
    return Given->isRealType() == Wanted->isRealType() && Given->isPointerType() == Wanted->isPointerType();
  };
  auto Castable = [](QualType Given, QualType Wanted) {
    return Given->isScalarType() && Wanted->isScalarType() &&
           !(Given->isPointerType() && Wanted->isRealFloatingType()) &&
           !(Given->isRealFloatingType() && Wanted->isPointerType());
  };
  auto Fitted = [&](const Function &Target) {
    const FunctionDecl *Decl = Target.Decl;
    unsigned Wants = Decl->getNumParams(), Gets = Call->getNumArgs();
    bool Fits = F.Home->cxx() || (Decl->isVariadic() ? Gets >= Wants : Gets == Wants);
    for (unsigned I = 0; Fits && !F.Home->cxx() && I < Wants; ++I)
      Fits = Alike(Call->getArg(I)->getType(), Decl->getParamDecl(I)->getType());
    std::string List;
    for (unsigned I = 0; !Fits && I < Wants; ++I) {
      QualType Wanted = Decl->getParamDecl(I)->getType();
      bool Given = I < Gets && Castable(Call->getArg(I)->getType(), Wanted);
      List += (I ? ", " : "") + (Given ? "(" + typed(Wanted, "") + ")(" + Passed(Target, I) + ")" : zero(Wanted));
    }
    std::string Made = Meetings.nameOf(Target) + (Fits ? Arguments(Target) : "(" + List + ")");
    if (Meetings.runsAsIs(Target))
      Made = whole(Target, Made);
    if (Decl->getReturnType()->isVoidType() && !Type->isVoidType())
      Made = "(" + Made + ", " + zero(Type) + ")";
    return Made;
  };
  // &* makes a pointer of a function and leaves a pointer unchanged.
  std::string Pointer = text(Call->getCallee());
  std::string Result =
      "__extension__({ __typeof__(&*(" + Pointer + ")) foreread_target = " + Pointer + "; ";
  bool ByPointer = Pointers.callees(Call).Others;
  for (const Function *Target : Pointers.callees(Call).Functions) {
    bool Elsewhere = Plan::elsewhere(*Target, F);
    if (Elsewhere && Meetings.runsAsIs(*Target)) {
      // The function has no name here. The pointer is to this function if it is to none of the others.
      ByPointer = true;
      continue;
    }
    if (!Elsewhere && !declaredHere(*Target))
      Unseen.insert(Target);
    if (!Meetings.runsAsIs(*Target))
      Called.insert({Target, Target->Decl});
    std::string Test = Elsewhere
                           ? Meetings.nameOf(*Target) + "_is((const void *)foreread_target)"
                           : "foreread_target == (__typeof__(foreread_target))" + Target->Name;
    Result += Test + " ? " + Fitted(*Target) + " : ";
  }
  if (ByPointer) {
    std::string List;
    for (unsigned I = 0; I < Call->getNumArgs(); ++I)
      List += (I ? ", " : "") + text(Call->getArg(I));
    Result += "foreread_target(" + List + ")";
  } else if (Type->isVoidType()) {
    Result += "(void)0";
  } else {
    Result += Type->isRecordType() ? zero(Type)
                                   : "(" + Type.getUnqualifiedType().getAsString(Policy) + ")0";
  }
  return Result + "; })";
}

std::string Printer::libraryCall(const CallExpr *Call, const CallSpec &Spec,
                                 llvm::StringRef Prefix) {
  llvm::StringRef Name = plainName(Spec.Name);
  std::vector<std::string> Arguments;
  bool Moves =
      Prefix == "prefetch_" && Spec.Kind == CallKind::Read && Name != "readv" && Name != "preadv";
  for (unsigned I = 0; I < Call->getNumArgs(); ++I)
    if (!Moves || Spec.parameter(I) != 'd')
      Arguments.push_back(text(Call->getArg(I)));
  if (Name == "fread" && Moves)
    std::rotate(Arguments.begin(), Arguments.end() - 1, Arguments.end());
  if (Name == "getchar" || Name == "scanf")
    Arguments.insert(Arguments.begin(), "stdin");
  std::string List;
  for (const std::string &Each : Arguments)
    List += (List.empty() ? "" : ", ") + Each;
  if (Name == "close" && Meetings.sendsDescriptors())
    return "inform_close(" + List + ")";
  return Prefix.str() + libraryName(Spec.Name) + "(" + List + ")";
}

std::string Printer::opening(const CallExpr *Call, const CallSpec &Spec) {
  Meeting Here = Meetings.at(Call);
  if (Here.Channel) {
    std::string Descriptor =
        "inform_open(foreread_receive_fd(" + std::to_string(Here.Channel) + "))";
    if (!Call->getType()->isPointerType())
      return Descriptor;
    return "prefetch_fdopen(" + Descriptor + ", " + text(Call->getArg(1)) + ")";
  }
  std::string Opened = libraryCall(Call, Spec, "prefetch_");
  if (!Here.Point || Waited.contains(Call))
    return Opened;
  return "(foreread_synchronize(" + std::to_string(Here.Point) + ", FOREREAD_WAIT), " + Opened +
         ")";
}

std::string Printer::receive(const CallExpr *Call, const CallSpec &) {
  Exchange Both = exchange(P, F, Call, Meetings.at(Call).Channel, false, Policy,
                           [&](const Expr *E) { return text(E); });
  if (Both.ResultType.empty() && Both.Moves.size() == 1) {
    llvm::StringRef Only = Both.Moves.front();
    if (Only.starts_with("foreread_receive"))
      return Only.drop_back(1).str();
  }
  std::string Result = "__extension__({ ";
  if (!Both.ResultType.empty())
    Result += Both.ResultType + (llvm::StringRef(Both.ResultType).ends_with("*") ? "" : " ") +
              "foreread_result = 0; ";
  for (const std::string &Move : Both.Moves)
    Result += Move + " ";
  return Result + (Both.Result.empty() ? "" : Both.Result + "; ") + "})";
}

// A call with an effect is not made. If it writes to a prefetched file, it still moves the position, and the thread
// waits for the program's call if the file is read back.
std::string Printer::assumed(const CallExpr *Call, const CallSpec &Spec) {
  std::vector<std::string> Parts;
  llvm::StringRef Name = plainName(Spec.Name);
  if (Slice.isEffect(Call) || (Spec.Kind == CallKind::Write && Meetings.at(Call).Point)) {
    if (int Point = Meetings.at(Call).Point)
      Parts.push_back("foreread_synchronize(" + std::to_string(Point) + ", FOREREAD_WAIT)");
    if (Name == "write")
      Parts.push_back("prefetch_lseek(" + text(Call->getArg(0)) + ", " + text(Call->getArg(2)) +
                      ", SEEK_CUR)");
    else if (Name == "fwrite")
      Parts.push_back("prefetch_fseek(" + text(Call->getArg(3)) + ", (long)(" +
                      text(Call->getArg(1)) + ") * (long)(" + text(Call->getArg(2)) +
                      "), SEEK_CUR)");
    else if (Name == "fputc" || Name == "putc")
      Parts.push_back("prefetch_fseek(" + text(Call->getArg(1)) + ", 1, SEEK_CUR)");
  }
  if (Call != Discarded && resultUsed(F, Call) && !Call->getType()->isVoidType()) {
    llvm::StringRef Answer = Spec.Assumed ? Spec.Assumed : "0";
    std::string Value = Answer.str();
    if (Answer.consume_front("#")) {
      unsigned Index = 0;
      Answer.getAsInteger(10, Index);
      Value = Index < Call->getNumArgs() ? "(" + text(Call->getArg(Index)) + ")" : "0";
    }
    if (Spec.Kind == CallKind::Open)
      Value = "1";
    Parts.push_back("(" + Call->getType().getUnqualifiedType().getAsString(Policy) + ")" + Value);
  }
  if (Parts.empty())
    return "(void)0";
  std::string Result = Parts.front();
  for (size_t I = 1; I < Parts.size(); ++I)
    Result += ", " + Parts[I];
  return Parts.size() > 1 ? "(" + Result + ")" : Result;
}

// A call that a function of the program is passed to: the prefetch version is passed if the function has effects.
std::string Printer::handingOver(const CallExpr *Call, const CallSpec &Spec) {
  std::string List;
  for (unsigned I = 0; I < Call->getNumArgs(); ++I) {
    std::vector<Function *> Given;
    if (Spec.parameter(I) == 'c')
      Given = Pointers.functions(Call->getArg(I));
    bool Version =
        Given.size() == 1 && Slice.hasEffects(*Given.front()) && !Meetings.runsAsIs(*Given.front());
    if (Version)
      Called.insert({Given.front(), Given.front()->Decl});
    List += (I ? ", " : "") + (Version ? Meetings.nameOf(*Given.front()) : text(Call->getArg(I)));
  }
  return text(Call->getCallee()) + "(" + List + ")";
}

// A call of a function that runs unchanged.
std::string Printer::whole(const Function &Target, const std::string &Call) const {
  return Meetings.readsInPlace(Target) ? "(prefetch_whole(), " + Call + ")" : Call;
}

// True if the construction of an object reads at the current position of a descriptor or stream.
bool Printer::makesInPlace(const Expr *Init) const {
  const auto *Made = Init ? dyn_cast<CXXConstructExpr>(Init->IgnoreImplicit()) : nullptr;
  const Function *Constructor = Made ? P.function(Made->getConstructor()) : nullptr;
  return Made && (Constructor ? Meetings.readsInPlace(*Constructor) : Meetings.readsInPlace(Made->getConstructor()));
}

std::string Printer::asItIs(const CallExpr *Call) {
  const CallExpr *Outer = Unwrapped;
  Unwrapped = Call;
  std::string Result = text(Call);
  Unwrapped = Outer;
  return Result;
}

std::string Printer::call(const CallExpr *Call) {
  const CallSpec *Spec = P.spec(Call);
  switch (Slice.treatment(Call)) {
  case Treatment::Translate:
    return userCall(Call);
  case Treatment::Prefetch: {
    llvm::StringRef Name = plainName(Spec->Name);
    if (Spec->Kind == CallKind::Open)
      return opening(Call, *Spec);
    if (plainOnDescriptors(Name))
      return asItIs(Call);
    std::string Result = libraryCall(Call, *Spec, Name == "ungetc" ? "fetch_" : "prefetch_");
    if (int Point = Meetings.at(Call).Point)
      return "(foreread_synchronize(" + std::to_string(Point) + ", FOREREAD_WAIT), " + Result + ")";
    return Result;
  }
  case Treatment::Fetch: {
    std::string Made = libraryCall(Call, *Spec, "fetch_");
    if (const VarDecl *Buffer = Meetings.buffers().of(Call, *Spec))
      return "(" + printedName(Buffer) + " ? " + Made + " : " + libraryCall(Call, *Spec, "prefetch_") + ")";
    return Made;
  }
  case Treatment::Receive:
    return receive(Call, *Spec);
  case Treatment::Assume:
    return assumed(Call, *Spec);
  case Treatment::Exit:
    return "prefetch_exit(" +
           (Call->getNumArgs() && !Call->getArg(0)->getType()->isPointerType()
                ? text(Call->getArg(0))
                : std::string("1")) +
           ")";
  case Treatment::Spawn: {
    std::vector<Function *> Targets = Slice.targets(Call);
    if (Targets.size() == 1) {
      bool Version = !Meetings.runsAsIs(*Targets.front());
      if (Version)
        Called.insert({Targets.front(), Targets.front()->Decl});
      return "prefetch_pthread_create(" + text(Call->getArg(0)) + ", " + text(Call->getArg(1)) +
             ", " + (Version ? Meetings.nameOf(*Targets.front()) : text(Call->getArg(2))) + ", " +
             text(Call->getArg(3)) + ")";
    }
    return asItIs(Call);
  }
  case Treatment::Touch: {
    Looked Bytes = looksAt(Call, *Spec);
    std::string Length = text(Bytes.Length);
    if (Bytes.Times)
      Length = "(" + Length + ") * (" + text(Bytes.Times) + ")";
    return "prefetch_touch(" + text(Bytes.Pointer) + ", " + Length + ")";
  }
  case Treatment::Keep:
    if (Spec && (llvm::StringRef(Spec->Name) == "dup" || Meetings.untouched(Call)))
      return libraryCall(Call, *Spec, "prefetch_");
    if (Spec && Spec->Kind == CallKind::Read)
      return "FOREREAD_UNCOUNTED(" + libraryCall(Call, *Spec, "fetch_") + ")";
    if (Spec && !Slice.targets(Call).empty())
      return handingOver(Call, *Spec);
    if (!Spec && Meetings.readsInPlace(directCallee(Call)))
      return "(prefetch_whole(), " + asItIs(Call) + ")";
    return asItIs(Call);
  case Treatment::Drop:
    return asItIs(Call);
  }
  return asItIs(Call);
}

} // namespace foreread::slicer
