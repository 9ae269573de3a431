//! The models of a run: the main model and its fallbacks.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rowmill_core::fingerprint::text_digest;
use rowmill_core::limits::{
    AnswerLengths, BudgetLimits, CallParallelism, MinuteLimits, PaceMode, RunPaceSettings,
};
use rowmill_engine::{BatchTerms, CallGateSettings, EndpointKey, ModelEndpoint, OutputCapChoice, OutputCaps};
use rowmill_http::HttpClient;
use rowmill_models::{
    AliasConfig, EndpointFacts, ModelPrice, ModelSettingKey, ModelSetup, ModelString, PriceTable,
    ProviderConnection, ProviderRegistry, VariableLookup, attachment_rules, build_model, endpoint_facts,
};
use rowmill_tools::InteractiveSignIn;
use rowmill_types::actions::SET_PRICES;
use rowmill_types::settings::{MAX_COST, MAX_ROW_COST};
use rowmill_types::{
    AttachmentRules, Money, Problem, ProblemCode, Secret, Setting, SettingVocabulary, ToolSpec, group_digits,
};
use serde_json::json;

use crate::control::{RunControl, RunNotice};
use crate::environment::RunEnvironment;
use crate::lane::{BatchLane, EndpointPlan};
use crate::work_spec::WorkSpec;

/// The output limit of built-in models, whose answers are always shorter.
const BUILTIN_OUTPUT: u64 = 4_096;
/// Providers that count the maximum length of an answer against the limits until they know the actual
/// length.
const RESERVING: &[&str] = &["openai", "responses", "azure"];
/// The minimum number of bytes per token, for comparing a prefix with what a provider caches.
const BYTES_PER_TOKEN: u64 = 4;
/// Rows that are worked on at once in the batch lane, where none waits for an answer.
const PARKED_AT_ONCE: usize = 64;

/// The requests of a model role.
#[derive(Debug, Default)]
pub(crate) struct ModelRequest {
    /// Model strings: the main model, then its fallbacks.
    pub(crate) models: Vec<String>,
    /// The system text.
    pub(crate) instruction: Option<String>,
    /// The JSON Schema of answers.
    pub(crate) schema: Option<serde_json::Value>,
    /// The tools that are offered.
    pub(crate) tools: Vec<ToolSpec>,
    /// Whether several tools may be called in one turn, if set.
    pub(crate) parallel_tool_calls: Option<bool>,
    /// The access to the provider that a card or a worker defines.
    pub(crate) access: Option<ProviderAccess>,
}

/// How to reach a provider, overriding the environment. It applies to the provider of the model and to
/// no other.
#[derive(Debug)]
pub(crate) struct ProviderAccess {
    pub(crate) model: String,
    pub(crate) key: Option<Secret>,
    pub(crate) base_url: Option<String>,
}

impl ProviderAccess {
    /// The value that overrides a variable of the environment.
    fn value(&self, name: &str) -> Option<String> {
        if is_key(name) {
            return self.key.as_ref().map(|key| key.reveal().to_owned());
        }
        let is_address = ["BASE_URL", "ENDPOINT"].iter().any(|ending| name.ends_with(ending));
        self.base_url.clone().filter(|_| is_address)
    }
}

fn is_key(name: &str) -> bool {
    ["KEY", "TOKEN"].iter().any(|ending| name.ends_with(ending))
}

/// The models of a model role.
pub(crate) struct ModelEndpoints {
    /// The main model.
    pub(crate) model: ModelString,
    /// All models, ready to be called.
    pub(crate) endpoints: Vec<Arc<ModelEndpoint>>,
    /// Identifies everything besides the messages that shapes an answer.
    pub(crate) identity: String,
    /// Which files the main model accepts.
    pub(crate) rules: AttachmentRules,
    /// Secrets, which must not appear in any file.
    pub(crate) secrets: Vec<Secret>,
}

/// Sets up models; no call is made.
pub(crate) struct ModelFactory<'a> {
    spec: &'a WorkSpec,
    providers: ProviderRegistry,
    prices: PriceTable,
    http: HttpClient,
    control: &'a RunControl,
    /// Notices that were already shown: several agents may use the same model.
    shown_notices: Mutex<BTreeSet<String>>,
}

impl<'a> ModelFactory<'a> {
    pub(crate) fn new(
        spec: &'a WorkSpec,
        http: &HttpClient,
        control: &'a RunControl,
    ) -> Result<Self, Problem> {
        Ok(Self {
            spec,
            providers: known_providers(spec)?,
            prices: PriceTable::with_config(&spec.prices)?,
            http: http.clone().with_timeouts(spec.timeouts),
            control,
            shown_notices: Mutex::default(),
        })
    }

