//! All checks before the first call, in the order in which mistakes are reported. None of the user's
//! files is changed here.

use std::path::Path;
use std::sync::Arc;

use rowmill_core::fingerprint::{Fingerprint, digest};
use rowmill_core::ports::{Dataset, InputIdentity};
use rowmill_core::resume::Resume;
use rowmill_core::select::{IdRule, InputStretches, Selector};
use rowmill_data::output::{Claim, OutputFile, StandardOutput, check_name};
use rowmill_data::traces::TraceFolder;
use rowmill_data::{Location, WantedColumn, deviating_delimiter};
use rowmill_engine::IdCheck;
use rowmill_store::file::WorkFolder;
use rowmill_types::settings::{OUTPUT, OVERWRITE, RESUME, WORK_DIR};
use rowmill_types::{Problem, ProblemCode};

use crate::environment::Environment;
use crate::inputs::{self, OpenedInput, Tell};
use crate::output::check_envelopes;
use crate::paths::{check_apart, reads, writes};
use crate::recorded::Recording;
use crate::rows::{check_ids, count};
use crate::run_place::RunPlace;
use crate::sides::sides;
use crate::spec::{Existing, Output, RunSpec};
use crate::texts::Texts;

/// The input, inspected as far as the run needs.
pub(crate) struct Rows {
    /// All rows of the input, regardless of the query.
    pub(crate) input: Arc<dyn Dataset>,
    pub(crate) dataset: Arc<dyn Dataset>,
    pub(crate) selector: Selector,
    pub(crate) ids: IdRule,
    pub(crate) id_check: IdCheck,
    /// Where the rows are, if a resume looked them up.
    pub(crate) looked_at: Option<LookedAt>,
    /// Whether the rows are recorded for a resume.
    pub(crate) recording: Recording,
}

/// What was found in an input, and the identity of the input at that time.
pub(crate) struct LookedAt {
    stretches: InputStretches,
    identity: InputIdentity,
}

impl Rows {
    /// Lets a resume skip rows that are done and have not moved. An input that changed since then is
    /// read from its beginning.
    pub(crate) fn compare_with(&self, resume: &mut Resume) {
        let Some(LookedAt { stretches, identity }) = &self.looked_at else { return };
        if self.dataset.identity().is_ok_and(|now| now == *identity) {
            resume.compare_with(stretches);
        }
    }
}

/// Checks the paths of all files that the run reads and writes.
pub(crate) fn check_paths(spec: &RunSpec, work_folder: &Path) -> Result<(), Problem> {
    check_apart(&reads(spec), &writes(spec, work_folder), Some(&spec.input))?;
    match &spec.output {
        Output::File(path) => OutputFile::check(path, OUTPUT, claim(spec.existing))?,
        Output::Stdout => StandardOutput::check()?,
        Output::Table(table) => table.target.check(claim(spec.existing))?,
    }
    // A header that cannot be read is reported when it is needed.
    let before = RunPlace::of(work_folder).store.header().ok().flatten();
    for (side, path) in sides(spec) {
        OutputFile::check(path, side.setting(), Claim::Overwrite)?;
        side.check(path, spec.existing, before.as_ref())?;
    }
    if let Some(path) = &spec.traces {
        TraceFolder::check(path, claim(spec.existing))?;
    }
    check_work_folder(spec, work_folder)?;
    check_envelopes(spec, work_folder)
}

