//! Trees of many files: a static link, a make, a grep.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::data::{Random, text};
use crate::case::{Case, Group, Job, Purpose, Size, Start, Workload};
use crate::disk::DiskKind;
use crate::process::Invocation;
use crate::tools::{Tools, shell};
use crate::tree::files_below;

const LLVM: &str = "/usr/lib/llvm-14";
const LLVM_CONFIG: &str = "/usr/lib/llvm-14/bin/llvm-config";

/// g++ with ld.bfd, statically against LLVM's libraries.
struct StaticLink;
/// make -j2 of a generated project, objects elsewhere.
pub struct Make;
/// grep -rl for a word in a tree.
struct Grep;

/// The three of them.
pub fn cases() -> Vec<Case> {
    const ALL: &[DiskKind] = &[DiskKind::Hdd7200, DiskKind::NetworkSsd, DiskKind::Own];
    let case = |name, about, needs, work| Case {
        name,
        group: Group::Main,
        about,
        disks: ALL,
        quick: &[],
        needs,
        purpose: Purpose::Gain,
        start: Start::Cold,
        work,
    };
    vec![
        case(
            "link",
            "g++ and ld.bfd: a static link with LLVM",
            &[("g++", "g++"), (LLVM_CONFIG, "llvm-14-dev")],
            Box::new(StaticLink) as Box<dyn Workload>,
        ),
        case(
            "make",
            "make -j2 of 200 C files",
            &[("make", "make"), ("cc", "gcc")],
            Box::new(Make),
        ),
        case(
            "grep",
            "grep -rl over 8,000 files",
            &[("grep", "grep")],
            Box::new(Grep),
        ),
    ]
}

/// Asks for every target, so that the link draws on nearly every library.
const LINK_SOURCE: &str = "\
#include \"llvm/IR/LLVMContext.h\"
#include \"llvm/Support/TargetSelect.h\"
int main() {
  llvm::InitializeAllTargets();
  llvm::InitializeAllTargetMCs();
  llvm::InitializeAllAsmPrinters();
  llvm::InitializeAllAsmParsers();
  llvm::LLVMContext context;
  return 0;
}
";

impl Workload for StaticLink {
    fn data_name(&self) -> &'static str {
        "link"
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        fs::write(dir.join("main.cpp"), LINK_SOURCE).context("writing main.cpp")?;
        // The libraries are copied so that they lie on the disk under test. Polly's are not
        // packaged, though llvm-config names them.
        shell(
            dir,
            &format!(
                "g++ -O0 -std=c++17 $({LLVM_CONFIG} --cxxflags) -c main.cpp -o main.o; mkdir lib; \
                 echo $({LLVM_CONFIG} --link-static --libs all | sed 's/-lPolly[A-Za-z]*//g') \
                      $({LLVM_CONFIG} --link-static --system-libs) > libs; \
                 for word in $(cat libs); do f={LLVM}/lib/lib${{word#-l}}.a; \
                   if test -f $f; then cp $f lib/; fi; done"
            ),
        )
    }

    fn job(&self, dir: &Path, scratch: &Path, _: Size, _: &Tools) -> Result<Job> {
        let path = dir.join("libs");
        let libs =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let out = scratch.join("main.out");
        let mut args = vec!["main.o".into(), "-o".into(), out.clone().into()];
        args.extend(["-fuse-ld=bfd", "-Llib"].map(Into::into));
        args.extend(libs.split_ascii_whitespace().map(Into::into));
        let mut files = files_below(&dir.join("lib"))?;
        files.push(dir.join("main.o"));
        Ok(Job {
            command: Invocation {
                program: "g++".into(),
                args,
                cwd: dir.to_owned(),
                env: vec![("TMPDIR".into(), scratch.into())],
            },
            files,
            outputs: vec![out],
            ..Job::default()
        })
    }
}

const SOURCES: u64 = 200;
const HEADERS: u64 = 300;