    /// How errors of rows name settings.
    pub(crate) fn vocabulary(&self) -> SettingVocabulary {
        self.control.vocabulary
    }

    /// The person who can sign in to servers, if anyone is present.
    pub(crate) fn sign_in(&self) -> Option<InteractiveSignIn> {
        self.control.person.clone()
    }

    /// Where variables are looked up.
    pub(crate) fn environment(&self) -> &'a RunEnvironment {
        &self.control.environment
    }

    /// The short names for models.
    pub(crate) fn aliases(&self) -> &AliasConfig {
        self.providers.aliases()
    }

    /// Resolves a model string; shows a notice about the meaning of an alias.
    pub(crate) fn parse_model(&self, text: &str) -> Result<ModelString, Problem> {
        let model = ModelString::parse(text, &self.providers)?;
        self.notify_info_once(alias_notice(text, &model, &self.providers));
        Ok(model)
    }

    fn notify_info_once(&self, text: Option<String>) {
        if let Some(text) = text {
            self.notify_once(RunNotice::info(text));
        }
    }

    /// The models of one model role.
    pub(crate) fn endpoints(&self, asks: &ModelRequest) -> Result<ModelEndpoints, Problem> {
        let (mut endpoints, mut secrets) = (Vec::new(), Vec::new());
        let mut first = None;
        for name in &asks.models {
            let access = asks.access.as_ref().filter(|own| self.is_same_provider(&own.model, name));
            let environment = |name: &str| {
                access.and_then(|own| own.value(name)).or_else(|| self.environment().provider_variable(name))
            };
            let setup = model_setup(name, &self.providers, asks, self.control, &environment)?;
            self.notify_info_once(alias_notice(name, &setup.model, &self.providers));
            self.notify_info_once(setup.connection.address_notice.clone());
            let facts = endpoint_facts(&setup);
            let priced = find_price(&self.prices, &setup.model);
            self.check_name(&setup.model, priced.as_ref());
            self.check_tools(&setup.model, &facts, asks.tools.len());
            first.get_or_insert_with(|| {
                (setup.model.clone(), answer_identity(&setup), attachment_rules(&setup))
            });
            let budgets = [(MAX_COST, self.run_budget()), (MAX_ROW_COST, self.spec.agents.row_budget)];
            for (setting, limits) in budgets {
                check_budget(setting, limits, &setup.model, &facts, priced.as_ref())?;
            }
            secrets.extend_from_slice(setup.connection.secrets());
            endpoints.push(Arc::new(endpoint(self.spec, (setup, facts), priced, &self.http, self.control)?));
        }
        let (model, identity, rules) =
            first.ok_or_else(|| Problem::new(ProblemCode::Internal, "a run needs a model"))?;
        Ok(ModelEndpoints { model, endpoints, identity, rules, secrets })
    }
}