fn check_work_folder(spec: &RunSpec, work_folder: &Path) -> Result<(), Problem> {
    spec.work_dir.as_deref().map_or(Ok(()), |folder| check_name(folder, WORK_DIR))?;
    if spec.existing.resumes() && spec.work_folder().is_none() {
        let message = format!(
            "{RESUME} with {output} needs the work folder of the run to be resumed",
            output = OUTPUT.to("-")
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
    if spec.existing == Existing::Refuse && WorkFolder::has_unfinished_run(work_folder) {
        let message = format!("an earlier run left its ledger in `{}`", work_folder.display());
        return Err(Problem::new(ProblemCode::OutputExists, message)
            .hint(format!("use {RESUME} to continue it, or {OVERWRITE} to start over")));
    }
    Ok(())
}

/// Whether there is the header of a run. One that cannot be read is reported when it is needed.
fn holds_run(work_folder: &Path) -> bool {
    !matches!(RunPlace::of(work_folder).store.header(), Ok(None))
}

pub(crate) fn claim(existing: Existing) -> Claim {
    match existing {
        Existing::Refuse => Claim::New,
        Existing::Resume | Existing::ResumeChanged => Claim::Resume,
        Existing::Overwrite => Claim::Overwrite,
    }
}

/// Opens the input and inspects it as far as needed: counts rows for a sample, checks ids if the input
/// can be read twice.
pub(crate) fn rows(
    spec: &RunSpec,
    folder: &Path,
    (warn, environment): (&Tell, &Environment),
    wanted: &[WantedColumn],
) -> Result<Rows, Problem> {
    let OpenedInput { input, rows: dataset, recording } =
        inputs::open(spec, folder, (warn, environment), wanted)?;
    let named = spec.id_field.clone();
    let own = if named.is_none() { dataset.own_id().map(str::to_owned) } else { None };
    let is_sure = own.is_some();
    let ids = IdRule { field: named.or(own).map(Into::into), redactor: environment.redactor()? };
    let candidates = if spec.selection.sample.is_some() { Some(count(&*dataset)?) } else { None };
    let selector = Selector::new(&spec.selection, candidates)?;
    let must_check = ids.field.is_some() && !is_sure;
    let id_check = if must_check && !dataset.rereadable() { IdCheck::WhileReading } else { IdCheck::Done };
    let mut looked_at = None;
    if must_check && dataset.rereadable() {
        let identity = dataset.identity()?;
        let stretches = check_ids(&*dataset, &ids, &spec.selection, candidates)?;
        looked_at = spec.existing.resumes().then_some(LookedAt { stretches, identity });
    }
    Ok(Rows { input, dataset, selector, ids, id_check, looked_at, recording })
}

/// The fingerprint of a run whose rows are identified by their numbers.
pub(crate) fn fingerprint_by_number(
    spec: &RunSpec,
    rows: &Rows,
    model: &str,
    texts: &Texts,
) -> Result<Fingerprint, Problem> {
    let input = match &spec.input.location {
        Location::Stdin => InputIdentity { path: "-".into(), size: None, probe: None },
        _ => rows.dataset.identity()?,
    };
    let delimiter = deviating_delimiter(&spec.input)?.map(|delimiter| delimiter.to_string());
    Ok(Fingerprint { input, delimiter, query: spec.query.identity(), ..wording(spec, model, texts) })
}

/// The fingerprint of a run whose rows are identified by their ids.
pub(crate) fn fingerprint(by_number: &Fingerprint, ids: &IdRule) -> Fingerprint {
    let by_number = by_number.clone();
    let Some(field) = ids.field.as_deref() else { return by_number };
    // Rows are identified by their ids, so the input may grow, be corrected or be read with another
    // query.
    let input = InputIdentity { size: None, probe: None, ..by_number.input };
    Fingerprint { input, id_field: Some(field.to_owned()), query: None, delimiter: None, ..by_number }
}

/// The part of the fingerprint that covers the requests, independent of the input.
pub(crate) fn wording(spec: &RunSpec, model: &str, texts: &Texts) -> Fingerprint {
    let mut files = spec.files.attach.clone();
    if spec.files.extract_text {
        files.push("as text".into());
    }
    let joined = |words: &[String]| (!words.is_empty()).then(|| words.join(","));
    Fingerprint {
        input: InputIdentity { path: String::new(), size: None, probe: None },
        id_field: None,
        model: model.to_owned(),
        agents: texts.cards.as_ref().map(|cards| cards.digest.clone()),
        prompt: digest(texts.template.text()),
        instruction: texts.instruction.as_deref().map(digest),
        schema: texts.schema_text.as_deref().map(|schema| match &texts.schema_code {
            None => digest(schema),
            Some(code) => digest(&format!("{schema}\n{code}")),
        }),
        query: None,
        delimiter: None,
        columns: joined(&spec.query.columns),
        files: joined(&files),
    }
}
