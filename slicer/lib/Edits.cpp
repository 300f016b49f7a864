#include "Edits.h"

namespace foreread::slicer {

using namespace clang;

TextRange textOf(const Unit &U, const Stmt *S) {
  const SourceManager &Sources = U.sources();
  CharSourceRange Range = Lexer::makeFileCharRange(
      CharSourceRange::getTokenRange(S->getSourceRange()), Sources, U.context().getLangOpts());
  if (Range.isInvalid() || !U.Texts->atHand(Sources.getFileID(Range.getBegin())))
    return {};
  TextRange Result{Sources.getFileID(Range.getBegin()), Sources.getFileOffset(Range.getBegin()),
                   Sources.getFileOffset(Range.getEnd()), true};
  if (Result.Begin >= Result.End)
    return {};
  return Result;
}

namespace {

// True if a statement ends with a semicolon that Clang does not include in its range.
bool endsOpen(const Stmt *S) {
  if (const auto *For = dyn_cast<ForStmt>(S))
    return endsOpen(For->getBody());
  if (const auto *While = dyn_cast<WhileStmt>(S))
    return endsOpen(While->getBody());
  if (const auto *Switch = dyn_cast<SwitchStmt>(S))
    return endsOpen(Switch->getBody());
  if (const auto *If = dyn_cast<IfStmt>(S))
    return endsOpen(If->getElse() ? If->getElse() : If->getThen());
  if (const auto *Label = dyn_cast<LabelStmt>(S))
    return endsOpen(Label->getSubStmt());
  if (const auto *Case = dyn_cast<SwitchCase>(S))
    return endsOpen(Case->getSubStmt());
  if (const auto *Attributed = dyn_cast<AttributedStmt>(S))
    return endsOpen(Attributed->getSubStmt());
  return isa<Expr, AsmStmt, DoStmt, ReturnStmt, BreakStmt, ContinueStmt, GotoStmt>(S);
}

} // namespace

TextRange statementText(const Unit &U, const Stmt *S) {
  TextRange Result = textOf(U, S);
  if (!Result.Valid || !endsOpen(S))
    return Result;
  llvm::StringRef Text = U.sources().getBufferData(Result.File);
  while (Result.End < Text.size() && isspace(static_cast<unsigned char>(Text[Result.End])))
    ++Result.End;
  Result.Valid = Result.End < Text.size() && Text[Result.End] == ';';
  ++Result.End;
  return Result;
}

namespace {

// True if a macro turns its argument into a string or part of a token: inserted text would show.
bool showsText(const Unit &U, SourceLocation At) {
  const SourceManager &Sources = U.sources();
  while (At.isMacroID()) {
    if (!Sources.isMacroArgExpansion(At))
      return false;
    SourceLocation Caller = Sources.getImmediateExpansionRange(At).getBegin();
    llvm::StringRef Name = Lexer::getImmediateMacroName(Caller, Sources, U.context().getLangOpts());
    const Preprocessor &Macros = U.AST->getPreprocessor();
    const IdentifierInfo *Identifier = Macros.getIdentifierInfo(Name);
    const MacroInfo *Macro = Identifier ? Macros.getMacroInfo(Identifier) : nullptr;
    if (!Macro)
      return true;
    for (const Token &Part : Macro->tokens())
      if (Part.isOneOf(tok::hash, tok::hashhash))
        return true;
    At = Sources.getImmediateSpellingLoc(At);
  }
  return false;
}

// True if text around the call would destroy its temporary objects before their last use.
bool makesTemporaries(const Stmt *S) {
  if (isa<CXXBindTemporaryExpr>(S))
    return true;
  for (const Stmt *Child : S->children())
    if (Child && makesTemporaries(Child))
      return true;
  return false;
}

} // namespace

bool editable(const Function &F, const CallExpr *Call) {
  const Unit &U = *F.Home;
  TextRange Here = textOf(U, Call);
  if (!Here.Valid || showsText(U, Call->getBeginLoc()) || makesTemporaries(Call) || F.Expanded.contains(Call))
    return false;
  // An argument that its macro uses twice is written once and executed twice.
  for (const CallExpr *Other : F.Calls)
    if (Other != Call && Call->getBeginLoc().isMacroID())
      if (TextRange There = textOf(U, Other);
          There.Valid && There.File == Here.File && There.Begin == Here.Begin && There.End == Here.End)
        return false;
  return true;
}

namespace {

// True if control may leave the statement other than at its end, or enter other than at its beginning.
bool jumps(const Stmt *S) {
  if (isa<ReturnStmt, BreakStmt, ContinueStmt, GotoStmt, IndirectGotoStmt, LabelStmt, SwitchCase>(
          S))
    return true;
  for (const Stmt *Child : S->children())
    if (Child && jumps(Child))
      return true;
  return false;
}

// True if each execution of a statement or expression executes the given part exactly once.
bool once(const Stmt *Outer, const Stmt *Part, const ASTContext &Context) {
  if (isa<UnaryExprOrTypeTraitExpr>(Outer))
    return false;
  if (const auto *Choice = dyn_cast<AbstractConditionalOperator>(Outer))
    return Choice->getCond() == Part;
  if (const auto *Binary = dyn_cast<BinaryOperator>(Outer); Binary && Binary->isLogicalOp())
    return Binary->getLHS() == Part;
  if (const auto *Block = dyn_cast<CompoundStmt>(Outer)) {
    for (const Stmt *Before : Block->body()) {
      if (Before == Part)
        return true;
      if (jumps(Before))
        return false;
    }
    return false;
  }
  if (const auto *If = dyn_cast<IfStmt>(Outer))
    return If->getCond() == Part;
  if (const auto *Switch = dyn_cast<SwitchStmt>(Outer))
    return Switch->getCond() == Part;
  if (const auto *Do = dyn_cast<DoStmt>(Outer)) {
    bool Again = true;
    return Do->getBody() == Part && Do->getCond()->EvaluateAsBooleanCondition(Again, Context) &&
           !Again;
  }
  return isa<Expr, DeclStmt, ReturnStmt>(Outer);
}

} // namespace

const Stmt *expansionAround(const Function &F, const CallExpr *Call) {
  const Unit &U = *F.Home;
  const SourceManager &Sources = U.sources();
  const Stmt *Part = Call;
  // A call in a pack expansion is counted in place, once per argument.
  if (F.Expanded.contains(Call) && !Call->getBeginLoc().isMacroID() && Call->getType()->isScalarType())
    return Call;
  for (const Stmt *Up = F.Parents.lookup(Call); Up; Part = Up, Up = F.Parents.lookup(Up)) {
    if (!once(Up, Part, U.context()))
      return nullptr;
    SourceLocation Begin = Up->getBeginLoc();
    TextRange Here = textOf(U, Up);
    // The text of a macro argument is elsewhere than the macro's name.
    if (!Here.Valid || !Begin.isMacroID() ||
        Sources.getDecomposedLoc(Sources.getExpansionLoc(Begin)) != std::make_pair(Here.File, Here.Begin))
      continue;
    if (isa<Expr>(Up) ? cast<Expr>(Up)->isPRValue()
                      : isa_and_nonnull<CompoundStmt>(F.Parents.lookup(Up)))
      return Up;
  }
  return nullptr;
}

std::optional<TextRange> afterBrace(const Unit &U, const CompoundStmt *Block) {
  const SourceManager &Sources = U.sources();
  const LangOptions &Language = U.context().getLangOpts();
  SourceLocation Brace = Block->getLBracLoc();
  if (Brace.isMacroID() && !Lexer::isAtEndOfMacroExpansion(Brace, Sources, Language, &Brace))
    return std::nullopt;
  FileID File = Sources.getFileID(Brace);
  if (!U.Texts->atHand(File))
    return std::nullopt;
  unsigned After = Sources.getFileOffset(Brace) + Lexer::MeasureTokenLength(Brace, Sources, Language);
  return TextRange{File, After, After, true};
}

void Edits::add(FileID File, Insertion Each) {
  if (InShared)
    Shared[U.Texts->path(File)].push_back(Each);
  Into[File].push_back(std::move(Each));
}

void Edits::before(TextRange Place, std::string Text) {
  add(Place.File, {Place.Begin, static_cast<long>(1) << 40, 0, std::move(Text)});
}

void Edits::after(TextRange Place, std::string Text) {
  add(Place.File, {Place.End, -(static_cast<long>(1) << 40), 0, std::move(Text)});
}

void Edits::around(TextRange Range, std::string Before, std::string After) {
  long Length = Range.End - Range.Begin;
  // At one offset, ends come before beginnings; the inner range ends first, the outer one begins first.
  add(Range.File, {Range.Begin, (static_cast<long>(1) << 41) - Length, 0, std::move(Before)});
  add(Range.File, {Range.End, Length - (static_cast<long>(1) << 41), 0, std::move(After)});
}

void Edits::replace(TextRange Range, std::string Text) {
  add(Range.File, {Range.Begin, static_cast<long>(1) << 42, Range.End - Range.Begin, std::move(Text)});
}

bool Edits::take(const Edits &Other) {
  bool Any = false;
  for (auto &[Path, Theirs] : Other.Shared)
    if (FileID File = U.Texts->header(Path); File.isValid()) {
      // Instantiations of one template may have been edited by several units.
      for (const Insertion &Each : Theirs)
        if (llvm::none_of(Into[File], [&](const Insertion &Here) {
              return Here.Offset == Each.Offset && Here.Rank == Each.Rank && Here.Text == Each.Text;
            }))
          Into[File].push_back(Each);
      Any = true;
    }
  return Any;
}

} // namespace foreread::slicer
