//! Which files providers accept, as data. A limit that is not documented errs on the side of asking the
//! provider: a rejected request costs nothing, but a row that is never sent cannot be fixed.

use rowmill_types::{AttachmentKind, AttachmentRules};

use crate::build_model::ModelSetup;

const MIB: u64 = 1024 * 1024;

/// Media types and the maximum size of each such file.
#[derive(Debug, PartialEq)]
pub(crate) struct FileGroup {
    pub(crate) media_types: &'static [&'static str],
    pub(crate) max_bytes: u64,
}

/// Where a provider stores files that are too large to be sent with every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileStorage {
    /// Nowhere.
    None,
    OpenAi,
    Anthropic,
    Google,
}

/// Which files a provider accepts.
#[derive(Debug, PartialEq)]
pub(crate) struct AcceptedFiles {
    pub(crate) groups: &'static [FileGroup],
    /// The maximum size of all files in the body of a request, after encoding.
    pub(crate) inline: u64,
    /// The maximum size of all files of a request before encoding.
    pub(crate) total: u64,
    pub(crate) count: usize,
    pub(crate) storage: FileStorage,
}

impl AcceptedFiles {
    /// The group that a file of this media type belongs to.
    pub(crate) fn group(&self, media_type: &str) -> Option<&'static FileGroup> {
        let fits = |pattern: &&str| match pattern.strip_suffix('*') {
            Some(family) => media_type.starts_with(family),
            None => media_type == *pattern,
        };
        self.groups.iter().find(|group| group.media_types.iter().any(&fits))
    }
}

/// Which files a model accepts, according to its provider's documentation.
///
/// `max_total` counts bytes before encoding: if files can only be sent inside a request, it is reduced by the
/// overhead of base64. A model may still reject files that its provider accepts in general.
#[must_use]
pub fn attachment_rules(setup: &ModelSetup) -> AttachmentRules {
    let taken = setup.connection.quirks.files;
    let kinds = taken.groups.iter().flat_map(|group| {
        let max_bytes = group.max_bytes;
        group.media_types.iter().map(move |&media_type| AttachmentKind { media_type, max_bytes })
    });
    AttachmentRules { kinds: kinds.collect(), max_total: taken.total, max_count: taken.count }
}

const COMMON_IMAGES: &[&str] = &["image/png", "image/jpeg", "image/webp", "image/gif"];
const PDF: &[&str] = &["application/pdf"];
const WAV_AND_MP3: &[&str] =
    &["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave", "audio/mpeg", "audio/mp3"];
/// More text than fits the longest context of any of these providers.
const TEXT: FileGroup = FileGroup { media_types: &["text/*"], max_bytes: 20 * MIB };

/// OpenAI's guide to images: png, jpeg, webp and gif, 50 MB for the whole request, 500 images. Its guide to
/// files: 50 MB for a PDF and for all of a request. Its guide to audio: wav and mp3 in chat completions,
/// limited by the size of the request. The text of the prompt needs room too.
pub(crate) const OPENAI_FILES: AcceptedFiles = AcceptedFiles {
    groups: &[
        FileGroup { media_types: COMMON_IMAGES, max_bytes: 36 * MIB },
        FileGroup { media_types: PDF, max_bytes: 50 * MIB },
        FileGroup { media_types: WAV_AND_MP3, max_bytes: 36 * MIB },
        TEXT,
    ],
    inline: 49 * MIB,
    total: 50 * MIB,
    count: 500,
    storage: FileStorage::OpenAi,
};

/// Anthropic's guide to images: jpeg, png, gif and webp, 600 of them (100 for models with a context of
/// 200,000 tokens). The size limit of an image has changed, from 5 MB; 10 MB leaves the decision to the
/// provider. Its guide to PDFs: 32 MB for the request; its Files API takes 500 MB a file.
pub(crate) const ANTHROPIC_FILES: AcceptedFiles = AcceptedFiles {
    groups: &[
        FileGroup { media_types: COMMON_IMAGES, max_bytes: 10 * MIB },
        FileGroup { media_types: PDF, max_bytes: 500 * MIB },
        TEXT,
    ],
    inline: 31 * MIB,
    total: 500 * MIB,
    count: 600,
    storage: FileStorage::Anthropic,
};

