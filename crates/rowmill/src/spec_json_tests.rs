use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use rowmill_core::limits::{BudgetLimits, CallParallelism, MinuteLimits, PaceMode};
use rowmill_core::ports::Durability;
use rowmill_core::select::{RowSampleSettings, RowSelection};
use rowmill_data::output::RemovedRows;
use rowmill_data::table::{TableFormat, TableLayout, TableTarget};
use rowmill_data::{
    ColumnTypeSetting, DocumentIdRule, FieldDelimiter, InputFormat, InputLocation, InputSpec, SqlEngine,
};
use rowmill_engine::{ErrorRateLimit, OnQuota, StopRules};
use rowmill_http::{HttpTimeouts, Url};
use rowmill_models::{AliasConfig, BatchLimitOverrides, PriceConfig, ProviderConfig, ProviderProtocol};
use rowmill_tools::{DurationSetting, McpServerConfig};
use rowmill_types::Money;

use super::*;
use crate::agent_options::AgentOptions;
use crate::lane::{BatchContinuationMode, Lane, LaneOptions, RepairLane};
use crate::notify::NotifyOptions;
use crate::spec::{
    AttachmentOptions, ExistingOutput, InputQuery, InstructionVariableOptions, KeptFiles, OutputTarget,
    PromptSource, ResultSchemaSource, TableOutput,
};
use crate::work_spec::WorkSpec;

/// Any text, including quotes and control characters.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z]{1,8}".prop_map(String::from)]
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..3)
}

fn path() -> impl Strategy<Value = PathBuf> {
    text().prop_map(PathBuf::from)
}

fn time() -> impl Strategy<Value = Duration> {
    let any_time =
        (any::<u64>(), 0_u32..1_000_000_000).prop_map(|(seconds, rest)| Duration::new(seconds, rest));
    let usual = (1_u64..100_000).prop_map(Duration::from_millis);
    prop_oneof![any_time, usual, Just(Duration::MAX)].prop_filter("some time", |time| !time.is_zero())
}

fn input() -> impl Strategy<Value = InputSpec> {
    let location = prop_oneof![
        Just(InputLocation::Stdin),
        path().prop_map(InputLocation::File),
        text().prop_map(InputLocation::Pattern),
        "[a-z]{1,9}".prop_map(|name| {
            InputLocation::Web(Url::parse(&format!("https://h.test/{name}.csv?a=b%20c")).unwrap())
        }),
        "[a-z]{1,9}".prop_map(|name| InputLocation::parse(&format!("hf://datasets/o/{name}")).unwrap()),
    ];
    let format = of(proptest::sample::select(InputFormat::ALL));
    let ids = prop_oneof![Just(DocumentIdRule::Path), Just(DocumentIdRule::Content)];
    let delimiter = of(proptest::sample::select(&[";", "tab", "|", "\\", " "][..]));
    (location, format, ids, delimiter).prop_map(|(location, format, document_ids, delimiter)| InputSpec {
        location,
        format,
        document_ids,
        delimiter: delimiter.map(|text| FieldDelimiter::parse(text).unwrap()),
    })
}

fn query() -> impl Strategy<Value = InputQuery> {
    let types = || {
        vec((text(), text()).prop_map(|(column, type_name)| ColumnTypeSetting { column, type_name }), 0..3)
    };
    let sql = (text(), types(), any::<bool>()).prop_map(|(sql, types, is_theirs)| InputQuery {
        sql: Some(sql),
        types,
        engine: if is_theirs { SqlEngine::DuckDb } else { SqlEngine::BuiltIn },
        ..InputQuery::default()
    });
    let condition = (text(), types(), vec("[a-z]{1,5}", 0..3)).prop_map(|(condition, types, columns)| {
        InputQuery { condition: Some(condition), types, columns, ..InputQuery::default() }
    });
    prop_oneof![Just(InputQuery::default()), sql, condition]
}

fn output() -> impl Strategy<Value = OutputTarget> {
    let target = prop_oneof![
        path().prop_map(TableTarget::File),
        Just(TableTarget::Stdout),
        (path(), text()).prop_map(|(path, split_by)| TableTarget::Folder { path, split_by }),
    ];
    let layout = prop_oneof![Just(TableLayout::Envelope), Just(TableLayout::Flat)];
    let table = (target, proptest::sample::select(TableFormat::ALL), layout);
    prop_oneof![
        path().prop_map(OutputTarget::File),
        Just(OutputTarget::Stdout),
        table.prop_map(|(target, format, layout)| OutputTarget::Table(TableOutput {
            target,
            format,
            layout
        })),
    ]
}

fn budget() -> impl Strategy<Value = BudgetLimits> {
    (of(any::<u64>()), of(any::<u64>()))
        .prop_map(|(pico, tokens)| BudgetLimits { cost: pico.map(Money::from_pico), tokens })
}

