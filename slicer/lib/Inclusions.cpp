#include "Inclusions.h"

#include <set>

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace foreread::slicer {

using namespace clang;

namespace {

llvm::StringRef lastPart(llvm::StringRef Path) { return llvm::sys::path::filename(Path); }

// True if the text contains constructs whose meaning depends on the file that they are in.
bool knowsItsPlace(llvm::StringRef Text) {
  if (Text.contains("__INCLUDE_LEVEL__") || Text.contains("include_next"))
    return true;
  for (size_t At = 0; (At = Text.find("__has_include", At)) != llvm::StringRef::npos; ++At)
    if (Text.substr(At, 40).split('\n').first.contains('"'))
      return true;
  return false;
}

std::string quoted(llvm::StringRef Name) {
  std::string Result = "\"";
  for (char Each : Name)
    Result += (Each == '\\' || Each == '"' ? "\\" : "") + std::string(1, Each);
  return Result + "\"";
}

} // namespace

std::string applied(llvm::StringRef Text, const std::vector<Insertion> &Into) {
  std::vector<const Insertion *> Order;
  for (const Insertion &Each : Into)
    Order.push_back(&Each);
  // Insertions with equal offset and rank keep their order, since they are elements of one vector.
  llvm::sort(Order, [](const Insertion *A, const Insertion *B) {
    return std::make_tuple(A->Offset, A->Rank, A) < std::make_tuple(B->Offset, B->Rank, B);
  });
  std::string Result;
  unsigned At = 0;
  for (const Insertion *Each : Order) {
    if (Each->Offset > At) {
      Result += Text.substr(At, Each->Offset - At);
      At = Each->Offset;
    }
    Result += Each->Text;
    At += Each->Remove;
  }
  Result += Text.substr(At);
  return Result;
}

Inclusions::Inclusions(const SourceManager &Sources, const LangOptions &Language)
    : Sources(Sources), Language(Language) {
  std::map<std::string, unsigned> Times;
  for (unsigned I = 1; I < Sources.local_sloc_entry_size(); ++I) {
    const SrcMgr::SLocEntry &Entry = Sources.getLocalSLocEntry(I);
    if (!Entry.isFile() || Entry.getFile().getFileCharacteristic() != SrcMgr::C_User)
      continue;
    FileID File = Sources.getFileID(SourceLocation::getFromRawEncoding(Entry.getOffset()));
    if (path(File).empty())
      continue;
    ++Times[path(File)];
    read(File, Own[File]);
  }
  for (auto &[File, Each] : Own) {
    SourceLocation From = Sources.getIncludeLoc(File);
    auto Parent = From.isValid() ? Own.find(Sources.getFileID(From)) : Own.end();
    Each.Movable &= Parent != Own.end() && Times[path(File)] == 1;
    bool Found = false;
    if (Parent != Own.end())
      for (Directive &Named : Parent->second.Directives)
        if (Named.NameAt == Sources.getFileOffset(From)) {
          Named.Entered = File;
          Each.Parent = Parent->first;
          Found = true;
        }
    Each.Movable &= Found;
  }
  // A header cannot be moved if another one that would have to be moved with it cannot.
  bool Changed = true;
  while (Changed) {
    Changed = false;
    for (auto &[File, Each] : Own)
      if (Each.Movable)
        for (FileID Needed : neededBy(File))
          if (Needed != Sources.getMainFileID() && !Own.at(Needed).Movable) {
            Each.Movable = false;
            Changed = true;
          }
  }
}

void Inclusions::read(FileID File, Header &Into) const {
  llvm::MemoryBufferRef Buffer = Sources.getBufferOrFake(File);
  llvm::StringRef Text = Buffer.getBuffer();
  Into.Movable = !knowsItsPlace(Text);
  Lexer Raw(File, Buffer, Sources, Language);
  Token Now;
  Raw.LexFromRawLexer(Now);
  while (Now.isNot(tok::eof)) {
    if (Now.isNot(tok::hash) || !Now.isAtStartOfLine()) {
      Raw.LexFromRawLexer(Now);
      continue;
    }
    Directive Here;
    Here.Begin = Sources.getFileOffset(Now.getLocation());
    Raw.LexFromRawLexer(Now);
    if (Now.isNot(tok::raw_identifier) || Now.isAtStartOfLine())
      continue;
    llvm::StringRef Word = Now.getRawIdentifier();
    if (Word == "pragma") {
      Raw.LexFromRawLexer(Now);
      Into.Once |= Now.is(tok::raw_identifier) && !Now.isAtStartOfLine() && Now.getRawIdentifier() == "once";
      continue;
    }
    if (Word != "include" && Word != "import")
      continue;
    // An imported file is included once, under either name.
    Into.Movable &= Word != "import";
    Here.NameAt = Sources.getFileOffset(Now.getLocation()) + Now.getLength();
    while (Here.NameAt < Text.size() && (Text[Here.NameAt] == ' ' || Text[Here.NameAt] == '\t'))
      ++Here.NameAt;
    char Opens = Here.NameAt < Text.size() ? Text[Here.NameAt] : 0;
    size_t Ends = Text.find(Opens == '<' ? '>' : Opens == '"' ? '"' : '\n', Here.NameAt + 1);
    Here.Quoted = Opens == '"';
    Here.End = Ends == llvm::StringRef::npos ? Text.size() : Ends;
    if (Opens == '<' || Opens == '"') {
      Here.Name = Text.slice(Here.NameAt + 1, Here.End);
      ++Here.End;
    }
    Into.Directives.push_back(Here);
  }
}

bool Inclusions::atHand(FileID File) const {
  if (File == Sources.getMainFileID())
    return true;
  auto At = Own.find(File);
  return At != Own.end() && At->second.Movable;
}

std::string Inclusions::path(FileID File) const {
  auto Entry = Sources.getFileEntryRefForID(File);
  if (!Entry)
    return "";
  llvm::StringRef Real = Entry->getFileEntry().tryGetRealPathName();
  return Real.empty() ? Entry->getName().str() : Real.str();
}

FileID Inclusions::header(const std::string &Path) const {
  for (auto &[File, Each] : Own)
    if (File != Sources.getMainFileID() && Each.Movable && path(File) == Path)
      return File;
  return {};
}

// True if a directive may have been skipped because the header that it names is included once.
bool Inclusions::namesOnce(const Directive &Each, FileID Header) const {
  return Each.Entered.isInvalid() && Own.at(Header).Once && lastPart(Each.Name) == lastPart(path(Header));
}

// Headers whose #include has to be replaced, too, if this header's is.
Inclusions::Files Inclusions::neededBy(FileID Moved) const {
  Files Result;
  const Header &Here = Own.at(Moved);
  if (Here.Parent.isValid())
    Result.push_back(Here.Parent);
  // A quoted name is searched beside the file that contains it.
  for (const Directive &Each : Here.Directives)
    if (Each.Quoted && Each.Entered.isValid())
      Result.push_back(Each.Entered);
  // Where the header is included again, the compiler would not know that it was included before.
  for (auto &[File, Other] : Own)
    for (const Directive &Each : Other.Directives)
      if (File != Moved && namesOnce(Each, Moved))
        Result.push_back(File);
  return Result;
}

Inclusions::Files Inclusions::closure(const std::map<FileID, std::vector<Insertion>> &Into) const {
  std::set<FileID> Seen;
  Files Work;
  for (auto &[File, Each] : Into)
    Work.push_back(File);
  while (!Work.empty()) {
    FileID File = Work.back();
    Work.pop_back();
    if (File == Sources.getMainFileID() || !Seen.insert(File).second)
      continue;
    llvm::append_range(Work, neededBy(File));
  }
  return Files(Seen.begin(), Seen.end());
}

std::string Inclusions::presumed(FileID File) const {
  PresumedLoc At = Sources.getPresumedLoc(Sources.getLocForStartOfFile(File));
  return At.isValid() ? At.getFilename() : path(File);
}

// The name that GCC gives the file: for a file found beside another, no "./" in front if that file's name has no
// directory.
std::string Inclusions::nameOf(FileID File) const {
  std::string Clang = presumed(File);
  if (File == Sources.getMainFileID())
    return Clang;
  FileID Parent = Own.at(File).Parent;
  for (const Directive &Each : Own.at(Parent).Directives)
    if (Each.Entered == File && Each.Quoted) {
      llvm::StringRef Folder = llvm::sys::path::parent_path(presumed(Parent));
      if (Clang == (Folder.empty() ? "." : Folder.str()) + "/" + Each.Name) {
        std::string Of = nameOf(Parent);
        size_t Slash = Of.rfind('/');
        return (Slash == std::string::npos ? "" : Of.substr(0, Slash + 1)) + Each.Name;
      }
    }
  return Clang;
}

// A directive that sets file and line to those of the given offset.
std::string Inclusions::line(FileID File, unsigned Offset) const {
  PresumedLoc At = Sources.getPresumedLoc(Sources.getLocForStartOfFile(File).getLocWithOffset(Offset));
  std::string Name = At.getFilename();
  return "#line " + std::to_string(At.getLine()) + " " + quoted(Name == presumed(File) ? nameOf(File) : Name) + "\n";
}

namespace {

std::string once(FileID Header) { return "FOREREAD_ONCE_" + std::to_string(Header.getHashValue()); }

} // namespace

// Replacement of a skipped directive in moved text; empty if the directive can stay as it is.
std::string Inclusions::skipped(FileID File, const Directive &Each, const Files &Moved) const {
  llvm::StringRef Text = Sources.getBufferData(File);
  std::string Same = Text.slice(Each.Begin, Each.End).str(), Result;
  if (File != Sources.getMainFileID() && Each.Quoted) {
    llvm::SmallString<256> Beside(path(File));
    llvm::sys::path::remove_filename(Beside);
    llvm::sys::path::append(Beside, Each.Name);
    if (llvm::sys::fs::exists(Beside))
      Same = Result = "#include <" + Beside.str().str() + ">";
  }
  for (FileID Header : Moved)
    if (namesOnce(Each, Header))
      return "#ifndef " + once(Header) + "\n" + Same + "\n#endif\n" + line(File, Each.Begin);
  return Result;
}

std::string Inclusions::print(FileID File, const Files &Moved,
                              const std::map<FileID, std::vector<Insertion>> &Into) const {
  auto At = Into.find(File);
  std::vector<Insertion> All = At == Into.end() ? std::vector<Insertion>() : At->second;
  for (const Directive &Each : Own.at(File).Directives) {
    std::string Instead;
    if (Each.Entered.isInvalid()) {
      Instead = skipped(File, Each, Moved);
    } else if (llvm::is_contained(Moved, Each.Entered)) {
      std::string Inner = print(Each.Entered, Moved, Into);
      if (Own.at(Each.Entered).Once)
        Instead = "#define " + once(Each.Entered) + "\n";
      Instead += "#line 1 " + quoted(nameOf(Each.Entered)) + "\n" + Inner +
                 (llvm::StringRef(Inner).ends_with("\n") ? "" : "\n") + line(File, Each.Begin);
    }
    if (!Instead.empty())
      All.push_back({Each.Begin, 0, Each.End - Each.Begin, Instead});
  }
  return applied(Sources.getBufferData(File), All);
}

std::string Inclusions::text(const std::map<FileID, std::vector<Insertion>> &Into) const {
  Files Moved = closure(Into);
  if (!Moved.empty())
    return print(Sources.getMainFileID(), Moved, Into);
  auto At = Into.find(Sources.getMainFileID());
  llvm::StringRef Text = Sources.getBufferData(Sources.getMainFileID());
  return At == Into.end() ? Text.str() : applied(Text, At->second);
}

std::vector<std::string> Inclusions::takenIn(const std::map<FileID, std::vector<Insertion>> &Into) const {
  std::vector<std::string> Paths;
  for (FileID File : closure(Into))
    Paths.push_back(path(File));
  return Paths;
}

} // namespace foreread::slicer
