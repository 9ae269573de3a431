//! Contradictions in a spec. The command checks flags against each other when it reads them; this does
//! the same for specs, which people also write by hand.

use std::time::Duration;

use rowmill_data::SqlEngine;

use crate::agent_options::AgentOptions;
use crate::spec::{InputQuery, RunSpec};

/// A position in a spec, and what is wrong there.
type Contradiction = (&'static str, &'static str);

impl RunSpec {
    /// The first contradiction in the spec, or the first setting that would be ignored.
    pub(crate) fn find_contradiction(&self) -> Option<Contradiction> {
        let agents = &self.work.agents;
        let has_cards = !agents.cards.is_empty();
        if self.work.model.trim().is_empty() && !has_cards {
            return Some(("work.model", "is empty, and there are no agent cards that name a model"));
        }
        if has_cards && self.instruction.is_some() {
            return Some((
                "instruction",
                "cannot be used with `work.agents.cards`: the instruction is in the card",
            ));
        }
        if agents.retry_unknown && !self.existing.resumes() {
            return Some(("work.agents.retry_unknown", "needs `existing` to be `resume`"));
        }
        query(&self.query)
            .or_else(|| without_cards(agents).filter(|_| !has_cards))
            .or_else(|| self.nothing_at_all())
    }

    /// Numbers and durations of zero that leave nothing to do.
    fn nothing_at_all(&self) -> Option<Contradiction> {
        let (work, agents) = (&self.work, &self.work.agents);
        let is_nothing = |limit: Option<u64>| limit == Some(0);
        let times = &work.timeouts;
        let is_over = |time: Duration| time.is_zero();
        let must_be_more = [
            ("work.rates.requests", is_nothing(work.rates.requests)),
            ("work.rates.tokens", is_nothing(work.rates.tokens)),
            ("work.rates.input_tokens", is_nothing(work.rates.input_tokens)),
            ("work.rates.output_tokens", is_nothing(work.rates.output_tokens)),
            ("work.timeout", is_over(work.timeout)),
            ("work.row_timeout", work.row_timeout.is_some_and(is_over)),
            ("work.retry_wait", is_over(work.retry_wait)),
            ("work.lane.poll_every", is_over(work.lane.poll_every)),
            ("work.timeouts.connect", is_over(times.connect)),
            ("work.timeouts.first_byte", is_over(times.first_byte)),
            ("work.timeouts.idle", is_over(times.idle)),
            ("work.agents.tool_timeout", is_over(agents.tool_timeout)),
            ("work.agents.tool_result_limit", agents.tool_result_limit == 0),
            ("work.agents.turns", agents.turns == Some(0)),
            ("work.agents.python_processes", agents.python_processes == Some(0)),
        ];
        if let Some((path, _)) = must_be_more.iter().find(|(_, is_nothing)| *is_nothing) {
            return Some((path, "must be greater than zero"));
        }
        let rate = work.stop_rules.max_error_rate;
        rate.filter(|rate| !(0.0..=1.0).contains(&rate.share))
            .map(|_| ("work.stop_rules.max_error_rate.share", "must be from 0 to 1"))
    }
}

/// Settings of a query that would be ignored.
fn query(query: &InputQuery) -> Option<Contradiction> {
    let has_sql = query.sql.is_some();
    let beside_sql = "cannot be used with `query.sql`: express it in the query";
    if has_sql && query.condition.is_some() {
        return Some(("query.condition", beside_sql));
    }
    if has_sql && !query.columns.is_empty() {
        return Some(("query.columns", beside_sql));
    }
    if !query.columns.is_empty() && query.columns.iter().all(|name| name.trim().is_empty()) {
        return Some(("query.columns", "names no column"));
    }
    if !query.types.is_empty() && !has_sql && query.condition.is_none() {
        return Some((
            "query.types",
            "is for queries, but there is neither `query.sql` nor `query.condition`",
        ));
    }
    if query.engine == SqlEngine::DuckDb && !has_sql {
        return Some(("query.engine", "runs `query.sql`, but there is none"));
    }
    None
}

/// Settings that have no effect without agent cards.
fn without_cards(agents: &AgentOptions) -> Option<Contradiction> {
    let given = [
        ("work.agents.agent", agents.agent.is_some()),
        ("work.agents.stubs", !agents.stubs.is_empty()),
        ("work.agents.passthrough", !agents.passthrough.is_empty()),
        ("work.agents.deny", !agents.deny.is_empty()),
        ("work.agents.record_tools", agents.record_tools.is_some()),
        ("work.agents.shell", agents.shell),
    ];
    given.into_iter().find(|(_, is_given)| *is_given).map(|(path, _)| (path, "needs `work.agents.cards`"))
}

#[cfg(test)]
mod tests {
    use rowmill_data::{InputLocation, InputSpec};

    use super::*;
    use crate::spec::{ExistingOutput, OutputTarget};

    fn wrong(change: impl FnOnce(&mut RunSpec)) -> Option<&'static str> {
        let input = InputSpec::new(InputLocation::Stdin, None);
        let mut spec = RunSpec::new(input, OutputTarget::Stdout);
        spec.work.model = "simulated".into();
        change(&mut spec);
        spec.find_contradiction().map(|(path, _)| path)
    }

    #[test]
    fn what_excludes_each_other_is_found_at_its_place() {
        assert_eq!(wrong(|_| {}), None);
        assert_eq!(wrong(|spec| spec.work.model.clear()), Some("work.model"));
        let with_sql = |spec: &mut RunSpec| spec.query.sql = Some("SELECT 1".into());
        assert_eq!(wrong(with_sql), None);
        let both = |spec: &mut RunSpec| {
            with_sql(spec);
            spec.query.condition = Some("a = 1".into());
        };
        assert_eq!(wrong(both), Some("query.condition"));
        assert_eq!(wrong(|spec| spec.query.engine = SqlEngine::DuckDb), Some("query.engine"));
        assert_eq!(wrong(|spec| spec.query.columns = vec![" ".into()]), Some("query.columns"));
        assert_eq!(wrong(|spec| spec.work.agents.shell = true), Some("work.agents.shell"));
        assert_eq!(wrong(|spec| spec.work.rates.tokens = Some(0)), Some("work.rates.tokens"));
        assert_eq!(wrong(|spec| spec.work.timeout = Duration::ZERO), Some("work.timeout"));
        let retries = |existing| {
            move |spec: &mut RunSpec| {
                spec.work.agents.retry_unknown = true;
                spec.existing = existing;
            }
        };
        assert_eq!(wrong(retries(ExistingOutput::Refuse)), Some("work.agents.retry_unknown"));
        assert_eq!(wrong(retries(ExistingOutput::Resume)), None);
        let instructed = |spec: &mut RunSpec| {
            spec.work.agents.cards = vec!["clerk.md".into()];
            spec.instruction = Some("classify.md".into());
        };
        assert_eq!(wrong(instructed), Some("instruction"));
    }
}