fn agents() -> impl Strategy<Value = AgentOptions> {
    let server = (of(text()), texts(), btree_map(text(), text(), 0..3), of(0.1..1e9_f64)).prop_map(
        |(command, args, env, seconds)| McpServerConfig {
            command,
            args,
            env,
            timeout: seconds.map(DurationSetting::Seconds),
            ..McpServerConfig::default()
        },
    );
    let named = (vec(text(), 1..3), of(text()), texts(), texts(), of(path()), path());
    let numbers = (of(1..u32::MAX), time(), 1..usize::MAX, of(1..usize::MAX), budget(), any::<[bool; 3]>());
    (named, numbers, btree_map(text(), server, 0..3)).prop_map(|(named, numbers, servers)| {
        let (cards, agent, stubs, deny, record_tools, config_folder) = named;
        let (turns, tool_timeout, tool_result_limit, python_processes, row_budget, switches) = numbers;
        AgentOptions {
            cards,
            agent,
            stubs: stubs.clone(),
            deny,
            passthrough: stubs,
            record_tools,
            config_folder,
            turns,
            tool_timeout,
            tool_result_limit,
            python_processes,
            row_budget,
            model_given: switches[0],
            checkpoint_turns: switches[1],
            shell: switches[2],
            servers,
            ..AgentOptions::default()
        }
    })
}

fn config()
-> impl Strategy<Value = (BTreeMap<String, ProviderConfig>, AliasConfig, BTreeMap<String, PriceConfig>)> {
    let protocol = of(prop_oneof![Just(ProviderProtocol::Chat), Just(ProviderProtocol::Anthropic)]);
    let batch = of(any::<u64>()).prop_map(|max_jobs| BatchLimitOverrides { max_jobs, ..Default::default() });
    let provider = (of(text()), of(text()), btree_map(text(), text(), 0..3), protocol, batch).prop_map(
        |(base_url, api_key_env, headers, protocol, batch)| ProviderConfig {
            base_url,
            api_key_env,
            headers,
            protocol,
            batch,
        },
    );
    let price = (0.0..1e9_f64, of(0.0..1e9_f64), btree_map(text(), 0.0..9.0_f64, 0..2))
        .prop_map(|(input, cached, tiers)| PriceConfig { input, cached, tiers, ..PriceConfig::default() });
    let names = || btree_map(text(), text(), 0..3);
    let aliases = (names(), btree_map(text(), names(), 0..2))
        .prop_map(|(aliases, references)| AliasConfig { aliases, references });
    (btree_map(text(), provider, 0..3), aliases, btree_map(text(), price, 0..3))
}

fn stop_rules() -> impl Strategy<Value = StopRules> {
    let rate = (0.0..=1.0_f64, any::<u64>()).prop_map(|(share, after)| ErrorRateLimit { share, after });
    (of(any::<u64>()), of(rate), of(any::<u64>()), any::<bool>(), of(time())).prop_map(
        |(max_errors, max_error_rate, same_failure, first_result, deadline)| StopRules {
            max_errors,
            max_error_rate,
            same_failure,
            first_result,
            deadline,
        },
    )
}

fn work() -> impl Strategy<Value = WorkSpec> {
    let parallel = prop_oneof![
        Just(CallParallelism::Auto),
        (1..usize::MAX).prop_map(CallParallelism::AtMost),
        (1..usize::MAX).prop_map(CallParallelism::AutoUpTo),
    ];
    let rates = (of(1..u64::MAX), of(1..u64::MAX)).prop_map(|(requests, output_tokens)| MinuteLimits {
        requests,
        output_tokens,
        ..MinuteLimits::default()
    });
    let times =
        ((time(), time(), of(time())), (time(), time(), time()), prop_oneof![Just(Duration::ZERO), time()]);
    let lane = prop_oneof![Just(Lane::Live), Just(Lane::Batch), Just(Lane::Auto)];
    let scope = prop_oneof![
        Just(BatchContinuationMode::All),
        Just(BatchContinuationMode::Collect),
        Just(BatchContinuationMode::Cancel)
    ];
    let repair_lane = prop_oneof![Just(RepairLane::Live), Just(RepairLane::Batch)];
    let lane = (lane, any::<bool>(), scope, time(), repair_lane);
    let lane = lane.prop_map(|(lane, detach, scope, poll_every, repair_lane)| LaneOptions {
        lane,
        detach,
        scope,
        poll_every,
        repair_lane,
    });
    let limits = (parallel, rates, stop_rules(), budget(), any::<[bool; 5]>(), lane);
    let named = ("[a-z]{1,8}", agents(), any::<bool>(), texts(), of(path()), any::<u32>());
    (named, times, limits, config()).prop_map(|(named, times, limits, (providers, aliases, prices))| {
        let (model, agents, has_agents, fallback_models, cache, retries) = named;
        let ((timeout, retry_wait, row_timeout), (connect, first_byte, idle), max_outage) = times;
        let (parallel, rates, stop_rules, budget, switches, lane) = limits;
        WorkSpec {
            model,
            agents: if has_agents { agents } else { AgentOptions::default() },
            parallel,
            pace: if switches[0] { PaceMode::Auto } else { PaceMode::Off },
            rates,
            on_quota: if switches[1] { OnQuota::Wait } else { OnQuota::Stop },
            max_outage,
            fallback_models,
            stop_rules,
            budget,
            dedupe: switches[2],
            cache,
            prime: switches[3],
            durability: if switches[4] { Durability::Process } else { Durability::Power },
            retries,
            retry_wait,
            timeout,
            row_timeout,
            timeouts: HttpTimeouts { connect, first_byte, idle },
            repairs: retries / 2,
            providers,
            aliases,
            prices,
            lane,
        }
    })
}

