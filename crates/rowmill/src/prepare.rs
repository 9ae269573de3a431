//! Everything that is checked before the first call, in the order in which
//! mistakes are told. Nothing of the user's is touched here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rowmill_core::fingerprint::{Fingerprint, digest};
use rowmill_core::ports::{Dataset, InputIdentity};
use rowmill_core::select::{IdRule, Selector};
use rowmill_data::Location;
use rowmill_data::output::{Claim, OutputFile};
use rowmill_data::table::TableTarget;
use rowmill_data::traces::TraceFolder;
use rowmill_engine::IdCheck;
use rowmill_store::file::WorkFolder;
use rowmill_types::{Problem, ProblemCode};

use crate::inputs::{self, Tell};
use crate::output::check_envelopes;
use crate::rows::{check_ids, count};
use crate::spec::{Existing, Output, RunSpec};
use crate::texts::Texts;

/// The input, looked at as far as the run needs.
pub(crate) struct Rows {
    pub(crate) dataset: Arc<dyn Dataset>,
    pub(crate) selector: Selector,
    pub(crate) ids: IdRule,
    pub(crate) id_check: IdCheck,
}

/// Checks the paths of all files that the run writes.
pub(crate) fn check_paths(spec: &RunSpec, work_folder: &Path) -> Result<(), Problem> {
    let of_traces = spec.traces.iter().flat_map(|path| TraceFolder::files(path));
    let of_traces: Vec<PathBuf> = of_traces.chain(spec.traces.clone()).collect();
    let mut files: Vec<(&str, &Path)> = Vec::new();
    if let Location::File(path) = &spec.input.location {
        files.push(("--input", path));
    }
    match &spec.output {
        Output::File(path) => {
            files.push(("--output", path));
            OutputFile::check(path, "--output", claim(spec.existing))?;
        }
        Output::Stdout => {}
        Output::Table(table) => {
            match &table.target {
                TableTarget::File(path) => files.push(("--output", path)),
                TableTarget::Folder { path, .. } if spec.traces.is_some() => {
                    files.push(("--output-dir", path));
                }
                TableTarget::Folder { .. } | TableTarget::Stdout => {}
            }
            table.target.check(claim(spec.existing))?;
        }
    }
    let sides = [
        ("--error-output", &spec.error_output),
        ("--telemetry-output", &spec.telemetry_output),
        ("--summary-output", &spec.summary_output),
    ];
    for (flag, path) in sides {
        if let Some(path) = path {
            OutputFile::check(path, flag, Claim::Overwrite)?;
            files.push((flag, path));
        }
    }
    if let Some(path) = &spec.traces {
        TraceFolder::check(path, claim(spec.existing))?;
        files.extend(of_traces.iter().map(|path| ("--export-traces", path.as_path())));
    }
    let resolved: Vec<PathBuf> = files.iter().map(|(_, path)| resolve(path)).collect();
    for (at, path) in resolved.iter().enumerate() {
        if let Some(earlier) = resolved.iter().take(at).position(|other| other == path) {
            let (Some((second, shown)), Some((first, _))) = (files.get(at), files.get(earlier)) else {
                continue;
            };
            let message =
                format!("`{second}` must not point to the same file as `{first}`: `{}`", shown.display());
            return Err(Problem::new(ProblemCode::SamePath, message).hint("give each its own path"));
        }
    }
    if spec.existing == Existing::Refuse && WorkFolder::has_unfinished_run(work_folder) {
        let message = format!("an earlier run left its ledger in `{}`", work_folder.display());
        return Err(Problem::new(ProblemCode::OutputExists, message)
            .hint("use `--resume` to go on with it, or `--overwrite` to start again"));
    }
    check_envelopes(spec, work_folder)
}

pub(crate) fn claim(existing: Existing) -> Claim {
    match existing {
        Existing::Refuse => Claim::New,
        Existing::Resume | Existing::ResumeChanged => Claim::Resume,
        Existing::Overwrite => Claim::Overwrite,
    }
}

/// The path with links and dots resolved, as far as it exists.
fn resolve(path: &Path) -> PathBuf {
    if let Ok(resolved) = path.canonicalize() {
        return resolved;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned()).join(path.file_name().unwrap_or_default())
}

/// Opens the input and looks at it as far as needed: counts rows for a sample, checks
/// ids where the input can be read twice.
pub(crate) fn rows(spec: &RunSpec, folder: &Path, warn: &Tell) -> Result<Rows, Problem> {
    let dataset = inputs::open(spec, folder, warn)?;
    let named = spec.id_field.clone();
    let own = if named.is_none() { dataset.own_id().map(str::to_owned) } else { None };
    let is_sure = own.is_some();
    let ids = IdRule { field: named.or(own).map(Into::into) };
    let candidates = if spec.selection.sample.is_some() { Some(count(&*dataset)?) } else { None };
    let selector = Selector::new(&spec.selection, candidates)?;
    let must_check = ids.field.is_some() && !is_sure;
    let id_check = if must_check && !dataset.rereadable() { IdCheck::WhileReading } else { IdCheck::Done };
    if must_check && dataset.rereadable() {
        check_ids(&*dataset, &ids, &spec.selection, candidates)?;
    }
    Ok(Rows { dataset, selector, ids, id_check })
}

/// What makes this run the same run as an earlier one.
pub(crate) fn fingerprint(
    spec: &RunSpec,
    rows: &Rows,
    model: &str,
    texts: &Texts,
) -> Result<Fingerprint, Problem> {
    let mut input = match &spec.input.location {
        Location::Stdin => InputIdentity { path: "-".into(), size: None, probe: None },
        _ => rows.dataset.identity()?,
    };
    let mut query = spec.query.sql.clone();
    let id_field = rows.ids.field.as_deref().map(str::to_owned);
    if id_field.is_some() {
        // Rows are known by their ids, so the input may grow, be corrected and be asked otherwise.
        input = InputIdentity { size: None, probe: None, ..input };
        query = None;
    }
    Ok(Fingerprint { input, id_field, query, ..wording(spec, model, texts) })
}

/// The part of the fingerprint that says how a model is asked, whatever the input.
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
        schema: texts.schema_text.as_deref().map(digest),
        query: None,
        columns: joined(&spec.query.columns),
        files: joined(&files),
    }
}
