//! Finding the compiler, its messages, and the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::compiler;
use crate::backend::cpu::codegen::RARELY;
use crate::backend::cpu::codegen::compiler::{
    CodegenError, Compiler, CompilerOptions, Library, Target, create_private,
};
use crate::backend::cpu::codegen::text_parts::Part;

const OPTIONS: CompilerOptions = CompilerOptions { real_f32: false, target: Target::Native };

/// A folder of this test, removed at its end.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("autobatch-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        create_private(&path, false).unwrap();
        Self(path)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// A text whose function gives this number.
fn text(number: i32) -> String {
    format!("#include \"vmath.h\"\nint number(void) {{ return {number}; }}\n")
}

fn number(library: &Library) -> i32 {
    // SAFETY: the function has no parameters and gives an int.
    unsafe { library.symbol::<unsafe extern "C" fn() -> i32>("number").unwrap()() }
}

fn with_cache(folder: &Path) -> Option<Compiler> {
    Some(compiler()?.with_cache(Some(folder.to_owned())))
}

/// A text of so many functions, long enough to be compiled in parts.
fn long_text(functions: i32) -> String {
    let function = |i: i32| format!("void f{i}(int *to) {{\n    // {}\n    *to = scaled({i});\n}}\n", "x".repeat(4096));
    let functions: String = (0..functions).map(function).collect();
    format!("#include \"vmath.h\"\nstatic int scaled(int x) {{ return 3 * x; }}\n{functions}")
}

/// The same, of which every other one is rarely run.
fn text_of_both(functions: i32) -> String {
    let marked = |line: &str| match line.strip_prefix("void f").and_then(|rest| rest.split('(').next()?.parse().ok()) {
        Some(number) if number % 2 == 1 => format!("{RARELY}{line}\n"),
        Some::<i32>(_) | None => format!("{line}\n"),
    };
    format!("#define AB_RARELY\n{}", long_text(functions).lines().map(marked).collect::<String>())
}

#[test]
fn functions_that_are_rarely_run_are_compiled_apart() {
    let numbers = |part: &Part| {
        let names = part.text.split("void f").skip(1).map(|rest| rest.split('(').next().unwrap().parse().unwrap());
        names.collect::<Vec<i32>>()
    };
    let Some(compiler) = compiler() else { return };
    let made = compiler.parts(&text_of_both(50));
    assert!(made.len() > 1, "{}", made.len());
    for part in &made {
        assert!(part.text.starts_with("#define AB_RARELY\n#include"), "{}", &part.text[..40]);
        assert!(numbers(part).iter().all(|number| (number % 2 == 1) == part.rarely), "{:?}", numbers(part));
    }
    let mut all: Vec<i32> = made.iter().flat_map(numbers).collect();
    all.sort_unstable();
    assert_eq!(all, (0..50).collect::<Vec<_>>());
    // Few of them are not worth the headers, and a user's own `-O` is for all.
    assert!(compiler.parts(&text_of_both(10)).is_empty());
    let own = Compiler::new("cc -O1".as_ref());
    assert!(own.is_ok_and(|own| own.parts(&text_of_both(50)).iter().all(|part| !part.rarely)));
}

#[test]
fn both_kinds_of_functions_are_in_the_library() {
    let Some(compiler) = compiler() else { return };
    let library = compiler.load(&text_of_both(50), &OPTIONS).unwrap();
    for i in 0..50 {
        let mut found = -1;
        // SAFETY: the function writes an int to where it is told.
        unsafe { library.symbol::<unsafe extern "C" fn(&mut i32)>(&format!("f{i}")).unwrap()(&mut found) };
        assert_eq!(found, 3 * i);
    }
}

#[test]
fn a_long_text_is_compiled_in_parts() {
    let Some(compiler) = compiler() else { return };
    let compiler = compiler.with_cache(None);
    let library = compiler.load(&long_text(50), &OPTIONS).unwrap();
    for i in 0..50 {
        let mut found = -1;
        // SAFETY: the function writes an int to where it is told.
        unsafe { library.symbol::<unsafe extern "C" fn(&mut i32)>(&format!("f{i}")).unwrap()(&mut found) };
        assert_eq!(found, 3 * i);
    }
    let wrong = long_text(50).replace("scaled(33)", "lost(33) +");
    let error = compiler.load(&wrong, &OPTIONS).unwrap_err();
    assert!(matches!(&error, CodegenError::Failed { lines, .. } if lines.contains("error")), "{error}");
}

