#include "Emit.h"

#include <map>
#include <optional>
#include <set>

#include "clang/Basic/CharInfo.h"

#include "Cxx.h"
#include "Edits.h"
#include "Exchange.h"
#include "Print.h"

namespace foreread::slicer {

using namespace clang;

namespace {

class Computation {
public:
  Computation(const Unit &U, const Program &P, const Related &Slice, const Plan &Meetings,
              Edits &Into)
      : U(U), P(P), Slice(Slice), Meetings(Meetings), Into(Into),
        Policy(U.context().getLangOpts()) {
    Policy.Bool = U.cxx();
  }

  void function(const Function &F) {
    Into.beginFunction(F.Shared);
    if (F.Name == "main")
      create(F);
    count(F.Decl->getBody());
    for (const auto &[Part, Outer] : F.Parents)
      count(Part);
    for (const Expr *Made : F.Makes)
      wrapBody(Made);
    for (const CallExpr *Call : F.Calls) {
      wrapBody(Call);
      if (Slice.treatment(Call) == Treatment::Spawn)
        spawn(Call);
      Meeting Here = Meetings.at(Call);
      // Instantiations of one template share one text.
      if ((Here.Counted || Here.Point || Here.Channel) && Met.insert(Call->getBeginLoc()).second)
        meet(F, Call, Here);
    }
  }

  // Stops counting inside a function and its callees.
  void pause(const Function &F) {
    Into.beginFunction(F.Shared);
    TextRange Brace = *afterBrace(U, blockOf(F.Decl));
    // Instantiations of one template share one text.
    if (!Paused.insert({Brace.File, Brace.Begin}).second)
      return;
    Counts = true;
    Into.after(Brace, " struct foreread_counter *foreread_paused __attribute__((__cleanup__(foreread_resume))) = "
                      "foreread_pause();");
  }

  // The declarations that the inserted calls need, on one line.
  std::string declarations() const {
    std::string Result;
    for (const std::string &Each : Declared)
      Result += (Result.empty() ? "" : " ") + Each;
    return Result;
  }

private:
  void need(const char *Declaration) {
    Declared.insert((U.cxx() ? "extern \"C\" " : "") + std::string(Declaration));
  }

  // Counts for loads: the iterations of a loop, or the calls of a function.
  void count(const Stmt *Body) {
    if (!Slice.counts(Body))
      return;
    Counts = true;
    if (const auto *Block = dyn_cast<CompoundStmt>(Body))
      Into.after(*afterBrace(U, Block), " foreread_call();");
    else
      Into.around(statementText(U, Body), "{ foreread_call(); ", " }");
  }

  void create(const Function &F) {
    const CompoundStmt *Body = blockOf(F.Decl);
    std::string Count = "0", Values = "0";
    // A parameter without a name is not used.
    auto Named = [&](unsigned I) {
      return I < F.Decl->getNumParams() && F.Decl->getParamDecl(I)->getIdentifier();
    };
    if (Named(0))
      Count = F.Decl->getParamDecl(0)->getNameAsString();
    if (Named(1)) {
      Values = "(char **)" + F.Decl->getParamDecl(1)->getNameAsString();
      if (U.context().hasSameUnqualifiedType(
              F.Decl->getParamDecl(1)->getType(),
              U.context().getPointerType(U.context().getPointerType(U.context().CharTy))))
        Values = F.Decl->getParamDecl(1)->getNameAsString();
    }
    need("void foreread_create_prefetch_thread(void (*)(int, char **), int, char **);");
    Prototype = "static void " + Meetings.nameOf(F) + "(int, char **);";
    Declared.insert(Prototype);
    std::string Asked;
    // Without a name the number of arguments is not accessible.
    std::optional<Paths> Read = Meetings.paths();
    if (Read && (!Read->Arguments || (Named(0) && Named(1)))) {
      need("int foreread_may_wait(int, char **, const char *);");
      Asked = "if (foreread_may_wait(" + (Read->Arguments ? Count + ", " + Values : "0, 0") + ", " +
              list(Read->Constants) + ")) ";
    }
    Into.after(*afterBrace(U, Body),
               " " + Asked + "foreread_create_prefetch_thread(" + Meetings.nameOf(F) + ", " + Count + ", " +
                   Values + ");");
  }

