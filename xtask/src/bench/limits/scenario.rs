//! The runs whose use of limits is measured, and the commands for them.

use std::process::Command;

use super::sizes::SizeSpread;
use crate::bench::context::{BenchContext, BenchLength};
use crate::bench::server::SimulatorProcess;

/// How a provider reports its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitForm {
    /// Requests, and tokens of both directions together.
    OpenAi,
    /// Requests, input tokens and output tokens.
    Anthropic,
}

/// How the rows are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendManner {
    /// Without any settings.
    Auto,
    /// Up to 64 at once whatever the limits are, until calls are rejected.
    Fixed,
}

impl SendManner {
    pub(super) fn shown(self) -> &'static str {
        match self {
            Self::Auto => "rowmill, nothing set",
            Self::Fixed => "`--parallel 64 --pace off`",
        }
    }
}

/// Rows of certain sizes for a provider with certain limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct LimitScenario {
    pub(super) form: LimitForm,
    pub(super) spread: SizeSpread,
    /// The mean tokens of a prompt.
    pub(super) prompt: f64,
    /// The tokens of an answer, in the simulator's notation.
    pub(super) answer: &'static str,
}

const fn scenario(form: LimitForm, spread: SizeSpread, prompt: f64, answer: &'static str) -> LimitScenario {
    LimitScenario { form, spread, prompt, answer }
}

/// For each form and spread one with small rows, which reach the limit on requests first, and one with large
/// rows, which reach one on tokens first.
pub(super) const ALL: [LimitScenario; 8] = [
    scenario(LimitForm::OpenAi, SizeSpread::Uniform, 50.0, "uniform:10..40"),
    scenario(LimitForm::OpenAi, SizeSpread::Uniform, 100.0, "uniform:20..80"),
    scenario(LimitForm::OpenAi, SizeSpread::HeavyTailed, 40.0, "lognormal:18,1.0"),
    scenario(LimitForm::OpenAi, SizeSpread::HeavyTailed, 90.0, "lognormal:36,1.0"),
    scenario(LimitForm::Anthropic, SizeSpread::Uniform, 45.0, "uniform:5..35"),
    scenario(LimitForm::Anthropic, SizeSpread::Uniform, 120.0, "uniform:20..60"),
    scenario(LimitForm::Anthropic, SizeSpread::HeavyTailed, 40.0, "lognormal:12,1.0"),
    scenario(LimitForm::Anthropic, SizeSpread::HeavyTailed, 60.0, "lognormal:36,1.0"),
];

/// When limits change and when the run ends, in minutes.
#[derive(Debug, Clone, Copy)]
pub(super) struct LimitSchedule {
    pub(super) halved: u64,
    pub(super) doubled: u64,
    pub(super) end: u64,
}

impl LimitSchedule {
    pub(super) fn of(length: BenchLength) -> Self {
        match length {
            BenchLength::Full => Self { halved: 3, doubled: 5, end: 8 },
            BenchLength::Quick => Self { halved: 1, doubled: 2, end: 4 },
        }
    }

    /// Periods with constant limits, from one minute up to another: all but the first minute, when the
    /// buckets are full, and the last, when the run ends.
    pub(super) fn phases(self) -> Vec<std::ops::Range<usize>> {
        let bounds = [1, self.halved, self.doubled, self.end - 1].map(|minute| minute as usize);
        bounds.windows(2).map(|pair| pair[0]..pair[1]).filter(|phase| !phase.is_empty()).collect()
    }
}

impl LimitForm {
    /// The limits, `factor` times their initial values, as names and values.
    fn limits(self, factor: f64) -> Vec<(&'static str, u64)> {
        let scaled = |limit: f64| (limit * factor) as u64;
        match self {
            Self::OpenAi => vec![("rpm", scaled(600.0)), ("tpm", scaled(60_000.0))],
            Self::Anthropic => {
                vec![("rpm", scaled(600.0)), ("itpm", scaled(40_000.0)), ("otpm", scaled(20_000.0))]
            }
        }
    }

    fn change(self, minute: u64, factor: f64) -> String {
        let limits = self.limits(factor);
        let changes: Vec<String> = limits.iter().map(|(name, limit)| format!("{name}={limit}")).collect();
        format!("{minute}m:{}", changes.join(","))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "OpenAI",
            Self::Anthropic => "Anthropic",
        }
    }

    fn model(self) -> &'static str {
        match self {
            Self::OpenAi => "openai.gpt-5.4-mini",
            Self::Anthropic => "anthropic.claude-haiku-4-5",
        }
    }
}

impl LimitScenario {
    /// The flags of the simulator.
    pub(super) fn script(&self, schedule: LimitSchedule) -> Vec<String> {
        let mut flags: Vec<String> = self
            .form
            .limits(1.0)
            .iter()
            .flat_map(|(name, limit)| [format!("--{name}"), limit.to_string()])
            .collect();
        for (minute, factor) in [(schedule.halved, 0.5), (schedule.doubled, 2.0)] {
            flags.extend(["--at".to_owned(), self.form.change(minute, factor)]);
        }
        let answers = ["--latency", "lognormal:1s,0.5", "--answer-tokens", self.answer];
        flags.extend(answers.map(ToOwned::to_owned));
        flags
    }

    /// The run, on a file of the benchmark's folder.
    pub(super) fn run(
        &self,
        context: &BenchContext,
        files: (&str, &str),
        manner: SendManner,
        server: &SimulatorProcess,
    ) -> Command {
        let mut command = context.run(files.0, files.1, self.form.model());
        command.args(["--overwrite", "-p", "{{text}}"]);
        command.args(["--deadline", &format!("{}m", LimitSchedule::of(context.length).end)]);
        if manner == SendManner::Fixed {
            command.args(["--parallel", "64", "--pace", "off", "--retries", "1000"]);
        }
        match self.form {
            LimitForm::OpenAi => command.env("OPENAI_BASE_URL", server.base_url()).env("OPENAI_API_KEY", "x"),
            LimitForm::Anthropic => command
                .env("ANTHROPIC_BASE_URL", format!("http://{}", server.address()))
                .env("ANTHROPIC_API_KEY", "x"),
        };
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_halved_and_then_twice_what_they_were_and_only_whole_phases_count() {
        let schedule = LimitSchedule::of(BenchLength::Full);
        let script = ALL[4].script(schedule).join(" ");
        assert!(script.starts_with("--rpm 600 --itpm 40000 --otpm 20000 "), "{script}");
        assert!(script.contains("--at 3m:rpm=300,itpm=20000,otpm=10000"), "{script}");
        assert!(script.contains("--at 5m:rpm=1200,itpm=80000,otpm=40000"), "{script}");
        assert_eq!(schedule.phases(), [1..3, 3..5, 5..7]);
        assert_eq!(LimitSchedule::of(BenchLength::Quick).phases(), [1..2, 2..3]);
    }
}
