//! All checks before the first call, in the order in which mistakes are reported. None of the user's
//! files is changed here.

use std::path::Path;
use std::sync::Arc;

use rowmill_core::fingerprint::{RunFingerprint, text_digest};
use rowmill_core::ports::{Dataset, InputIdentity};
use rowmill_core::resume::ResumeIndex;
use rowmill_core::select::{IdRule, InputRowRanges, RowSelector};
use rowmill_data::output::{OutputClaimMode, OutputFile, StandardOutput, check_name_length};
use rowmill_data::traces::TraceFolder;
use rowmill_data::{InputLocation, WantedColumn, overriding_delimiter_of};
use rowmill_engine::IdCheckPhase;
use rowmill_store::file::WorkFolder;
use rowmill_types::settings::{OUTPUT, OVERWRITE, RESUME, WORK_DIR};
use rowmill_types::{Problem, ProblemCode};

use crate::environment::RunEnvironment;
use crate::inputs::{self, OpenedInput, WarnFn};
use crate::paths::{check_paths_disjoint, paths_read, paths_written};
use crate::query_recording::QueryRecording;
use crate::row_checks::{check_ids, count_rows};
use crate::run_storage::RunStorage;
use crate::side_files::side_files;
use crate::spec::{ExistingOutput, OutputTarget, RunSpec};
use crate::table_envelopes::check_table_envelopes;
use crate::texts::RunInputTexts;

/// The input, inspected as far as the run needs.
pub(crate) struct PreparedInput {
    /// All rows of the input, regardless of the query.
    pub(crate) input: Arc<dyn Dataset>,
    pub(crate) dataset: Arc<dyn Dataset>,
    pub(crate) selector: RowSelector,
    pub(crate) ids: IdRule,
    pub(crate) id_check: IdCheckPhase,
    /// Where the rows are, if a resume looked them up.
    pub(crate) scanned: Option<ScannedInput>,
    /// Whether the rows are recorded for a resume.
    pub(crate) recording: QueryRecording,
}

/// What was found in an input, and the identity of the input at that time.
pub(crate) struct ScannedInput {
    stretches: InputRowRanges,
    identity: InputIdentity,
}

impl PreparedInput {
    /// Lets a resume skip rows that are done and have not moved. An input that changed since then is
    /// read from its beginning.
    pub(crate) fn compare_with(&self, resume: &mut ResumeIndex) {
        let Some(ScannedInput { stretches, identity }) = &self.scanned else { return };
        if self.dataset.identity().is_ok_and(|now| now == *identity) {
            resume.skip_unchanged_ranges(stretches);
        }
    }
}

/// Checks the paths of all files that the run reads and writes.
pub(crate) fn check_paths(spec: &RunSpec, work_folder: &Path) -> Result<(), Problem> {
    check_paths_disjoint(&paths_read(spec), &paths_written(spec, work_folder), Some(&spec.input))?;
    match &spec.output {
        OutputTarget::File(path) => OutputFile::check_claimable(path, OUTPUT, output_claim(spec.existing))?,
        OutputTarget::Stdout => StandardOutput::check()?,
        OutputTarget::Table(table) => {
            table.format.check_built()?;
            table.target.check(output_claim(spec.existing))?;
        }
    }
    // A header that cannot be read is reported when it is needed.
    let before = RunStorage::look_at(work_folder).store.header().ok().flatten();
    for (side, path) in side_files(spec) {
        OutputFile::check_claimable(path, side.setting(), OutputClaimMode::Overwrite)?;
        side.check(path, spec.existing, before.as_ref().map(|before| (before, work_folder)))?;
    }
    if let Some(path) = &spec.traces {
        TraceFolder::check_claimable(path, output_claim(spec.existing))?;
    }
    check_work_folder(spec, work_folder)?;
    check_table_envelopes(spec, work_folder)
}

fn check_work_folder(spec: &RunSpec, work_folder: &Path) -> Result<(), Problem> {
    spec.work_dir.as_deref().map_or(Ok(()), |folder| check_name_length(folder, WORK_DIR))?;
    if spec.existing.resumes() && spec.work_folder().is_none() {
        let message = format!(
            "{RESUME} with {output} needs the work folder of the run to be resumed",
            output = OUTPUT.with_value("-")
        );
        return Err(Problem::new(ProblemCode::Usage, message)
            .hint(format!("set it with {WORK_DIR}; the message of the stopped run shows its path")));
    }
    if spec.existing.resumes() && spec.output.is_stdout() && !holds_run(work_folder) {
        let message = format!("there is no run to resume in `{}`", work_folder.display());
        return Err(Problem::new(ProblemCode::Usage, message)
            .hint(format!("set its work folder with {WORK_DIR}, or omit {RESUME} to start a new run")));
    }
    if let Some(file) = WorkFolder::foreign_file(work_folder) {
        let message =
            format!("the work folder contains a file that rowmill did not create: `{}`", file.display());
        return Err(Problem::new(ProblemCode::OutputExists, message)
            .hint(format!("choose an empty folder with {WORK_DIR}, or move the file away")));
    }
    if spec.existing == ExistingOutput::Refuse && WorkFolder::has_unfinished_run(work_folder) {
        let message = format!("an earlier run left its ledger in `{}`", work_folder.display());
        return Err(Problem::new(ProblemCode::OutputExists, message)
            .hint(format!("use {RESUME} to continue it, or {OVERWRITE} to start over")));
    }
    Ok(())
}

