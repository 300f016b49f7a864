//! Tables of a C compiler's options, as far as the driver must distinguish them.
//!
//! Tables only. GCC's manual ("Option Summary") is where they come from; Clang's are the same but for a few.

/// Options whose value is the next word, which could be mistaken for an input.
pub(super) const WITH_VALUE: &[&str] = &[
    "-D",
    "-U",
    "-I",
    "-A",
    "-B",
    "-G",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-isysroot",
    "-imultilib",
    "-iplugindir",
    "--sysroot",
    "--param",
    "-wrapper",
    "-specs",
    "-target",
    "-arch",
    "-mllvm",
    "-Xclang",
    "-Xassembler",
    "-Xpreprocessor",
    "-gcc-toolchain",
    "--include-directory",
    "--define-macro",
    "--undefine-macro",
];

/// Options with a value that name or place files written beside the object.
pub(super) const ASIDE_WITH_VALUE: &[&str] = &[
    "-MF",
    "-MT",
    "-MQ",
    "-MJ",
    "-aux-info",
    "-auxbase",
    "-dumpbase",
    "-dumpbase-ext",
    "-dumpdir",
];

/// Prefixes of options that make the compiler write a file beside the object.
pub(super) const ASIDE: &[&str] = &[
    "-M",
    "-save-temps",
    "--save-temps",
    "-fdump-",
    "-fstack-usage",
    "-fcallgraph-info",
    "-fopt-info",
    "-fsave-optimization-record",
    "-ftime-trace",
    "-gsplit-dwarf",
    "-time=",
    "-Wa,-a",
];

/// Linker options whose value is the next word.
pub(super) const LINKER_WITH_VALUE: &[&str] = &[
    "-L", "-l", "-u", "-z", "-e", "-h", "-T", "-R", "-Tbss", "-Tdata", "-Ttext", "-Xlinker",
    "--entry", "-rpath",
];

/// Linker options that stand alone.
pub(super) const LINKER: &[&str] = &[
    "-s",
    "-r",
    "-n",
    "-N",
    "-shared",
    "-shared-libgcc",
    "-static",
    "-static-pie",
    "-static-libgcc",
    "-symbolic",
    "-rdynamic",
    "-pie",
    "-no-pie",
    "-nopie",
    "-nostdlib",
    "-nodefaultlibs",
    "-nostartfiles",
    "-nolibc",
];

/// Options that make the compiler stop before the object, or only print something.
pub(super) const TELLS: &[&str] = &[
    "-E",
    "-S",
    "-M",
    "-MM",
    "-fsyntax-only",
    "-###",
    "--version",
    "--help",
    "--target-help",
    "-dumpversion",
    "-dumpfullversion",
    "-dumpmachine",
    "-dumpspecs",
    "--preprocess",
    "--assemble",
];

/// Prefixes of options under which a unit is left whole. Instrumented code counts its own execution; link-time code is not in the object;
/// the others start programs or change the compiler, which the content of an object must not be able to do.
pub(super) const LEFT_WHOLE: &[&str] = &[
    "-flto",
    "-fsanitize",
    "-fprofile-generate",
    "-fprofile-arcs",
    "-ftest-coverage",
    "--coverage",
    "-coverage",
    "-fprofile-instr-generate",
    "-fcoverage-mapping",
    "-fplugin",
    "-wrapper",
    "-specs",
    "-B",
    "-Xclang",
    // A response file could hold any of these.
    "@",
    "-ffreestanding",
    "-fsplit-stack",
    "-finstrument-functions",
    "-pg",
    "-emit-llvm",
];

/// Options under which the output is linked unchanged, because the runtime could not start a process from it.
pub(super) const NO_PROGRAM: &[&str] = &[
    "-shared",
    "-r",
    "-static",
    "-static-pie",
    "-nostdlib",
    "-nodefaultlibs",
    "-nostartfiles",
    "-nolibc",
    "-Wl,-r",
    "-Wl,-shared",
    "-Wl,--relocatable",
    "-Wl,-static",
];