impl ModelFactory<'_> {
    /// Shows a notice to the user, once.
    pub(crate) fn notify_once(&self, notice: RunNotice) {
        let (RunNotice::Info(text) | RunNotice::Warning(text) | RunNotice::SignIn(text)) = &notice;
        let is_new =
            self.shown_notices.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_string());
        if is_new {
            (self.control.notice)(notice);
        }
    }

    /// The environment variables that may hold the keys of these models.
    pub(crate) fn key_variables<'m>(&self, models: impl IntoIterator<Item = &'m String>) -> Vec<String> {
        let models = models.into_iter().filter_map(|name| ModelString::parse(name, &self.providers).ok());
        let providers = models.filter_map(|model| self.providers.find(&model.provider));
        let mut names: Vec<String> = providers.flat_map(|provider| provider.key_variables()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The budget that one answer has to fit. With batch jobs, only whether it can be kept is checked: a request that does
    /// not fit ends the run like any other limit, with what its jobs have brought.
    fn run_budget(&self) -> BudgetLimits {
        match &self.control.lane.0 {
            Some(lane) => lane.budget_of_any_amount(),
            None => self.spec.budget,
        }
    }

    /// Warns if a provider will reject every request because it has too many tools.
    fn check_tools(&self, model: &ModelString, facts: &EndpointFacts, tools: usize) {
        if let Some(most) = facts.max_tools.filter(|most| tools > *most) {
            self.notify_once(RunNotice::warning(format!(
                "`{}.{}` is offered {tools} tools, but `{}` accepts at most {most} in one request; offer \
                 fewer with `tools` of a server or of the card, such as `tools: {{files: [\"read_*\"]}}`",
                model.provider, model.model, model.provider
            )));
        }
    }

    /// Suggests similar model names for a name that is not known.
    fn check_name(&self, model: &ModelString, priced: Option<&ModelPrice<'_>>) {
        let near: Vec<String> = match priced {
            None => self.prices.similar_models(&model.provider, &model.model),
            Some(_) => Vec::new(),
        }
        .iter()
        .map(|name| format!("`{}.{name}`", model.provider))
        .collect();
        if !near.is_empty() {
            self.notify_once(RunNotice::warning(format!(
                "`{}.{}` is not a model that rowmill knows; it is sent as written; did you mean {}?",
                model.provider,
                model.model,
                near.join(" or ")
            )));
        }
    }

    fn is_same_provider(&self, one: &str, other: &str) -> bool {
        let provider = |name| ModelString::parse(name, &self.providers).ok().map(|model| model.provider);
        provider(one) == provider(other)
    }
}

/// The providers of a run, with its aliases.
pub(crate) fn known_providers(spec: &WorkSpec) -> Result<ProviderRegistry, Problem> {
    ProviderRegistry::with_config(spec.providers.clone())?.with_aliases(spec.aliases.clone())
}

/// Describes what an alias stands for; `None` if `text` is not an alias.
pub(crate) fn alias_notice(text: &str, model: &ModelString, providers: &ProviderRegistry) -> Option<String> {
    let whole = providers.aliases().expand(text).ok()?;
    let name = text.split_once('?').map_or(text, |(name, _)| name).trim();
    (whole != text.trim()).then(|| format!("`{name}` means `{model}`"))
}

/// What is known about a model's price.
pub(crate) fn find_price<'a>(prices: &'a PriceTable, model: &ModelString) -> Option<ModelPrice<'a>> {
    prices.find(&model.provider, &model.model, model.settings.word(ModelSettingKey::ServiceTier))
}

/// Everything that is the same for every call of a model.
pub(crate) fn model_setup(
    name: &str,
    providers: &ProviderRegistry,
    asks: &ModelRequest,
    control: &RunControl,
    environment: VariableLookup<'_>,
) -> Result<ModelSetup, Problem> {
    let model = ModelString::parse(name, providers)?;
    let connection = ProviderConnection::resolve(&model, providers, environment)?;
    let notice = control.notice.clone();
    Ok(ModelSetup {
        model,
        connection,
        instruction: asks.instruction.clone(),
        schema: asks.schema.clone(),
        tools: asks.tools.clone(),
        parallel_tool_calls: asks.parallel_tool_calls,
        notice: Arc::new(move |text| notice(RunNotice::warning(text))),
    })
}