/// Whether there is the header of a run. One that cannot be read is reported when it is needed.
fn holds_run(work_folder: &Path) -> bool {
    !matches!(RunStorage::look_at(work_folder).store.header(), Ok(None))
}

pub(crate) fn output_claim(existing: ExistingOutput) -> OutputClaimMode {
    match existing {
        ExistingOutput::Refuse => OutputClaimMode::New,
        ExistingOutput::Resume | ExistingOutput::ResumeChanged => OutputClaimMode::Resume,
        ExistingOutput::Overwrite => OutputClaimMode::Overwrite,
    }
}

/// Opens the input and inspects it as far as needed: counts rows for a sample, checks ids if the input
/// can be read twice.
pub(crate) fn rows(
    spec: &RunSpec,
    folder: &Path,
    (warn, environment): (&WarnFn, &RunEnvironment),
    wanted: &[WantedColumn],
) -> Result<PreparedInput, Problem> {
    let OpenedInput { input, rows: dataset, recording } =
        inputs::open(spec, folder, (warn, environment), wanted)?;
    let named = spec.id_field.clone();
    let own = if named.is_none() { dataset.default_id_field().map(str::to_owned) } else { None };
    let is_sure = own.is_some();
    let ids = IdRule { field: named.or(own).map(Into::into), redactor: environment.redactor()? };
    let candidates = if spec.selection.sample.is_some() { Some(count_rows(&*dataset)?) } else { None };
    let selector = RowSelector::new(&spec.selection, candidates)?;
    let must_check = ids.field.is_some() && !is_sure;
    let id_check =
        if must_check && !dataset.is_rereadable() { IdCheckPhase::WhileReading } else { IdCheckPhase::Done };
    let mut looked_at = None;
    if must_check && dataset.is_rereadable() {
        let identity = dataset.identity()?;
        let stretches = check_ids(&*dataset, &ids, &spec.selection, candidates)?;
        looked_at = spec.existing.resumes().then_some(ScannedInput { stretches, identity });
    }
    Ok(PreparedInput { input, dataset, selector, ids, id_check, scanned: looked_at, recording })
}

/// The fingerprint of a run whose rows are identified by their numbers.
pub(crate) fn fingerprint_by_number(
    spec: &RunSpec,
    rows: &PreparedInput,
    model: &str,
    texts: &RunInputTexts,
) -> Result<RunFingerprint, Problem> {
    let input = match &spec.input.location {
        InputLocation::Stdin => InputIdentity { path: "-".into(), size: None, probe: None },
        _ => rows.dataset.identity()?,
    };
    let delimiter = overriding_delimiter_of(&spec.input)?.map(|delimiter| delimiter.to_string());
    Ok(RunFingerprint { input, delimiter, query: spec.query.identity(), ..wording(spec, model, texts) })
}

/// The fingerprint of a run whose rows are identified by their ids.
pub(crate) fn fingerprint(by_number: &RunFingerprint, ids: &IdRule) -> RunFingerprint {
    let by_number = by_number.clone();
    let Some(field) = ids.field.as_deref() else { return by_number };
    // Rows are identified by their ids, so the input may grow, be corrected or be read with another
    // query.
    let input = InputIdentity { size: None, probe: None, ..by_number.input };
    RunFingerprint { input, id_field: Some(field.to_owned()), query: None, delimiter: None, ..by_number }
}

/// The part of the fingerprint that covers the requests, independent of the input.
pub(crate) fn wording(spec: &RunSpec, model: &str, texts: &RunInputTexts) -> RunFingerprint {
    let mut files = spec.files.attach.clone();
    if spec.files.extract_text {
        files.push("as text".into());
    }
    let joined = |words: &[String]| (!words.is_empty()).then(|| words.join(","));
    RunFingerprint {
        input: InputIdentity { path: String::new(), size: None, probe: None },
        id_field: None,
        model: model.to_owned(),
        agents: texts.cards.as_ref().map(|cards| cards.digest.clone()),
        prompt: text_digest(texts.template.text()),
        instruction: texts.instruction.as_deref().map(text_digest),
        schema: texts.schema_text.as_deref().map(|schema| match &texts.schema_code {
            None => text_digest(schema),
            Some(code) => text_digest(&format!("{schema}\n{code}")),
        }),
        query: None,
        delimiter: None,
        columns: joined(&spec.query.columns),
        files: joined(&files),
    }
}
