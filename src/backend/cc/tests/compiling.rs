//! Finding the compiler, its messages, and the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::compiler;
use crate::backend::cc::compiler::{CodegenError, Compiler, Library, Options, Target};

const OPTIONS: Options = Options { real_f32: false, target: Target::Native };

/// A folder of this test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("autobatch-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
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

#[test]
fn compiled_code_is_kept_and_found_again() {
    let folder = Folder::new();
    let Some(compiler) = with_cache(&folder.0.join("new/cache")) else { return };
    assert_eq!(number(&compiler.load(&text(1), &OPTIONS).unwrap()), 1);
    assert_eq!(number(&compiler.load(&text(2), &OPTIONS).unwrap()), 2);
    assert_eq!(number(&compiler.load(&text(1), &Options { real_f32: true, ..OPTIONS }).unwrap()), 1);
    let kept: Vec<PathBuf> = fs::read_dir(folder.0.join("new/cache")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(kept.len(), 3, "{kept:?}");
    let times = || kept.iter().map(|p| fs::metadata(p).unwrap().modified().unwrap()).collect::<Vec<_>>();
    let before = times();
    assert_eq!(number(&compiler.load(&text(2), &OPTIONS).unwrap()), 2);
    assert_eq!(times(), before);
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
