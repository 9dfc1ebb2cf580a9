//! Segment files: append-only, numbered, in one directory.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::SpoolError;
use super::entry::{self, Entry};

/// Position of a segment in the order of writing.
pub(super) type SegmentId = u64;

/// The file of a segment.
pub(super) fn path(dir: &Path, id: SegmentId) -> PathBuf {
    dir.join(format!("{id:016x}.seg"))
}

/// The segments of a directory, oldest first.
pub(super) fn list(dir: &Path) -> Result<Vec<SegmentId>, SpoolError> {
    let mut ids = Vec::new();
    for file in std::fs::read_dir(dir).map_err(SpoolError::io("list the spool directory", dir))? {
        let file = file.map_err(SpoolError::io("list the spool directory", dir))?;
        let name = file.file_name();
        let id = name
            .to_str()
            .and_then(|name| name.strip_suffix(".seg"))
            .and_then(|digits| u64::from_str_radix(digits, 16).ok());
        ids.extend(id);
    }
    ids.sort_unstable();
    Ok(ids)
}

/// What a segment holds, for delivery and for forgetting it.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// Whole entries end here.
    pub(super) len: u64,
    /// First and last record number of each epoch.
    pub(super) records: BTreeMap<u64, (u64, u64)>,
}

impl Summary {
    pub(super) fn add(&mut self, epoch: u64, n: u64) {
        self.records
            .entry(epoch)
            .and_modify(|(_, last)| *last = n)
            .or_insert((n, n));
    }
}

/// The segment that is written to.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) id: SegmentId,
    pub(super) file: Arc<File>,
    path: PathBuf,
    /// Whole entries end here.
    len: u64,
    /// Bytes behind `len` could not be taken back: nothing may be appended any more.
    torn: bool,
}

impl Active {
    /// Makes a new segment, whose name survives a power failure once this returns.
    pub(super) fn create(dir: &Path, id: SegmentId, durable: bool) -> Result<Self, SpoolError> {
        let path = path(dir, id);
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        restrict(&mut options);
        let file = options
            .open(&path)
            .map_err(SpoolError::io("create the spool segment", &path))?;
        if durable {
            File::open(dir)
                .and_then(|dir| dir.sync_all())
                .map_err(SpoolError::io("flush the spool directory", dir))?;
        }
        Ok(Self {
            id,
            file: Arc::new(file),
            path,
            len: 0,
            torn: false,
        })
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn is_torn(&self) -> bool {
        self.torn
    }

    /// Appends whole frames. After an error the segment ends where it did before, or takes nothing more.
    pub(super) fn append(&mut self, frames: &[u8]) -> Result<(), SpoolError> {
        if self.torn {
            let error = std::io::Error::other("an earlier write was cut off");
            return Err(SpoolError::io("append to the spool segment", &self.path)(error));
        }
        match (&*self.file).write_all(frames) {
            Ok(()) => {
                self.len += frames.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.torn = self.file.set_len(self.len).is_err();
                Err(SpoolError::io("append to the spool segment", &self.path)(error))
            }
        }
    }
}

fn restrict(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
}

/// Reads the bytes of a segment from `offset` up to `end`, at most `limit` of them but at least one whole frame.
pub(super) fn read(
    dir: &Path,
    id: SegmentId,
    offset: u64,
    end: u64,
    limit: u64,
) -> Result<Bytes, SpoolError> {
    let path = path(dir, id);
    let mut file = File::open(&path).map_err(SpoolError::io("open the spool segment", &path))?;
    let mut wanted = end.saturating_sub(offset).min(limit);
    loop {
        file.seek(SeekFrom::Start(offset))
            .map_err(SpoolError::io("read the spool segment", &path))?;
        let mut bytes = Vec::new();
        (&mut file)
            .take(wanted)
            .read_to_end(&mut bytes)
            .map_err(SpoolError::io("read the spool segment", &path))?;
        let first = entry::peek_len(&bytes).unwrap_or(0) as u64;
        if first <= wanted || offset + wanted >= end {
            return Ok(bytes.into());
        }
        wanted = first.min(end.saturating_sub(offset));
    }
}

/// Reads all whole entries of a segment in order; returns where they end.
pub(super) fn scan(dir: &Path, id: SegmentId, mut each: impl FnMut(Entry)) -> Result<u64, SpoolError> {
    let path = path(dir, id);
    let bytes = std::fs::read(&path).map_err(SpoolError::io("read the spool segment", &path))?;
    let whole = bytes.len();
    let mut rest = Bytes::from(bytes);
    while let Some(entry) = entry::decode(&mut rest) {
        each(entry);
    }
    if !rest.is_empty() {
        tracing::warn!(segment = %path.display(), bytes = rest.len(), "the end of a spool segment is torn and is left out");
    }
    Ok((whole - rest.len()) as u64)
}
