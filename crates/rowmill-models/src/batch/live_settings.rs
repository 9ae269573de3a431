//! Settings of a model that only live calls have.

use rowmill_types::{Problem, ProblemCode};

use crate::build_model::ModelSetup;
use crate::model_settings::ModelSettingKey;

/// Service tiers that ask for nothing special.
const PLAIN_TIERS: &[&str] = &["auto", "default", "standard_only", "on_demand"];

/// The setup without what only live calls have: how answers are transferred, and the tier.
///
/// # Errors
///
/// It asks for a tier with a price or a speed of its own.
pub(super) fn without_live_settings(setup: &ModelSetup) -> Result<ModelSetup, Problem> {
    let mut setup = setup.clone();
    let tier = setup.model.settings.word(ModelSettingKey::ServiceTier);
    if let Some(tier) = tier.filter(|tier| !PLAIN_TIERS.contains(tier)) {
        let what = format!("`{}`: `service_tier={tier}` is for live calls, not for batches", setup.model);
        return Err(Problem::new(ProblemCode::InvalidModel, what)
            .hint("omit `service_tier`: a batch has a price of its own"));
    }
    for key in [ModelSettingKey::ServiceTier, ModelSettingKey::Stream, ModelSettingKey::Transport] {
        setup.model.settings.remove(key);
    }
    Ok(setup)
}