  // One string literal; each path ends with its own zero byte.
  static std::string list(const std::vector<std::string> &Paths) {
    std::string Result;
    for (const std::string &Each : Paths) {
      Result += '"';
      for (unsigned char Byte : Each)
        if (llvm::isAlnum(Byte) || llvm::StringRef("/._-+, ").contains(Byte))
          Result += Byte;
        else
          Result += {'\\', char('0' + Byte / 64), char('0' + Byte / 8 % 8), char('0' + Byte % 8)};
      Result += "\\0\" ";
    }
    return Result + "\"\"";
  }

  // Wraps the function that is passed to a thread of the C++ library.
  void wrapBody(const Expr *Starts) {
    Program::Thread Started = P.thread(Starts);
    if (!Started.Target || !Slice.countsThread(*Started.Target) || !Met.insert(Started.Body->getBeginLoc()).second)
      return;
    Counts = true;
    Into.around(textOf(U, Started.Body), startsAnswering(Starts) ? "foreread_async_body(" : "foreread_body(", ")");
  }

  void spawn(const CallExpr *Call) {
    TextRange Callee = textOf(U, Call->getCallee());
    if (!Callee.Valid)
      return;
    // pthread_create's types are unknown at the top of the unit: C calls a function without a prototype, C++ one
    // declared under another name.
    Into.replace(Callee, U.cxx() ? "foreread_spawn" : "foreread_pthread_create");
    need(U.cxx() ? "int foreread_spawn(...) __asm__(\"foreread_pthread_create\");"
                 : "int foreread_pthread_create();");
  }

  std::string plain(const Expr *E) const {
    std::string Text;
    llvm::raw_string_ostream Out(Text);
    const_cast<Expr *>(E)->printPretty(Out, nullptr, Policy);
    return Text;
  }

  void meet(const Function &F, const CallExpr *Call, Meeting Here) {
    const CallSpec &Spec = *P.spec(Call);
    std::vector<std::string> Then;
    std::string ResultType, Result;
    bool NeedsResult = false;
    if (Here.Counted) {
      Counts = true;
      Then.push_back(readsCharacter(Spec.Name) ? "foreread_character();" : "foreread_call();");
    }
    if (Here.Point) {
      need("void foreread_synchronize(int, int);");
      Then.push_back("foreread_synchronize(" + std::to_string(Here.Point) + ", FOREREAD_SIGNAL);");
      Signals = true;
    }
    if (Here.Channel && Spec.Kind == CallKind::Open) {
      need("void foreread_send_fd(int, int);");
      bool Stream = Call->getType()->isPointerType();
      const Expr *Target = assigned(F, Call);
      std::string Descriptor = Target ? plain(Target) : "foreread_result";
      NeedsResult = !Target;
      ResultType = Call->getType().getAsString(Policy);
      Result = "foreread_result";
      Then.push_back(
          "foreread_send_fd(" + std::to_string(Here.Channel) + ", " +
          (Stream ? "(" + Descriptor + ") ? fileno(" + Descriptor + ") : -1" : Descriptor) + ");");
    } else if (Here.Channel) {
      need("void foreread_send(int, const void *, __SIZE_TYPE__);");
      Exchange Both =
          exchange(P, F, Call, Here.Channel, true, Policy, [&](const Expr *E) { return plain(E); });
      Then.insert(Then.end(), Both.Moves.begin(), Both.Moves.end());
      ResultType = Both.ResultType;
      Result = Both.Result;
      NeedsResult = !ResultType.empty();
    }
    if (!editable(F, Call))
      return beforeMacro(expansionAround(F, Call));
    if (NeedsResult || !asStatements(F, Call, Then))
      wrap(Call, Then, ResultType, Result);
  }