const EXISTING: &[ExistingOutput] = &[
    ExistingOutput::Refuse,
    ExistingOutput::Resume,
    ExistingOutput::ResumeChanged,
    ExistingOutput::Overwrite,
];

fn spec() -> impl Strategy<Value = RunSpec> {
    let selection = (any::<u64>(), of((any::<u64>(), any::<u64>())), of(any::<u64>())).prop_map(
        |(offset, sample, limit)| RowSelection {
            offset,
            sample: sample.map(|(count, seed)| RowSampleSettings { count, seed }),
            limit,
        },
    );
    let prompt = prop_oneof![
        Just(PromptSource::Default),
        text().prop_map(PromptSource::Inline),
        text().prop_map(PromptSource::Source)
    ];
    let schema = prop_oneof![
        Just(ResultSchemaSource::None),
        text().prop_map(ResultSchemaSource::Source),
        text().prop_map(ResultSchemaSource::PythonModel)
    ];
    let existing = proptest::sample::select(EXISTING);
    let keep = proptest::sample::select(&[KeptFiles::Ledger, KeptFiles::Header, KeptFiles::Nothing][..]);
    let rows = (input(), query(), selection, of(text()), texts());
    let asked = (prompt, schema, of(text()), texts(), of(path()));
    let results = (output(), existing, keep, of(path()), any::<[bool; 3]>());
    (rows, asked, results, work()).prop_map(|(rows, asked, results, work)| {
        let (input, query, selection, id_field, attach) = rows;
        let (prompt, schema, instruction, pairs, json) = asked;
        let (output, existing, keep_temp, side, switches) = results;
        let has_cards = !work.agents.cards.is_empty();
        RunSpec {
            query,
            selection,
            id_field,
            files: AttachmentOptions {
                attach,
                extract_text: switches[0],
                archive: side.clone(),
                id_given: switches[1],
            },
            prompt,
            instruction: instruction.filter(|_| !has_cards),
            variables: InstructionVariableOptions { pairs: pairs.clone(), files: pairs, json },
            work,
            schema,
            existing,
            removed_rows: if switches[1] { RemovedRows::Keep } else { RemovedRows::Drop },
            include_input: switches[2],
            error_output: side.clone(),
            telemetry_output: side.clone(),
            summary_output: side.clone(),
            traces: side.clone(),
            work_dir: side.clone(),
            keep_temp,
            notify: NotifyOptions { command: switches[0].then(|| "true".to_owned()), url: None },
            config_files: side.into_iter().collect(),
            ..RunSpec::new(input, output)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_spec_is_read_back_equal_and_satisfies_the_schema(spec in spec()) {
        let json = spec.to_json().unwrap();
        prop_assert_eq!(&RunSpec::from_json(&json, "spec.json").unwrap(), &spec);
        thread_local! {
            static SCHEMA: jsonschema::Validator = jsonschema::validator_for(&run_spec_schema()).unwrap();
        }
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let error = SCHEMA.with(|schema| schema.validate(&value).map_err(|error| error.to_string()));
        prop_assert_eq!(error, Ok(()));
    }
}

#[test]
fn what_a_spec_leaves_out_has_its_default() {
    let json =
        r#"{"version": 1, "input": {"location": "stdin"}, "output": "stdout", "work": {"model": "m"}}"#;
    let spec = RunSpec::from_json(json, "spec.json").unwrap();
    let mut expected = RunSpec::new(InputSpec::new(InputLocation::Stdin, None), OutputTarget::Stdout);
    expected.work = WorkSpec { model: "m".into(), ..WorkSpec::for_file_run() };
    assert_eq!(spec, expected);
    assert_eq!(spec.work.stop_rules.same_failure, Some(50), "as on the command line");
}

#[test]
fn a_spec_of_another_version_is_reported_so_whatever_else_is_strange_in_it() {
    let problem = RunSpec::from_json(r#"{"colour": "red", "version": 2}"#, "spec.json").unwrap_err();
    assert_eq!(problem.message, "`spec.json` is not a valid spec at line 1, column 30: `version`");
    let cause = problem.cause.unwrap();
    assert_eq!(cause, "this version of rowmill reads specs of version 1, but this one has version 2");
}

#[test]
fn a_path_that_is_no_text_is_reported_and_not_changed() {
    use std::os::unix::ffi::OsStringExt;
    let path = PathBuf::from(std::ffi::OsString::from_vec(vec![b'a', 0xff]));
    let spec = RunSpec::new(InputSpec::new(InputLocation::File(path), None), OutputTarget::Stdout);
    assert_eq!(spec.to_json().unwrap_err().code, ProblemCode::InvalidSpec);
}
