//! Compiled code, loaded.

use std::fs;
use std::path::Path;

use crate::backend::cpu::codegen::compiler::{CodegenError, Workspace};

/// Compiled code, loaded. Its functions are there until it is dropped.
#[derive(Debug)]
pub struct Library {
    library: libloading::Library,
    /// What it was loaded from. The loader knows libraries by name, and this one's is the number of the descriptor: it
    /// must not be another's while this one is loaded. So it stands, and is dropped, after it.
    #[cfg(target_os = "linux")]
    _memory: Option<fs::File>,
}

impl Library {
    /// Loads a shared object that is in memory, from a copy that nobody else can change: one in memory, or where the
    /// system has no such thing or runs no code from there, a file in a private folder in the first of these places
    /// that serves.
    pub(super) fn load(object: &[u8], places: &[&Path]) -> Result<Self, CodegenError> {
        #[cfg(target_os = "linux")]
        if let Some(library) = Self::in_memory(object) {
            return Ok(library);
        }
        Workspace::in_one_of(places, |work| {
            let path = work.path("copy.so");
            fs::write(&path, object).map_err(|error| CodegenError::Io { path: path.clone(), error })?;
            // SAFETY: as below.
            let library = unsafe { libloading::Library::new(&path)? };
            Ok(Self {
                library,
                #[cfg(target_os = "linux")]
                _memory: None,
            })
        })
    }

    #[cfg(target_os = "linux")]
    fn in_memory(object: &[u8]) -> Option<Self> {
        use std::io::Write as _;
        use std::os::fd::AsRawFd as _;

        use nix::fcntl::{FcntlArg, SealFlag, fcntl};
        use nix::sys::memfd::{MFdFlags, memfd_create};

        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let mut memory = fs::File::from(memfd_create(c"autobatch", flags).ok()?);
        memory.write_all(object).ok()?;
        let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_SEAL;
        fcntl(&memory, FcntlArg::F_ADD_SEALS(seals)).ok()?;
        // SAFETY: this is what the compiler made of a text of ours, in this run or in one of this user's whose seal it
        // has. Such a text has no constructors, so loading it runs no code but that of the C library.
        let library = unsafe { libloading::Library::new(format!("/proc/self/fd/{}", memory.as_raw_fd())) };
        library.ok().map(|library| Self { library, _memory: Some(memory) })
    }

    /// The address of a function of the text, as a pointer to it.
    ///
    /// # Safety
    ///
    /// `F` is the type of a function pointer (`unsafe extern "C" fn(…)`) with the parameters and the result that the
    /// function of this name has in the C text, and the pointer is not called after the library is dropped.
    pub unsafe fn symbol<F: Copy>(&self, name: &str) -> Result<F, CodegenError> {
        // SAFETY: the caller answers for the type; `libloading` checks that it has the size of a pointer.
        let symbol = unsafe { self.library.get::<F>(name)? };
        Ok(*symbol)
    }
}