/// Runs something that needs a key only for calls; if no key is set, a sample key is used, because
/// nothing is sent.
pub(crate) fn without_key<T>(
    environment: &RunEnvironment,
    make: impl Fn(VariableLookup<'_>) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let set = |name: &str| environment.provider_variable(name);
    match make(&set) {
        Err(problem) if problem.code == ProblemCode::MissingKey => {
            make(&|name| set(name).or_else(|| is_key(name).then(|| "unused".to_owned())))
        }
        made => made,
    }
}

/// The maximum number of tokens in an answer, if known.
pub(crate) fn max_output(facts: &EndpointFacts, priced: Option<&ModelPrice<'_>>) -> Option<u64> {
    let builtin = facts.is_builtin.then_some(BUILTIN_OUTPUT);
    facts.max_output.or(priced.and_then(|priced| priced.max_output)).or(builtin)
}

fn endpoint(
    spec: &WorkSpec,
    (setup, facts): (ModelSetup, EndpointFacts),
    priced: Option<ModelPrice<'_>>,
    http: &HttpClient,
    control: &RunControl,
) -> Result<ModelEndpoint, Problem> {
    let max_output = max_output(&facts, priced.as_ref());
    let reserves_output = RESERVING.contains(&setup.model.provider.as_str());
    let choice = output_cap_choice(control);
    let caps =
        OutputCaps { thinking: facts.thinking_budget, reserves_output, choice, ..OutputCaps::default() };
    let output_caps = facts.takes_output_cap.then(|| Arc::new(caps));
    let lane = control.lane.0.as_ref();
    if let Some(lane) = lane.filter(|lane| !lane.phase().is_live()) {
        return lane_endpoint(lane, spec, (setup, facts, priced), (http, control));
    }
    let plan =
        lane.map(|lane| endpoint_plan(lane, (spec, http), (&setup, &facts), priced.as_ref())).transpose()?;
    let share = RunPaceSettings {
        parallel: spec.parallel,
        pace: spec.pace,
        rates: spec.rates,
        max_output: facts.max_output,
        reserves_output,
        priming: spec.prime && primes(&facts),
        // A model in this process never has an outage.
        max_outage: if facts.is_builtin { Duration::ZERO } else { spec.max_outage },
    };
    let settings = CallGateSettings { share, on_quota: spec.on_quota };
    // Two protocols of one provider share an account, and so its limits.
    let EndpointFacts { address: provider, account, model, fixed_bytes, .. } = facts;
    let gate = control.limits.gate(EndpointKey { provider, account, model }, settings);
    let batch_terms = plan.as_ref().map(|plan| BatchTerms { price: plan.price });
    let (name, identity) = (setup.model.to_string(), request_identity(&setup));
    let model = match (lane, plan) {
        (Some(lane), Some(plan)) => lane.live_model(plan, (lane.adapters.model)(setup, http)?),
        _ => build_model(setup, http)?,
    };
    let price = priced.map(|priced| priced.price);
    Ok(ModelEndpoint {
        name,
        identity,
        model,
        gate,
        price,
        max_output,
        output_caps,
        fixed_bytes,
        batch_terms,
    })
}

/// What the batch lane has to know of a model.
fn endpoint_plan(
    lane: &BatchLane,
    (spec, http): (&WorkSpec, &HttpClient),
    (setup, facts): (&ModelSetup, &EndpointFacts),
    priced: Option<&ModelPrice<'_>>,
) -> Result<EndpointPlan, Problem> {
    let limits = spec.providers.get(&setup.connection.provider).map(|config| config.batch.clone());
    let live_price = priced.map(|priced| priced.price);
    Ok(EndpointPlan {
        identity: request_identity(setup),
        name: setup.model.to_string(),
        api: (lane.adapters.batch_api)(setup, &limits.unwrap_or_default(), http)?,
        price: live_price.map(|price| price.in_batch_lane()),
        live_price,
        max_output: max_output(facts, priced),
        fixed_bytes: facts.fixed_bytes,
    })
}

/// A model whose answers come through the batch lane: nothing limits it, because it makes no calls.
fn lane_endpoint(
    lane: &Arc<BatchLane>,
    spec: &WorkSpec,
    (setup, facts, priced): (ModelSetup, EndpointFacts, Option<ModelPrice<'_>>),
    (http, control): (&HttpClient, &RunControl),
) -> Result<ModelEndpoint, Problem> {
    let plan = endpoint_plan(lane, (spec, http), (&setup, &facts), priced.as_ref())?;
    let share = RunPaceSettings {
        parallel: CallParallelism::AtMost(PARKED_AT_ONCE),
        pace: PaceMode::Off,
        rates: MinuteLimits::default(),
        max_output: facts.max_output,
        reserves_output: false,
        priming: false,
        max_outage: Duration::ZERO,
    };
    let EndpointFacts { address, account, model, fixed_bytes, .. } = facts;
    let key = EndpointKey { provider: format!("{address} (batch)"), account, model };
    let gate = control.limits.gate(key, CallGateSettings { share, on_quota: spec.on_quota });
    let (name, identity) = (plan.name.clone(), plan.identity.clone());
    let (price, max_output) = (plan.price, plan.max_output);
    let caps = OutputCaps {
        thinking: facts.thinking_budget,
        choice: OutputCapChoice::Fixed,
        ..OutputCaps::default()
    };
    let output_caps = (facts.takes_output_cap && lane.has_budget()).then(|| Arc::new(caps));
    let model = lane.model(plan);
    let batch_terms = None;
    Ok(ModelEndpoint {
        name,
        identity,
        model,
        gate,
        price,
        max_output,
        output_caps,
        fixed_bytes,
        batch_terms,
    })
}

/// How answers are capped. In a run with batch jobs, a live pass asks for what a job was asked for.
fn output_cap_choice(control: &RunControl) -> OutputCapChoice {
    match &control.lane.0 {
        Some(lane) if lane.has_budget() => OutputCapChoice::Fixed,
        _ => OutputCapChoice::Learned,
    }
}

/// Whether the shared prefix of all requests is long enough for the provider's cache.
fn primes(facts: &EndpointFacts) -> bool {
    facts.caches_prefix.is_some_and(|least| facts.fixed_bytes as u64 / BYTES_PER_TOKEN >= least)
}

pub(crate) fn answer_identity(setup: &ModelSetup) -> String {
    let (model, facts) = (&setup.model, endpoint_facts(setup));
    let digest_of = |text: Option<String>| text.map_or_else(|| "-".to_owned(), |text| text_digest(&text));
    // The same model with another key gives the same answers; at another address it may not.
    let mut identity = format!(
        "{model}\n{}\n{}\n{}",
        facts.address,
        digest_of(setup.instruction.clone()),
        digest_of(setup.schema.as_ref().map(ToString::to_string))
    );
    setup.tools.iter().for_each(|tool| identity.push_str(&tool_line(tool)));
    identity
}

/// Names everything that is the same in every request of a model, as text that stays the same in later versions. The
/// address is no part of it: whoever goes on with a run over another gateway asks the same.
fn request_identity(setup: &ModelSetup) -> String {
    let ModelSetup { model, instruction, schema, tools, parallel_tool_calls, .. } = setup;
    let tools: Vec<String> = tools.iter().map(ToolSpec::identity).collect();
    text_digest(&json!([model.to_string(), instruction, schema, tools, parallel_tool_calls]).to_string())
}

/// What a tool adds to the identity of a model.
fn tool_line(tool: &ToolSpec) -> String {
    format!("\n{}", text_digest(&tool.identity()))
}

/// Checks the budget: it can be kept only if the worst-case cost of a call is known and fits.
fn check_budget(
    setting: Setting,
    limits: BudgetLimits,
    model: &ModelString,
    facts: &EndpointFacts,
    priced: Option<&ModelPrice<'_>>,
) -> Result<(), Problem> {
    let BudgetLimits { cost, tokens } = limits;
    if cost.is_none() && tokens.is_none() {
        return Ok(());
    }
    let name = format!("{}.{}", model.provider, model.model);
    if cost.is_some() && priced.is_none() {
        return Err(Problem::new(
            ProblemCode::UnknownPrice,
            format!("{setting} needs the price of `{name}`, which is not known"),
        )
        .hint(format!(
            "set its price per million tokens {SET_PRICES}, such as: prices.\"{name}\" = {{ input = 0.25, \
             output = 2.0 }}"
        )));
    }
    let Some(most) = max_output(facts, priced) else {
        return Err(Problem::new(
            ProblemCode::UnknownPrice,
            format!("a budget needs a limit on answer length, and the limit of `{name}` is not known"),
        )
        .hint(format!("set one in the model string, such as `{name}?max_tokens=1000`")));
    };
    // If nothing limits the length of answers, a call is sent with the smallest sensible limit.
    let least = AnswerLengths::default().needs(facts.thinking_budget, None).minimum;
    let most = if facts.takes_output_cap { most.min(least) } else { most };
    let worst = priced.map_or(Money::ZERO, |priced| priced.price.max_cost(0, most));
    match cost {
        Some(limit) if worst > limit => Err(Problem::new(
            ProblemCode::UnknownPrice,
            format!(
                "one answer of `{name}` can have {} tokens and cost {worst}, more than {setting} {limit}",
                group_digits(most)
            ),
        )
        .hint(match payable_answer(limit, worst, most) {
            Some(tokens) => format!(
                "raise the limit, or cap answers in the model string, such as `{name}?max_tokens={tokens}`"
            ),
            None => format!("raise the limit above {worst}"),
        })),
        _ => Ok(()),
    }
}

/// A round number of tokens that half of the budget pays for, which leaves the rest for the prompt,
/// given that an answer of `most` tokens costs `worst`. Under a hundred tokens, there is hardly an
/// answer.
fn payable_answer(limit: Money, worst: Money, most: u64) -> Option<u64> {
    let tokens = u128::from(most) * u128::from(limit.pico()) / u128::from(worst.pico().max(1)) / 2;
    let tokens = u64::try_from(tokens).unwrap_or(most);
    Some(if tokens >= 1000 { 1000 } else { tokens / 100 * 100 }).filter(|tokens| *tokens > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_counts_by_text_that_no_change_of_the_code_changes() {
        let schema = serde_json::json!({"type": "object"});
        let tool = ToolSpec { name: "look".into(), description: None, schema };
        assert_eq!(tool_line(&tool), format!("\n{}", text_digest(r#"["look",null,{"type":"object"}]"#)));
    }
}
