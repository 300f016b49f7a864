//! The programs, and the known events of each.
//!
//! Events are written in words: a verb, a file of the program's folder, and for a read its offset and length: `pread data 5000+20`. The
//! verbs: `begin` a program, `fork`, `open`, `write` (open for writing), `stat`, `list`, `fetch` (pages come from the device), `touch`
//! (a page of a mapping), and the [kinds](foreread_plan::Kind) of reads.

/// A program of `tests/observe`, and its events with these arguments.
pub struct Case {
    /// The name of the case.
    pub name: &'static str,
    /// The source file; without an extension it is a C source.
    pub program: &'static str,
    /// How it is built: compiler and options. A failed build means that this machine lacks something.
    pub compiler: &'static str,
    pub options: &'static [&'static str],
    /// Its arguments. `@NAME` is the path of a file in its folder; `<@NAME` is its standard input.
    pub words: &'static str,
    /// Its events after its start, in order.
    pub does: &'static str,
}

impl Case {
    const fn by(self, compiler: &'static str, options: &'static [&'static str]) -> Self {
        Self {
            compiler,
            options,
            ..self
        }
    }
}

const fn case(
    name: &'static str,
    program: &'static str,
    words: &'static str,
    does: &'static str,
) -> Case {
    Case {
        name,
        program,
        compiler: "cc",
        options: &[],
        words,
        does,
    }
}

const READ: &str =
    "open data, read data 0+1000, read data 1000+8192, read data 9192+8192, read data 17384+2616";
const PREAD: &str =
    "open data, pread data 12288+100, pread data 0+4096, pread data 19000+1000, read data 0+10";
/// Reads through a buffer of one page, from start to end.
const REFILLS: &str = "open data, stdio data 0+4096, stdio data 4096+4096, stdio data 8192+4096, stdio data 12288+4096, \
                       stdio data 16384+3616";
const QUEUED: &str = "open data, pread data 12288+100, pread data 0+4096, pread data 5000+4100, pread data 19000+1000";
const SUBMITTED: &str = "open data, pread data 12288+100, pread data 0+4096, pread data 5000+4100, pread data 19000+1000, \
    pread data 9000+3072";
const BARE: &str = "open data, read data 0+1000, pread data 5000+50, read data 1000+8192";

pub const CASES: &[Case] = &[
    case("read", "read", "@data", READ),
    case("pread", "pread", "@data", PREAD),
    case("fortified functions", "pread", "@data", PREAD).by("cc", &["-O2", "-D_FORTIFY_SOURCE=2"]),
    case(
        "readv, preadv, preadv2",
        "readv",
        "@data",
        "open data, readv data 0+4100, readv data 4100+100, preadv data 8000+4100, preadv data 19000+1000, preadv data 100+4100, \
         preadv data 4200+100, preadv data 7+100, read data 4300+1",
    ),
    case(
        "lseek",
        "lseek",
        "@data",
        "open data, read data 5000+100, read data 5150+100, read data 19940+60, read data 0+7, read data 10000+8",
    ),
    case(
        "duplicates of a descriptor",
        "dup",
        "@data",
        "open data, read data 0+10, read data 10+20, read data 30+30, read data 60+40, read data 100+50, read data 150+60, \
         read data 1000+70, read data 1070+80, read data 1150+90, read data 1240+15, read data 1255+25",
    ),
    case(
        "sendfile, copy_file_range, splice",
        "sendfile",
        "@data",
        "open data, write data.made, sendfile data 5000+100, sendfile data 0+200, copy_file_range data 6000+300, \
         copy_file_range data 200+400, splice data 7000+500, splice data 600+600, read data 1200+16",
    ),
    case(
        "a number used again",
        "close",
        "@data @other",
        "open data, read data 0+10, open other, read other 0+20, open data, read data 0+30, read data 30+40, open other, \
         read other 0+50",
    ),
    case(
        "reads among writes",
        "rdwr",
        "@data",
        "write data, read data 0+10, read data 20+20, stdio data 40+4096",
    ),
    case(
        "syscall()",
        "syscall",
        "@data",
        "open data, read data 0+10, pread data 5000+20, readv data 100+50, preadv data 7000+50, read data 150+30, \
         touch data 4096+4096",
    ),
    case("fread", "fread", "@data", REFILLS),
    case("fgets", "fgets", "@data", REFILLS),
    case("getc", "getc", "@data", REFILLS),
    case("getline", "getline", "@data", REFILLS),
    case("fscanf", "fscanf", "@data", REFILLS),
    case("wide characters", "wide", "@data", REFILLS),
    // glibc does not know a stream's position before the first seek, so it reads again.
    case(
        "fseek",
        "fseek",
        "@data",
        "open data, stdio data 0+4096, stdio data 0+4096, stdio data 12288+4096, stdio data 0+4096, stdio data 16384+3616, \
         stdio data 0+4096",
    ),
    case(
        "freopen, fdopen",
        "freopen",
        "@data @other",
        "open data, stdio data 0+4096, open other, stdio other 0+4096, open data, stdio data 0+4096, open data, \
         read data 0+80, stdio data 80+4096, open other, read other 0+80",
    ),
    case(
        "standard input",
        "stdin",
        "<@data",
        "read data 0+8, pread data 4096+16, stdio data 8+4096, stdio data 4104+4096, stdio data 8200+4096, \
         stdio data 12296+4096, stdio data 16392+3608",
    ),
    case(
        "opened by a descriptor's name",
        "byfd",
        "<@data",
        "read data 0+8, open data, read data 0+10, pread data 4096+16, read data 10+20, open data, read data 0+11, \
         pread data 8192+16, read data 11+20, open data, read data 0+12, pread data 12288+16, read data 12+20",
    ),
    case(
        "opened by a name of its own",
        "ownview",
        "<@data",
        "open data, read data 0+10, open data, read data 0+12",
    ),
    // libstdc++ reads one byte less than the size of its 8 KiB buffer.
    case(
        "C++ streams",
        "iostream.cpp",
        "@data",
        "open data, read data 0+8191, read data 16384+3616, read data 0+8191",
    )
    .by("c++", &[]),
    case(
        "aio_read",
        "aio",
        "@data",
        "open data, pread data 12000+5000, pread data 19000+1000, pread data 0+100, pread data 4096+200, write written",
    ),
    case("io_uring_enter", "uring", "@data", QUEUED),
    case("io_submit", "submit", "@data", SUBMITTED),
    case(
        "liburing",
        "liburing",
        "@data",
        "open data, pread data 12288+100, pread data 0+10, pread data 1000+10, pread data 2000+10, pread data 3000+10, \
         pread data 4000+10, pread data 5000+10, pread data 6000+10, pread data 7000+10, pread data 8000+10, \
         pread data 5000+4100, pread data 7000+64, pread data 19000+1000, pread data 0+33, read data 33+7, pread data 300+20",
    )
    .by("cc", &["-luring"]),
    case("a static program", "read", "@data", READ).by("cc", &["-static"]),
    case("a 32-bit program", "read", "@data", READ)
        .by("cc", &["-m32", "-D_FILE_OFFSET_BITS=64"]),
    case("a static program of musl", "read", "@data", READ).by("musl-gcc", &["-static"]),
    case("a program of musl", "read", "@data", READ).by("musl-gcc", &[]),
    case("system calls of its own", "bare", "hold @data", BARE),
    case("the same, static", "bare", "hold @data", BARE).by("cc", &["-static"]),
    case("the same, without a C library", "bare", "hold @data", BARE).by(
        "cc",
        &[
            "-static",
            "-nostdlib",
            "-fno-stack-protector",
            "-DFREESTANDING",
        ],
    ),
    case(
        "a cold file",
        "opens",
        "read @data",
        "open data, fetch data, read data 0+100",
    ),
    case(
        "a mapping",
        "opens",
        "map @data",
        "open data, fetch data, touch data 0+4096",
    ),
    case("a file that is written", "opens", "write @data", "write data"),
    case("a child that lives", "opens", "fork @data", "fork, open data"),
    case(
        "a file with a new name",
        "opens",
        "rename @other @renamed",
        "open renamed",
    ),
    case("a file that is gone", "opens", "remove @data", "open data"),
    case("O_PATH", "opens", "place @data", "stat data"),
    case("a name that is looked up", "opens", "look @data", "stat data"),
    case("a folder", "opens", "list @.", "list ."),
    case("a pipe", "opens", "pipe @pipe", ""),
    case(
        "fork",
        "fork",
        "@data",
        "open data, read data 0+10, fork, read data 10+20, open data, read data 0+21, read data 21+22, read data 30+30, fork, \
         read data 60+40, pread data 50+50",
    ),
    case(
        "vfork",
        "vfork",
        "@data",
        "open data, read data 0+10, fork, read data 10+20, fork, begin cat, read data 30+19970, read data 0+30",
    ),
    case(
        "system, popen, wordexp",
        "system",
        "@data",
        "open data, read data 0+10, fork, begin dash, fork, begin head, read data 10+20, read data 30+30, \
         fork, begin dash, fork, begin head, read data 60+40, read data 100+50, \
         fork, begin dash, fork, begin head, read data 150+60, read data 210+70",
    ),
    case(
        "posix_spawn",
        "spawn",
        "@data",
        "open data, read data 0+10, fork, begin head, read data 10+20, read data 30+30",
    ),
    case(
        "exec",
        "exec",
        "@data",
        "fork, begin head, open data, read data 0+1, fork, begin head, open data, read data 0+2, \
         fork, begin head, open data, read data 0+3, fork, begin head, open data, read data 0+4, \
         fork, begin head, open data, read data 0+5, fork, begin head, open data, read data 0+6, \
         fork, begin head, open data, read data 0+7, fork, begin head, open data, read data 0+8, open data, read data 0+9",
    ),
    case(
        "a thread of libforeread's",
        "helper",
        "@data @other",
        "open data, read data 0+100, read data 100+100, pread data 7000+100",
    ),
];