  // A read in the middle of a macro is counted where the macro begins, because the macro's text after it may leave.
  void beforeMacro(const Stmt *Expansion) {
    TextRange Range = textOf(U, Expansion);
    if (isa<Expr>(Expansion))
      Into.around(Range, "(foreread_ahead(), ", ")");
    else
      Into.before(Range, "foreread_ahead(); ");
  }

  // The variable that an opening call's result is assigned to, if the statement consists of this assignment; else null.
  const Expr *assigned(const Function &F, const CallExpr *Call) const {
    const Stmt *Up = F.Parents.lookup(Call);
    while (Up && isa<ParenExpr, CastExpr>(Up))
      Up = F.Parents.lookup(Up);
    const auto *Assignment = dyn_cast_or_null<BinaryOperator>(Up);
    if (!Assignment || Assignment->getOpcode() != BO_Assign || hasSideEffects(Assignment->getLHS()))
      return nullptr;
    const Stmt *Outer = F.Parents.lookup(Assignment);
    return isa_and_nonnull<CompoundStmt>(Outer) ? Assignment->getLHS() : nullptr;
  }

  // Adds the statements after the statement that makes the call, if each execution of it makes the call exactly once.
  // The statement's text must end with its own semicolon.
  bool asStatements(const Function &F, const CallExpr *Call, const std::vector<std::string> &Then) {
    const Stmt *At = Call, *Up = F.Parents.lookup(Call);
    for (; Up && isa<Expr>(Up); At = Up, Up = F.Parents.lookup(Up)) {
      if (isa<AbstractConditionalOperator, StmtExpr>(Up))
        return false;
      if (const auto *Binary = dyn_cast<BinaryOperator>(Up); Binary && Binary->isLogicalOp())
        return false;
    }
    if (!Up)
      return false;
    if (isa<DeclStmt>(Up)) {
      At = Up;
      Up = F.Parents.lookup(Up);
      if (!isa_and_nonnull<CompoundStmt>(Up))
        return false;
    } else if (isa<ReturnStmt, GCCAsmStmt>(Up)) {
      return false;
    }
    bool Loop = isa<ForStmt, WhileStmt, DoStmt, IfStmt>(Up);
    if (Loop && !isBody(Up, At))
      return false;
    if (isa<SwitchStmt>(Up) || (!Loop && !isa<CompoundStmt, SwitchCase, LabelStmt>(Up)))
      return false;
    // The last expression of ({ … }) is its value.
    if (isa<CompoundStmt>(Up) && isa_and_nonnull<StmtExpr>(F.Parents.lookup(Up)) &&
        cast<CompoundStmt>(Up)->body_back() == At)
      return false;
    TextRange Range = statementText(U, At);
    if (!Range.Valid || U.sources().getBufferData(Range.File)[Range.End - 1] != ';')
      return false;
    std::string Line;
    for (const std::string &Each : Then)
      Line += " " + Each;
    if (isa<CompoundStmt>(Up))
      Into.after(Range, Line);
    else
      Into.around(Range, "{ ", Line + " }");
    return true;
  }

  static bool isBody(const Stmt *Outer, const Stmt *Part) {
    if (const auto *For = dyn_cast<ForStmt>(Outer))
      return For->getBody() == Part;
    if (const auto *While = dyn_cast<WhileStmt>(Outer))
      return While->getBody() == Part;
    if (const auto *Do = dyn_cast<DoStmt>(Outer))
      return Do->getBody() == Part;
    const auto *If = cast<IfStmt>(Outer);
    return If->getThen() == Part || If->getElse() == Part;
  }

