//! The parts of the library that a build may lack.

use crate::{Problem, ProblemCode};

macro_rules! features {
    ($($variant:ident = $name:literal, $what:literal;)*) => {
        /// A part of the library that is built only with its Cargo feature.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum CargoFeature { $(#[doc = $what] $variant,)* }

        impl CargoFeature {
            /// Every feature, in alphabetical order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name in `Cargo.toml`.
            #[must_use]
            pub fn name(self) -> &'static str { match self { $(Self::$variant => $name,)* } }

            /// What a build without it lacks.
            #[must_use]
            pub fn description(self) -> &'static str { match self { $(Self::$variant => $what,)* } }
        }
    };
}

features! {
    Cache = "cache", "store of answers";
    Documents = "documents", "reader of documents";
    Hub = "hub", "access to the Hugging Face hub";
    Mcp = "mcp", "client for MCP servers";
    Parquet = "parquet", "Parquet";
    Python = "python", "support for Python functions";
    Sql = "sql", "SQL";
}

impl CargoFeature {
    /// What is wrong when a build lacks it: a fragment of a message.
    ///
    /// ```
    /// # use rowmill_types::CargoFeature;
    /// assert_eq!(CargoFeature::Parquet.missing_text(), "this build has no Parquet: enable the feature `parquet`");
    /// ```
    #[must_use]
    pub fn missing_text(self) -> String {
        format!("this build has no {}: enable the feature `{}`", self.description(), self.name())
    }

    /// The problem of a command that needs a feature which the build lacks.
    #[must_use]
    pub fn missing_problem(self) -> Problem {
        Problem::new(ProblemCode::MissingFeature, self.missing_text())
            .hint(format!("build with `--features {}`, or with the default features", self.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_feature_is_named_in_message_and_hint() {
        for feature in CargoFeature::ALL {
            let problem = feature.missing_problem();
            assert_eq!(problem.code, ProblemCode::MissingFeature);
            for text in [problem.message.to_string(), problem.hint.unwrap_or_default().to_string()] {
                assert!(text.contains(feature.name()), "{text}");
            }
        }
    }
}
