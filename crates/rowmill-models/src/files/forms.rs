//! Kinds of files, as far as the protocols treat them differently.

/// The kinds of files that protocols distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileForm {
    Image,
    Pdf,
    Audio,
    Text,
    /// Anything else, such as a video.
    Other,
}

impl FileForm {
    /// The kind of a file with this media type.
    pub(crate) fn from_media_type(media_type: &str) -> Self {
        match media_type.split('/').next() {
            Some("image") => Self::Image,
            Some("audio") => Self::Audio,
            Some("text") => Self::Text,
            _ if media_type == "application/pdf" => Self::Pdf,
            _ => Self::Other,
        }
    }
}

/// Whether a media type is a name of WAV.
pub(crate) fn is_wave(media_type: &str) -> bool {
    matches!(media_type, "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave")
}

/// Gemini's name of a media type.
pub(super) fn name_for_google(media_type: &str) -> &str {
    match media_type {
        "audio/mpeg" => "audio/mp3",
        "audio/x-flac" => "audio/flac",
        "audio/x-aiff" => "audio/aiff",
        "image/jpg" => "image/jpeg",
        media_type if is_wave(media_type) => "audio/wav",
        media_type => media_type,
    }
}