impl Workload for Make {
    fn data_name(&self) -> &'static str {
        "make"
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        let mut random = Random(13);
        let write = |name: String, content: String| {
            let path = dir.join(name);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)
                    .with_context(|| format!("creating {}", folder.display()))?;
            }
            fs::write(&path, content).with_context(|| format!("writing {}", path.display()))
        };
        // A header is half comment, as headers are.
        for h in 0..HEADERS {
            let comment = text(&mut random, 3000 + random_size(h));
            let mut body = format!("#ifndef H{h}\n#define H{h}\n/* {comment} */\n");
            for f in 0..20 {
                body += &format!(
                    "struct s{h}_{f} {{ int a, b; double c[{}]; }};\n\
                     static inline int get{h}_{f}(const struct s{h}_{f} *s) {{ return s->a * {f} + s->b; }}\n",
                    f + 1
                );
            }
            write(
                format!("include/part{:02}/h{h}.h", h % 20),
                body + "#endif\n",
            )?;
        }
        for c in 0..SOURCES {
            let mut body = String::from("#include <stdio.h>\n#include <string.h>\n");
            let mut chosen: Vec<u64> = (0..25).map(|_| random.below(HEADERS)).collect();
            chosen.sort_unstable();
            chosen.dedup();
            for h in &chosen {
                body += &format!("#include \"part{:02}/h{h}.h\"\n", h % 20);
            }
            body += &format!(
                "/* {} */\nint unit{c}(int x)\n{{\n\tint sum = x;\n",
                text(&mut random, 4000)
            );
            for h in &chosen {
                body += &format!(
                    "\tstruct s{h}_3 v{h} = {{ x, {h}, {{ 0 }} }};\n\tsum += get{h}_3(&v{h});\n"
                );
            }
            write(
                format!("src/m{:02}/unit{c}.c", c % 10),
                body + "\treturn sum;\n}\n",
            )?;
        }
        let calls: String = (0..SOURCES)
            .map(|c| format!("\tsum += unit{c}(sum);\n"))
            .collect();
        let declared: String = (0..SOURCES)
            .map(|c| format!("int unit{c}(int);\n"))
            .collect();
        write(
            "src/m00/main.c".into(),
            format!(
                "#include <stdio.h>\n{declared}int main(void)\n{{\n\tint sum = 1;\n{calls}\tprintf(\"%d\\n\", sum);\n\treturn 0;\n}}\n"
            ),
        )?;
        write(
            "Makefile".into(),
            "O ?= build\nSOURCES := $(sort $(wildcard src/*/*.c))\n\
             OBJECTS := $(patsubst src/%.c,$(O)/%.o,$(SOURCES))\n\
             $(O)/program: $(OBJECTS)\n\t@$(CC) -o $@ $^\n\
             $(O)/%.o: src/%.c\n\t@mkdir -p $(@D)\n\t@$(CC) -O0 -Iinclude -c -o $@ $<\n"
                .into(),
        )
    }

    fn job(&self, dir: &Path, scratch: &Path, _: Size, _: &Tools) -> Result<Job> {
        let build = scratch.join("build");
        Ok(Job {
            command: Invocation {
                program: "make".into(),
                args: vec![
                    "-j2".into(),
                    "--no-print-directory".into(),
                    format!("O={}", build.display()).into(),
                ],
                cwd: dir.to_owned(),
                env: vec![("TMPDIR".into(), scratch.into())],
            },
            files: files_below(dir)?,
            outputs: vec![build.join("program")],
            fresh_dir: Some(build),
            ..Job::default()
        })
    }
}

/// Sizes between 0 and 12 KB that differ from file to file.
fn random_size(index: u64) -> usize {
    (Random(index).next() % 12_000) as usize
}

const TREE_FILES: u64 = 8_000;

impl Workload for Grep {
    fn data_name(&self) -> &'static str {
        "tree"
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        let mut random = Random(14);
        let mut order: Vec<u64> = (0..TREE_FILES).collect();
        // Written in shuffled order: a tree that has been lived in.
        for i in (1..order.len()).rev() {
            order.swap(i, random.below(i as u64 + 1) as usize);
        }
        for file in order {
            let folder = dir.join(format!("d{:02}/e{:02}", file % 40, file / 40 % 10));
            fs::create_dir_all(&folder)
                .with_context(|| format!("creating {}", folder.display()))?;
            // Mostly small, a few large: 1 KiB to 64 KiB.
            let bytes = 1024usize << random.below(7).min(random.below(7));
            let mut content = text(&mut random, bytes);
            if file % 400 == 0 {
                content.push_str("the needle\n");
            }
            let path = folder.join(format!("f{file}.txt"));
            fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
        Ok(Job {
            command: Invocation {
                program: "grep".into(),
                args: vec!["-rl".into(), "needle".into(), ".".into()],
                cwd: dir.to_owned(),
                env: Vec::new(),
            },
            files: files_below(dir)?,
            ..Job::default()
        })
    }
}
