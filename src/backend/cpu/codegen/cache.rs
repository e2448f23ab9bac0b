//! The folder in which compiled code is kept. What lies there runs as this user, so it is taken only from a folder and
//! from files that nobody else can write to, through descriptors: what was looked at is what is read, whatever happens
//! to the names.

use sha2::{Digest as _, Sha256};

use crate::backend::cpu::codegen::compiler::CodegenError;

/// 256 bits that tell values apart, and that nobody can find another value for.
pub(in crate::backend) type Key = [u8; 32];

/// The digest of these parts, one after the other.
pub(in crate::backend) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Key {
    let mut hasher = Sha256::new();
    for part in parts {
        // With its length, so that no two lists look alike.
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// Compiled code as it is kept: behind it stands the digest of it and its key.
fn seal(object: &[u8], key: &Key) -> Key {
    digest([object, key])
}

/// The code, if this is all of what was kept under the key.
fn unsealed(mut bytes: Vec<u8>, key: &Key) -> Option<Vec<u8>> {
    let (object, found) = bytes.split_last_chunk::<32>()?;
    let whole = seal(object, key) == *found;
    bytes.truncate(bytes.len() - 32);
    whole.then_some(bytes)
}

#[cfg(unix)]
pub(in crate::backend) use unix::{Cache, why_unsafe};

#[cfg(unix)]
mod unix {
    use std::ffi::{CStr, CString};
    use std::fs::File;
    use std::io::{Read as _, Write as _};
    use std::os::fd::OwnedFd;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::SystemTime;

    use nix::dir::Dir;
    use nix::fcntl::{AtFlags, OFlag, open, openat, renameat};
    use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, stat};
    use nix::unistd::{AccessFlags, UnlinkatFlags, faccessat, geteuid, unlinkat};

    use super::{CodegenError, Key, seal, unsealed};

    /// Bytes that the folder may keep; what was not used for longest goes first.
    const MOST_BYTES: i64 = 256 << 20;
    /// A larger file is none of ours.
    const LARGEST: i64 = 64 << 20;
    /// After so many seconds a file that is being written was left behind by a process that was killed.
    const STALE: i64 = 24 * 3600;
    /// What the names of files that are being written start with.
    const NEW: &str = "new-";

    /// A folder of compiled code that nobody else can write to.
    #[derive(Debug)]
    pub(in crate::backend) struct Cache {
        folder: OwnedFd,
        most_bytes: i64,
    }

    impl Cache {
        /// Opens the folder and makes it, private, if it is not there; `None` where that fails.
        ///
        /// # Errors
        /// [`CodegenError::Untrusted`] where it belongs to another user or others can write to it.
        pub(in crate::backend) fn open(path: &Path) -> Result<Option<Self>, CodegenError> {
            let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
            if super::super::compiler::create_private(path, true).is_err() {
                return Ok(None);
            }
            let Ok(folder) = open(path, flags, Mode::empty()) else { return Ok(None) };
            let Ok(found) = fstat(&folder) else { return Ok(None) };
            match why_not_ours(&found) {
                Some(why) => Err(CodegenError::Untrusted { path: path.to_owned(), why }),
                None => Ok(Some(Self { folder, most_bytes: MOST_BYTES })),
            }
        }

        /// The same folder with another bound on what it keeps.
        #[cfg(test)]
        pub(in crate::backend) fn with_most_bytes(self, most_bytes: i64) -> Self {
            Self { most_bytes, ..self }
        }

        /// What was kept under this key, whole and unchanged. A file that is none, or that others can write to, is as
        /// good as none: it is made again.
        pub(in crate::backend) fn get(&self, key: &Key) -> Option<Vec<u8>> {
            // A pipe is not waited for, and a link not followed.
            let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
            let mut file = File::from(openat(&self.folder, &*name(key), flags, Mode::empty()).ok()?);
            let found = fstat(&file).ok()?;
            if !is_file(&found) || why_not_ours(&found).is_some() || found.st_size > LARGEST {
                return None;
            }
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).ok()?;
            let object = unsealed(bytes, key)?;
            // That it was used now is worth no error.
            let _ = file.set_modified(SystemTime::now());
            Some(object)
        }

        /// Keeps code under a key. Where that fails, for want of room or of rights, it is not kept.
        pub(in crate::backend) fn put(&self, key: &Key, object: &[u8]) {
            static COUNT: AtomicU64 = AtomicU64::new(0);
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
            let new = format!("{NEW}{}-{count}-{time}", std::process::id());
            if self.write(&new, object, key).is_err()
                || renameat(&self.folder, new.as_str(), &self.folder, &*name(key)).is_err()
            {
                let _ = unlinkat(&self.folder, new.as_str(), UnlinkatFlags::NoRemoveDir);
            }
            self.prune(&name(key));
        }

        /// Whether files can be made in it.
        pub(in crate::backend) fn takes(&self) -> bool {
            let access = AccessFlags::W_OK | AccessFlags::X_OK;
            faccessat(&self.folder, ".", access, AtFlags::AT_EACCESS).is_ok()
        }

        fn write(&self, name: &str, object: &[u8], key: &Key) -> std::io::Result<()> {
            let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let mut file = File::from(openat(&self.folder, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
            file.write_all(object)?;
            file.write_all(&seal(object, key))
        }

        /// Removes what was not used for longest until the rest is small enough, but not `spared`. Other files of the
        /// folder stay.
        fn prune(&self, spared: &str) {
            let mut kept = self.entries();
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
            kept.sort_by_key(|(_, found)| (found.st_mtime, found.st_mtime_nsec));
            let mut total: i64 = kept.iter().map(|(_, found)| found.st_size).sum();
            for (name, found) in kept {
                let new = name.to_bytes().starts_with(NEW.as_bytes());
                let stale = new && found.st_mtime.saturating_add(STALE) < now as i64;
                let goes = stale || (!new && total > self.most_bytes && name.to_bytes() != spared.as_bytes());
                if goes && unlinkat(&self.folder, &*name, UnlinkatFlags::NoRemoveDir).is_ok() {
                    total -= found.st_size;
                }
            }
        }

        /// The files of the folder that are named as ours.
        fn entries(&self) -> Vec<(CString, FileStat)> {
            let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
            let Ok(mut folder) = Dir::openat(&self.folder, ".", flags, Mode::empty()) else { return Vec::new() };
            let names: Vec<CString> = folder.iter().flatten().map(|entry| entry.file_name().to_owned()).collect();
            let look = |name: CString| {
                let found = fstatat(&self.folder, &*name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
                (is_file(&found) && is_ours(&name)).then_some((name, found))
            };
            names.into_iter().filter_map(look).collect()
        }
    }

    fn name(key: &Key) -> String {
        key.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + ".so"
    }

    /// Whether this code gives a file such a name; names of 32 digits are those of earlier versions.
    fn is_ours(name: &CStr) -> bool {
        let Ok(name) = name.to_str() else { return false };
        let digits = name.strip_suffix(".so").filter(|d| d.len() == 32 || d.len() == 64);
        name.starts_with(NEW) || digits.is_some_and(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))
    }

    fn is_file(found: &FileStat) -> bool {
        SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG
    }

    /// Why others may change what this is; `None` where it is this user's own, or root's, and nobody else may write to
    /// it.
    fn why_not_ours(found: &FileStat) -> Option<&'static str> {
        let others = Mode::S_IWGRP | Mode::S_IWOTH;
        if found.st_uid != geteuid().as_raw() && found.st_uid != 0 {
            Some("it belongs to another user")
        } else if Mode::from_bits_truncate(found.st_mode).intersects(others) {
            Some("other users can write to it")
        } else {
            None
        }
    }

    /// Why others could put another folder in the place of one that is made in here: the first folder on the way to it
    /// that they may write to, and that is not one for all in which everybody keeps what is his own, as `/tmp` is.
    pub(in crate::backend) fn why_unsafe(path: &Path) -> Option<CodegenError> {
        let path = path.canonicalize().ok()?;
        path.ancestors().find_map(|folder| {
            let found = stat(folder).ok()?;
            let sticky = Mode::from_bits_truncate(found.st_mode).contains(Mode::S_ISVTX);
            let owned = found.st_uid == geteuid().as_raw() || found.st_uid == 0;
            let why = why_not_ours(&found).filter(|_| !(sticky && owned))?;
            Some(CodegenError::Untrusted { path: PathBuf::from(folder), why })
        })
    }
}

#[cfg(not(unix))]
pub(in crate::backend) use elsewhere::{Cache, why_unsafe};

/// Where nothing tells who owns a file, nothing is kept.
#[cfg(not(unix))]
mod elsewhere {
    use std::path::Path;

    use super::{CodegenError, Key};

    #[derive(Debug)]
    pub(in crate::backend) struct Cache;

    impl Cache {
        pub(in crate::backend) fn open(_: &Path) -> Result<Option<Self>, CodegenError> {
            Ok(None)
        }
        pub(in crate::backend) fn get(&self, _: &Key) -> Option<Vec<u8>> {
            None
        }
        pub(in crate::backend) fn put(&self, _: &Key, _: &[u8]) {}
        pub(in crate::backend) fn takes(&self) -> bool {
            false
        }
    }

    pub(in crate::backend) fn why_unsafe(_: &Path) -> Option<CodegenError> {
        None
    }
}