  void wrap(const CallExpr *Call, const std::vector<std::string> &Then, std::string Type,
            const std::string &Result) {
    TextRange Range = textOf(U, Call);
    bool Void = Call->getType()->isVoidType();
    if (Type.empty() && !Void)
      Type = Call->getType().getUnqualifiedType().getAsString(Policy);
    std::string Before = "(__extension__({ ";
    if (!Void)
      Before += Type + (llvm::StringRef(Type).ends_with("*") ? "" : " ") + "foreread_result = ";
    std::string After = ";";
    for (const std::string &Each : Then)
      After += " " + Each;
    After +=
        Void ? " }))" : " " + (Result.empty() ? std::string("foreread_result") : Result) + "; }))";
    Into.around(Range, Before, After);
  }

  const Unit &U;
  const Program &P;
  const Related &Slice;
  const Plan &Meetings;
  Edits &Into;
  PrintingPolicy Policy;
  std::set<std::string> Declared;
  std::set<SourceLocation> Met;
  std::set<std::pair<FileID, unsigned>> Paused;
  std::string Prototype;

public:
  bool Signals = false, Counts = false;
};

// The insertions for a unit's own functions.
struct Changed {
  Changed(const Unit &U, const Program &P, const Related &Slice, const Plan &Meetings)
      : Changes(U), Original(U, P, Slice, Meetings, Changes) {
    for (auto &F : P.Functions)
      if (F->Home == &U && F->Pauses)
        Original.pause(*F);
      else if (F->Home == &U && (Slice.translated(*F) || F->CountsItself))
        Original.function(*F);
  }