/// Gemini's guides: images png, jpeg, webp, heic and heif, 3,600 of them; PDFs of 50 MB; audio wav, mp3,
/// aiff, aac, ogg and flac; videos. A request may have 20 MB in the version that all servers support (100 MB
/// in the newest), a file in the Files API 2 GB.
pub(crate) const GOOGLE_FILES: AcceptedFiles = AcceptedFiles {
    groups: &[
        FileGroup {
            media_types: &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"],
            max_bytes: 2048 * MIB,
        },
        FileGroup { media_types: PDF, max_bytes: 50 * MIB },
        FileGroup { media_types: WAV_AND_MP3, max_bytes: 2048 * MIB },
        FileGroup {
            media_types: &[
                "audio/aiff",
                "audio/x-aiff",
                "audio/aac",
                "audio/ogg",
                "audio/flac",
                "audio/x-flac",
                "video/mp4",
                "video/mpeg",
                "video/webm",
            ],
            max_bytes: 2048 * MIB,
        },
        TEXT,
    ],
    inline: 19 * MIB,
    total: 2048 * MIB,
    count: 3600,
    storage: FileStorage::Google,
};

/// A server of which only compatibility is known: images in the common format, and text. Sizes are not
/// documented, so OpenAI's are used.
pub(crate) const IMAGES_ONLY: AcceptedFiles = AcceptedFiles {
    groups: &[FileGroup { media_types: COMMON_IMAGES, max_bytes: 36 * MIB }, TEXT],
    inline: 49 * MIB,
    total: 36 * MIB,
    count: 100,
    storage: FileStorage::None,
};

/// Alibaba's guide: images of 10 MB as data URLs.
pub(crate) const ALIYUN_FILES: AcceptedFiles = AcceptedFiles {
    groups: &[FileGroup { media_types: COMMON_IMAGES, max_bytes: 10 * MIB }, TEXT],
    ..IMAGES_ONLY
};

/// DeepSeek's API accepts only text.
pub(crate) const TEXT_ONLY: AcceptedFiles = AcceptedFiles { groups: &[TEXT], total: 20 * MIB, ..IMAGES_ONLY };

/// OpenRouter's guide: images, PDFs for every model (it reads them itself if the model cannot), wav and mp3;
/// no sizes.
pub(crate) const OPENROUTER_FILES: AcceptedFiles = AcceptedFiles {
    groups: &[
        FileGroup { media_types: COMMON_IMAGES, max_bytes: 36 * MIB },
        FileGroup { media_types: PDF, max_bytes: 36 * MIB },
        FileGroup { media_types: WAV_AND_MP3, max_bytes: 36 * MIB },
        TEXT,
    ],
    ..IMAGES_ONLY
};

/// Groq's guide: 4 MB for a request with encoded images, five images.
pub(crate) const GROQ_FILES: AcceptedFiles = AcceptedFiles {
    groups: &[FileGroup { media_types: COMMON_IMAGES, max_bytes: 3 * MIB }, TEXT],
    inline: 4 * MIB,
    total: 3 * MIB,
    count: 5,
    storage: FileStorage::None,
};

/// Mistral's guide: images of 10 MB, eight of them.
pub(crate) const MISTRAL_FILES: AcceptedFiles = AcceptedFiles {
    groups: &[FileGroup { media_types: COMMON_IMAGES, max_bytes: 10 * MIB }, TEXT],
    count: 8,
    ..IMAGES_ONLY
};

/// xAI's guide: jpeg and png of 20 MB, any number.
pub(crate) const XAI_FILES: AcceptedFiles = AcceptedFiles {
    groups: &[FileGroup { media_types: &["image/jpeg", "image/png"], max_bytes: 20 * MIB }, TEXT],
    ..IMAGES_ONLY
};

/// Built-in models accept everything.
pub(crate) const BUILT_IN_FILES: AcceptedFiles = AcceptedFiles {
    groups: &[FileGroup {
        media_types: &["text/*", "image/*", "audio/*", "video/*", "application/*", "font/*", "model/*"],
        max_bytes: 1 << 40,
    }],
    inline: 1 << 40,
    total: 1 << 40,
    count: usize::MAX,
    storage: FileStorage::None,
};
