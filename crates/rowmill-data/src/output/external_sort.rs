//! Sorts more than fits into memory: sorted runs in a file, merged on reading.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rowmill_types::Problem;

use super::claim::write_problem;

/// A sort entry: a key of two words, then the value that belongs to it.
pub(super) type SortEntry = [u64; 3];

const ENTRY_BYTES: usize = size_of::<SortEntry>();

/// How many entries are sorted in memory; beyond that, runs go to a file.
const IN_MEMORY: usize = 1 << 18;
/// Each run is read with a buffer of this size.
const RUN_BUFFER: usize = 32 * 1024;

/// Entries to be sorted.
pub(super) struct ExternalSorter {
    folder: PathBuf,
    entries: Vec<SortEntry>,
    in_memory: usize,
    /// The runs that were written, one after the other, and the end of each.
    runs: Option<File>,
    ends: Vec<u64>,
}

impl ExternalSorter {
    /// Runs go to an unnamed file in `folder`.
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            entries: Vec::new(),
            in_memory: IN_MEMORY,
            runs: None,
            ends: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, entry: SortEntry) -> Result<(), Problem> {
        self.entries.push(entry);
        if self.entries.len() < self.in_memory {
            return Ok(());
        }
        self.spill().map_err(|error| write_problem(&self.folder, &error))
    }

    /// Writes the entries in memory as a run.
    fn spill(&mut self) -> io::Result<()> {
        self.entries.sort_unstable();
        let file = match self.runs.take() {
            Some(file) => file,
            None => tempfile::tempfile_in(&self.folder)?,
        };
        let mut out = BufWriter::with_capacity(1 << 18, file);
        for entry in &self.entries {
            for word in entry {
                out.write_all(&word.to_le_bytes())?;
            }
        }
        self.runs = Some(out.into_inner().map_err(io::IntoInnerError::into_error)?);
        let before = self.ends.last().copied().unwrap_or_default();
        self.ends.push(before + (self.entries.len() * ENTRY_BYTES) as u64);
        self.entries.clear();
        Ok(())
    }

    /// Everything that was pushed, in order.
    pub(super) fn finish(mut self) -> Result<SortedEntries, Problem> {
        self.open_runs().map_err(|error| write_problem(&self.folder, &error))
    }

    fn open_runs(&mut self) -> io::Result<SortedEntries> {
        self.entries.sort_unstable();
        let mut sorted = SortedEntries {
            folder: std::mem::take(&mut self.folder),
            rest: std::mem::take(&mut self.entries).into_iter(),
            runs: Vec::new(),
            fronts: BinaryHeap::new(),
        };
        let mut start = 0;
        for &end in &self.ends {
            let Some(file) = &self.runs else { break };
            sorted.runs.push(SortedRun {
                file: file.try_clone()?,
                at: start,
                end,
                buffer: Vec::new(),
                used: 0,
            });
            start = end;
        }
        for run in 0..=sorted.runs.len() {
            sorted.advance(run)?;
        }
        Ok(sorted)
    }
}

/// Sorted entries, read one by one.
pub(super) struct SortedEntries {
    folder: PathBuf,
    /// The entries that stayed in memory; they count as the last run.
    rest: std::vec::IntoIter<SortEntry>,
    runs: Vec<SortedRun>,
    /// The next entry of each run.
    fronts: BinaryHeap<Reverse<(SortEntry, usize)>>,
}

/// A run that is being read. All runs share one file, so each keeps its own position.
struct SortedRun {
    file: File,
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    used: usize,
}

impl SortedEntries {
    pub(super) fn next(&mut self) -> Result<Option<SortEntry>, Problem> {
        let Some(Reverse((entry, run))) = self.fronts.pop() else { return Ok(None) };
        self.advance(run).map_err(|error| write_problem(&self.folder, &error))?;
        Ok(Some(entry))
    }

    fn advance(&mut self, run: usize) -> io::Result<()> {
        let next = match self.runs.get_mut(run) {
            Some(open) => open.next()?,
            None => self.rest.next(),
        };
        self.fronts.extend(next.map(|entry| Reverse((entry, run))));
        Ok(())
    }
}

impl SortedRun {
    fn next(&mut self) -> io::Result<Option<SortEntry>> {
        if self.used == self.buffer.len() && !self.refill()? {
            return Ok(None);
        }
        let mut entry = [0; 3];
        let bytes = self.buffer.get(self.used..self.used + ENTRY_BYTES).unwrap_or_default();
        for (word, bytes) in entry.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        self.used += ENTRY_BYTES;
        Ok(Some(entry))
    }

    /// Reads more; `false` at the end of the run.
    fn refill(&mut self) -> io::Result<bool> {
        let most = RUN_BUFFER / ENTRY_BYTES * ENTRY_BYTES;
        let length = usize::try_from(self.end - self.at).unwrap_or(most).min(most);
        self.buffer.resize(length, 0);
        self.used = 0;
        if length == 0 {
            return Ok(false);
        }
        self.file.seek(SeekFrom::Start(self.at))?;
        self.file.read_exact(&mut self.buffer)?;
        self.at += length as u64;
        Ok(true)
    }
}

/// Reads lines of a file by their offsets; fast if they follow each other.
pub(super) struct OffsetLineReader {
    reader: BufReader<File>,
    at: u64,
}

impl OffsetLineReader {
    pub(super) fn new(file: File) -> Self {
        Self { reader: BufReader::with_capacity(RUN_BUFFER, file), at: 0 }
    }

    /// Reads the line at `offset` into `line`, newline included.
    pub(super) fn read(&mut self, offset: u64, line: &mut Vec<u8>) -> io::Result<()> {
        use std::io::BufRead;
        let step = i64::try_from(offset).unwrap_or(i64::MAX) - i64::try_from(self.at).unwrap_or(i64::MAX);
        self.reader.seek_relative(step)?;
        line.clear();
        let read = self.reader.read_until(b'\n', line)?;
        self.at = offset + read as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_into_memory_is_sorted_just_as_what_does() {
        let home = tempfile::tempdir().unwrap();
        let entries: Vec<SortEntry> =
            (0..10_000u64).map(|n| [n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50, n % 7, n]).collect();
        let mut expected = entries.clone();
        expected.sort_unstable();
        for in_memory in [100, 3_333, 20_000] {
            let mut sorter = ExternalSorter { in_memory, ..ExternalSorter::new(home.path()) };
            entries.iter().for_each(|entry| sorter.push(*entry).unwrap());
            let mut sorted = sorter.finish().unwrap();
            let mut found = Vec::new();
            while let Some(entry) = sorted.next().unwrap() {
                found.push(entry);
            }
            assert_eq!(found, expected, "{in_memory} in memory");
        }
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "no litter");
    }
}