#[test]
fn compiled_code_is_kept_and_found_again() {
    let folder = Folder::new();
    let Some(compiler) = with_cache(&folder.0.join("new/cache")) else { return };
    assert_eq!(number(&compiler.load(&text(1), &OPTIONS).unwrap()), 1);
    assert_eq!(number(&compiler.load(&text(2), &OPTIONS).unwrap()), 2);
    assert_eq!(number(&compiler.load(&text(1), &CompilerOptions { real_f32: true, ..OPTIONS }).unwrap()), 1);
    let kept: Vec<PathBuf> = fs::read_dir(folder.0.join("new/cache")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(kept.len(), 3, "{kept:?}");
    let files = || kept.iter().map(|p| fs::metadata(p).unwrap().created().ok()).collect::<Vec<_>>();
    let before = files();
    assert_eq!(number(&compiler.load(&text(2), &OPTIONS).unwrap()), 2);
    assert_eq!(files(), before);
}

#[test]
fn a_kept_file_that_is_not_whole_is_made_again() {
    let folder = Folder::new();
    let Some(compiler) = with_cache(&folder.0) else { return };
    drop(compiler.load(&text(3), &OPTIONS).unwrap());
    let [kept] = &folder.files()[..] else { panic!("{:?}", folder.files()) };
    let whole = fs::read(kept).unwrap();
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    for broken in [&whole[..whole.len() / 2], &changed, b"", b"no shared object"] {
        fs::write(kept, broken).unwrap();
        assert_eq!(number(&compiler.load(&text(3), &OPTIONS).unwrap()), 3);
        assert_eq!(&folder.files(), std::slice::from_ref(kept));
        assert!(fs::metadata(kept).unwrap().len() > 1000);
    }
}

#[test]
fn without_a_folder_that_can_be_written_code_is_compiled_all_the_same() {
    let folder = Folder::new();
    let file = folder.0.join("file");
    fs::write(&file, "").unwrap();
    let Some(compiler) = with_cache(&file.join("below")) else { return };
    assert_eq!(number(&compiler.load(&text(4), &OPTIONS).unwrap()), 4);
}

#[test]
fn what_the_compiler_rejects_is_reported_with_its_first_errors() {
    let Some(compiler) = compiler() else { return };
    let error = compiler.load("#include \"lanes.h\"\nint f(void) { return thing; }\n", &OPTIONS).unwrap_err();
    let said = error.to_string();
    assert!(matches!(error, CodegenError::Failed { .. }), "{said}");
    assert!(said.contains("thing") && said.contains("body.c:2"), "{said}");
}

#[test]
fn a_function_that_is_not_there_is_an_error() {
    let Some(compiler) = compiler() else { return };
    let library = compiler.load(&text(5), &OPTIONS).unwrap();
    // SAFETY: the function is not there, so nothing is called.
    let found = unsafe { library.symbol::<unsafe extern "C" fn() -> i32>("nothing") };
    assert!(matches!(found, Err(CodegenError::Load(_))));
}

#[test]
fn flags_of_the_user_are_not_undone() {
    let with = |flags: &str| Compiler::new(format!("cc {flags}").as_ref()).map(|c| c.flags(&OPTIONS));
    let Ok(plain) = with("") else { return };
    assert!(plain.contains(&"-O2") && plain.iter().any(|f| f.ends_with("=native")), "{plain:?}");
    let own = with("-O3 -march=native").expect("the same compiler");
    assert!(!own.contains(&"-O2") && !own.iter().any(|f| f.ends_with("=native")), "{own:?}");
}

#[cfg(unix)]
mod shared_folders {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::process::Command;

    use super::*;
    use crate::backend::cpu::codegen::cache::Cache;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let folder = Folder::new();
        let Some(compiler) = with_cache(&folder.0) else { return };
        for open in [0o777, 0o1777, 0o770, 0o707, 0o702] {
            mode(&folder.0, open);
            let said = compiler.load(&text(6), &OPTIONS).unwrap_err().to_string();
            assert!(said.contains("other users can write to it") && said.contains("AUTOBATCH_CACHE"), "{said}");
            assert!(folder.files().is_empty());
        }
        mode(&folder.0, 0o755);
        assert_eq!(number(&compiler.load(&text(6), &OPTIONS).unwrap()), 6);
    }

    #[test]
    fn a_folder_of_another_user_is_refused() {
        let folder = Folder::new();
        // Only root can give it away.
        if std::os::unix::fs::chown(&folder.0, Some(65534), None).is_err() {
            return;
        }
        let Some(compiler) = with_cache(&folder.0) else { return };
        let said = compiler.load(&text(7), &OPTIONS).unwrap_err().to_string();
        assert!(said.contains("it belongs to another user"), "{said}");
    }

    #[test]
    fn a_file_that_others_can_write_to_a_link_a_pipe_and_a_folder_are_not_taken() {
        let folder = Folder::new();
        let Some(compiler) = with_cache(&folder.0) else { return };
        drop(compiler.load(&text(8), &OPTIONS).unwrap());
        let [kept] = &folder.files()[..] else { panic!("{:?}", folder.files()) };
        let elsewhere = folder.0.join("elsewhere");
        let again = || {
            assert_eq!(number(&compiler.load(&text(8), &OPTIONS).unwrap()), 8);
            let found = fs::symlink_metadata(kept).unwrap();
            assert!(found.is_file() && found.mode() & 0o777 == 0o600, "{found:?}");
        };
        mode(kept, 0o666);
        again();
        fs::rename(kept, &elsewhere).unwrap();
        symlink(&elsewhere, kept).unwrap();
        again();
        fs::remove_file(kept).unwrap();
        assert!(Command::new("mkfifo").arg(kept).status().unwrap().success());
        again();
        // What cannot be put aside is no error.
        fs::remove_file(kept).unwrap();
        fs::create_dir(kept).unwrap();
        fs::write(kept.join("file"), "").unwrap();
        assert_eq!(number(&compiler.load(&text(8), &OPTIONS).unwrap()), 8);
        assert_eq!(folder.files().len(), 2, "nothing half written stays: {:?}", folder.files());
    }

    #[test]
    fn what_was_not_used_for_longest_goes_when_there_is_too_much() {
        let folder = Folder::new();
        let cache = Cache::open(&folder.0).unwrap().unwrap().with_most_bytes(5000);
        let mine = folder.0.join("notes.txt");
        fs::write(&mine, vec![0; 100_000]).unwrap();
        let key = |n: u8| [n; 32];
        let old = |n: u8, seconds| {
            let name = key(n).map(|b| format!("{b:02x}")).concat() + ".so";
            let file = fs::File::open(folder.0.join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(seconds)).unwrap();
        };
        for n in 0..4 {
            cache.put(&key(n), &[n; 1000]);
            old(n, 100 - u64::from(n));
        }
        assert_eq!(cache.get(&key(0)), Some(vec![0; 1000]));
        cache.put(&key(4), &[4; 1000]);
        let kept = [0, 1, 2, 3, 4].map(|n| cache.get(&key(n)).is_some());
        assert_eq!(kept, [true, false, true, true, true]);
        cache.put(&key(5), &[5; 9000]);
        assert_eq!(cache.get(&key(5)), Some(vec![5; 9000]), "what was just made stays");
        assert!((0..5).all(|n| cache.get(&key(n)).is_none()) && mine.exists());
        assert_eq!(cache.get(&key(6)), None);
    }

    /// What the loader knows by the name of one library must not be another.
    #[test]
    fn libraries_that_come_and_go_are_not_mixed_up() {
        let Some(compiler) = compiler() else { return };
        let first = compiler.load(&text(20), &OPTIONS).unwrap();
        for n in 21..24 {
            let library = compiler.load(&text(n), &OPTIONS).unwrap();
            assert_eq!((number(&first), number(&library)), (20, n));
        }
    }

    #[test]
    fn a_kept_library_that_lacks_a_function_is_made_again() {
        let folder = Folder::new();
        let Some(compiler) = with_cache(&folder.0) else { return };
        drop(compiler.load(&text(9), &OPTIONS).unwrap());
        // Another library under its seal.
        let [kept] = &folder.files()[..] else { panic!("{:?}", folder.files()) };
        let name = kept.file_stem().unwrap().to_str().unwrap();
        let key: Vec<u8> = (0..32).map(|i| u8::from_str_radix(&name[2 * i..2 * i + 2], 16).unwrap()).collect();
        let other = folder.0.join("other");
        let elsewhere = compiler.clone().with_cache(Some(other.clone()));
        drop(elsewhere.load("int other(void) { return 1; }\n", &OPTIONS).unwrap());
        let made = fs::read_dir(&other).unwrap().next().unwrap().unwrap().path();
        let object = fs::read(made).unwrap();
        let cache = Cache::open(&folder.0).unwrap().unwrap();
        let key: [u8; 32] = key.try_into().unwrap();
        cache.put(&key, &object[..object.len() - 32]);
        // SAFETY: the pointer is not used.
        let look = |library: &Library| unsafe { library.symbol::<*const u8>("number").map(drop) };
        let (library, ()) = compiler.load_with(&text(9), &OPTIONS, look).unwrap();
        assert_eq!(number(&library), 9);
        assert_ne!(cache.get(&key).unwrap(), object[..object.len() - 32]);
    }
}

#[test]
fn a_command_is_read_as_a_shell_reads_it() {
    let Some(compiler) = compiler() else { return };
    let folder = Folder::new();
    let place = folder.0.join("a folder");
    fs::create_dir(&place).unwrap();
    let script = place.join("my cc");
    // Written by a child: were it open here, a child of another test that has not begun yet would have it open, too, and
    // what is open to be written cannot run.
    let write = "printf '#!/bin/sh\\nexec cc \"$@\"\\n' > \"$0\" && chmod 755 \"$0\"";
    assert!(std::process::Command::new("sh").args(["-c", write]).arg(&script).status().unwrap().success());
    let script = script.display();
    let commands = [script.to_string(), format!("'{script}' -O3"), format!("\"{script}\" -DX='a b'")];
    for command in commands {
        let Ok(found) = Compiler::new(command.as_ref()) else { panic!("{command}: {}", compiler.name()) };
        assert_eq!(number(&found.load(&text(10), &OPTIONS).unwrap()), 10, "{command}");
    }
    assert!(Compiler::new("'cc".as_ref()).unwrap_err().contains("a quote has no end"));
}
