//! Decompresses gzip and zstd while reading, in constant memory.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::GzDecoder;

/// How many compressed bytes are requested from the system at once.
const BLOCK: usize = 64 * 1024;

/// How an input is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompressionFormat {
    Gzip,
    Zstd,
}

impl CompressionFormat {
    /// Detected from the first bytes, whatever the name of the input is.
    pub(crate) fn detect(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            // A frame, or one of the skippable frames that tools put before it.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The name of the compression in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// Compressed bytes, counted as they are consumed.
struct CountingReader {
    input: io::Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>,
    count: u64,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

type CompressedReader = BufReader<CountingReader>;

enum Decoder {
    Gzip(Box<GzDecoder<CompressedReader>>),
    Zstd(zstd::stream::read::Decoder<'static, CompressedReader>),
    /// Everything was decompressed, from this many compressed bytes.
    Ended(u64),
}

/// Reads the decompressed content of an input.
pub(crate) struct Decompressor {
    packing: CompressionFormat,
    decoder: Decoder,
}

impl Decompressor {
    /// Decompresses `input`, of which `begun` was already read.
    pub(crate) fn new(
        packing: CompressionFormat,
        begun: Vec<u8>,
        input: Box<dyn Read + Send>,
    ) -> io::Result<Self> {
        let packed = CountingReader { input: Cursor::new(begun).chain(input), count: 0 };
        let packed = BufReader::with_capacity(BLOCK, packed);
        let decoder = match packing {
            CompressionFormat::Gzip => Decoder::Gzip(Box::new(GzDecoder::new(packed))),
            CompressionFormat::Zstd => Decoder::Zstd(zstd::stream::read::Decoder::with_buffer(packed)?),
        };
        Ok(Self { packing, decoder })
    }

    pub(crate) fn packing(&self) -> CompressionFormat {
        self.packing
    }

    /// How many compressed bytes were used.
    pub(crate) fn used(&self) -> u64 {
        let of = |packed: &CompressedReader| packed.get_ref().count - packed.buffer().len() as u64;
        match &self.decoder {
            Decoder::Gzip(gzip) => of(gzip.get_ref()),
            Decoder::Zstd(zstd) => of(zstd.get_ref()),
            Decoder::Ended(used) => *used,
        }
    }

    /// Continues with the next member of a gzip file, if there is one. The zeros with which some tools pad
    /// the last block are not a member.
    fn next_member(&mut self) -> io::Result<()> {
        let used = self.used();
        let Decoder::Gzip(ended) = std::mem::replace(&mut self.decoder, Decoder::Ended(used)) else {
            return Ok(());
        };
        let mut packed = ended.into_inner();
        loop {
            let available = packed.fill_buf()?;
            let zeros = available.iter().take_while(|byte| **byte == 0).count();
            if zeros < available.len() {
                self.decoder = Decoder::Gzip(Box::new(GzDecoder::new(packed)));
                return Ok(());
            }
            if zeros == 0 {
                self.decoder = Decoder::Ended(packed.get_ref().count);
                return Ok(());
            }
            packed.consume(zeros);
        }
    }
}

impl Read for Decompressor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = match &mut self.decoder {
                Decoder::Gzip(gzip) => gzip.read(buffer)?,
                // It reads further frames itself.
                Decoder::Zstd(zstd) => return zstd.read(buffer),
                Decoder::Ended(_) => return Ok(0),
            };
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.next_member()?;
        }
    }
}