  Edits Changes;
  Computation Original;
};

// #undef of the program's macros whose names the prefetch functions use in another meaning. The prefetch functions are
// the unit's last text. Other macros may occur in text that is printed as written, in types that are defined on the
// spot.
std::string withoutMacros(const Unit &U, llvm::StringRef Functions) {
  const Preprocessor &Macros = U.AST->getPreprocessor();
  std::set<std::string> Names;
  for (size_t At = 0; At < Functions.size();) {
    size_t End = At;
    while (End < Functions.size() && isAsciiIdentifierContinue(Functions[End]))
      ++End;
    if (End > At)
      Names.insert(Functions.slice(At, End).str());
    At = End + (End == At);
  }
  std::string Result;
  for (const std::string &Name : Names) {
    const IdentifierInfo *Identifier = Macros.getIdentifierInfo(Name);
    const MacroInfo *Macro = Identifier ? Macros.getMacroInfo(Identifier) : nullptr;
    bool Itself = Macro && llvm::any_of(Macro->tokens(), [&](const Token &Part) {
                    return Part.is(tok::identifier) && Part.getIdentifierInfo() == Identifier;
                  });
    if (Macro && (Macro->isFunctionLike() || Itself) && !Macro->isBuiltinMacro() && !U.sources().isInSystemHeader(Macro->getDefinitionLoc()) &&
        !U.sources().isWrittenInBuiltinFile(Macro->getDefinitionLoc()))
      Result += "#undef " + Name + "\n";
  }
  return Result;
}

std::optional<UnitText> print(const Unit &U, Changed &Now, Program &P, PointsTo &Pointers, Related &Slice,
                              const Plan &Meetings) {
  UnitText Whole;
  std::string Functions;
  std::vector<std::string> Prototypes;
  std::map<std::string, std::string> Grants;
  // Units in C and units in C++ call each other's functions.
  const std::string Linkage = U.cxx() ? "extern \"C\" " : "";
  llvm::DenseMap<const Function *, const FunctionDecl *> Needed;
  for (auto &F : P.Functions) {
    if (F->Home != &U || !Slice.translated(*F))
      continue;
    // A lambda expression is printed with the function around it.
    if (Meetings.runsAsIs(*F) || F->lambda())
      continue;
    Printer Print(P, Pointers, Slice, Meetings, *F);
    Functions += "\n" + Print.function();
    Needed[F.get()] = F->Decl;
    Grants.insert(Print.grants().begin(), Print.grants().end());
    Whole.NamesPrivate |= Print.namesPrivate();
    for (const Function *Other : Print.unseen())
      Prototypes.push_back(Print.plainDeclaration(*Other) + ";\n");
    for (auto &[Other, Seen] : Print.called())
      Needed.insert({Other, Seen});
    if (Meetings.exported(*F))
      Functions += "\n" + Linkage + Print.asked(false);
  }
  if (Now.Changes.empty() && Functions.empty())
    return std::nullopt;

  Whole.Headers = Now.Changes.headers();
  std::string &Result = Whole.Text;
  std::string Text = Now.Original.declarations();
  if (Now.Original.Signals)
    Text += " enum { FOREREAD_SIGNAL = 1 };";
  // Only the counter's declarations: no system header may precede the program's first line.
  if (Now.Original.Counts)
    Result =
        "#define FOREREAD_CALL_ONLY\n#include \"foreread_preexec.h\"\n#undef FOREREAD_CALL_ONLY\n";
  if (!Text.empty())
    Result += Text + "\n";
  if (!Result.empty())
    Result += "#line 1\n";
  Result += Now.Changes.apply();
  if (Functions.empty())
    return Whole;
  if (!llvm::StringRef(Result).ends_with("\n"))
    Result += "\n";
  Result += "\n/* The prefetch thread. */\n#include \"foreread_preexec.h\"\n\n";
  if (!Grants.empty()) {
    Result +=
        "/* Private members, named where access is not checked: in explicit instantiations. */\n"
        "namespace {\n"
        "template <typename Tag, typename Tag::type Member> struct foreread_grant {\n"
        "    friend typename Tag::type foreread_private(Tag) { return Member; }\n};\n";
    for (auto &[Name, Each] : Grants)
      Result += Each;
    Result += "}\n\n";
  }
  for (auto &[F, Seen] : Needed) {
    if (Meetings.runsAsIs(*F))
      continue;
    Printer Print(P, Pointers, Slice, Meetings, *F);
    std::string Declared = F->Home == &U ? Print.declaration() : Print.declaration(*F, Seen);
    Prototypes.push_back((llvm::StringRef(Declared).starts_with("static ") ? "" : Linkage) +
                         Declared + ";\n");
    if (Meetings.exported(*F) && F->Home != &U)
      Prototypes.push_back(Linkage + Print.asked(true) + ";\n");
    Whole.NamesPrivate |= Print.namesPrivate();
  }
  if (Whole.NamesPrivate)
    Result += "/* Names what is private to classes: for a compiler with -fno-access-control. */\n";
  llvm::sort(Prototypes);
  Prototypes.erase(std::unique(Prototypes.begin(), Prototypes.end()), Prototypes.end());
  std::string Last;
  for (const std::string &Each : Prototypes)
    Last += Each;
  Last += Functions;
  Result += withoutMacros(U, Last) + Last;
  return Whole;
}

} // namespace

std::vector<std::optional<UnitText>> emit(Program &P, PointsTo &Pointers, Related &Slice, const Plan &Meetings) {
  std::vector<std::unique_ptr<Changed>> Units;
  for (auto &U : P.Units)
    Units.push_back(U->AST ? std::make_unique<Changed>(*U, P, Slice, Meetings) : nullptr);
  // Functions of headers are the same in all units that include them.
  for (auto &Taking : Units)
    for (auto &From : Units)
      if (Taking && From && Taking != From)
        Taking->Original.Counts |= Taking->Changes.take(From->Changes);
  std::vector<std::optional<UnitText>> Result(P.Units.size());
  for (auto &U : P.Units)
    if (Units[U->Index])
      Result[U->Index] = print(*U, *Units[U->Index], P, Pointers, Slice, Meetings);
  return Result;
}

} // namespace foreread::slicer
