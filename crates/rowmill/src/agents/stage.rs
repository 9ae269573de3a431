//! Sets up agents for the engine: the agent graph, the models of its model roles, and its tools.

use std::sync::Arc;

use rowmill_cards::{AGENT_SKILLS, Card, Kind as CardKind, SERVER_INSTRUCTIONS, StructuredToolPolicy};
use rowmill_core::agent::{
    Agent, Cast, Child, Form, Kind, Matching, Member, PlanType, Rating, Tool, instruction,
};
use rowmill_core::fingerprint::digest;
use rowmill_core::ports::ToolHost;
use rowmill_core::record::TracedVoice;
use rowmill_core::redact::Redactor;
use rowmill_core::validate::ResultSchema;
use rowmill_engine::{Tools, Voice};
use rowmill_tools::{ParallelLimits, Recorder};
use rowmill_types::{AttachmentRules, Problem, ProblemCode, ToolSpec};
use serde_json::{Value, json};

use super::load::LoadedCards;
use super::models::{access_of, model_of};
use super::offers::{Offers, Surroundings, offers};
use super::routes::Routes;
use crate::lanes::{Asks, Lanes, Maker};
use crate::traces::Speakers;
use crate::work::WorkSpec;

/// The default maximum number of model calls in one conversation.
const MAX_ITERATIONS: u32 = 50;
/// The longest tool name that providers accept.
const LONGEST_NAME: usize = 64;

/// Everything that answers rows.
pub(crate) struct Stage {
    pub(crate) cast: Arc<Cast>,
    pub(crate) voices: Vec<Voice>,
    pub(crate) tools: Option<Tools>,
    /// The model string that represents the run.
    pub(crate) model: String,
    /// Identifies everything besides the messages that shapes an answer.
    pub(crate) identity: String,
    /// Which files can be attached to a row.
    pub(crate) rules: AttachmentRules,
    pub(crate) speakers: Speakers,
    /// Masks secrets, which must not appear in any file.
    pub(crate) redactor: Redactor,
    /// Reports after the run what could not be recorded.
    pub(crate) recorder: Option<Arc<Recorder>>,
}

/// What agents are set up with, besides their cards.
pub(crate) struct StageSettings {
    /// The JSON Schema of results.
    pub(crate) schema: Option<ResultSchema>,
    /// Whether messages are kept for traces.
    pub(crate) traced: bool,
    /// Learns the secrets of the agents, which must not appear in any file.
    pub(crate) redactor: Redactor,
}

/// A single model without agents.
pub(super) fn plain(
    spec: &WorkSpec,
    maker: &Maker<'_>,
    asks: &Asks,
    (schema, traced): (Option<ResultSchema>, bool),
) -> Result<Stage, Problem> {
    let Lanes { model, lanes, identity, rules, secrets } = maker.lanes(asks)?;
    let cast =
        Cast::plain(schema, spec.repairs)?.with_turns(spec.agents.turns).with_vocabulary(maker.vocabulary());
    let redactor = maker.environment().redactor()?;
    redactor.learn(&secrets)?;
    Ok(Stage {
        cast: Arc::new(cast.with_transcripts(traced)),
        voices: vec![Voice { lanes, files: rules.clone() }],
        tools: None,
        speakers: Speakers::plain(model.to_string(), asks.instruction.clone()),
        model: model.to_string(),
        identity,
        rules,
        redactor: redactor.clone(),
        recorder: None,
    })
}

/// Sets up the agents of cards, and starts their tools.
pub(crate) async fn stage(
    spec: &WorkSpec,
    maker: &Maker<'_>,
    loaded: &LoadedCards,
    settings: StageSettings,
) -> Result<Stage, Problem> {
    let StageSettings { schema, traced, redactor } = settings;
    let members = loaded.set.members(&loaded.worker);
    let routes = Routes::read(&spec.agents)?;
    let models: Vec<String> = members
        .iter()
        .map(|card| model_of(spec, maker, card, members.first().copied()))
        .collect::<Result<_, _>>()?;
    let with = Surroundings { spec, maker, loaded, models: &models, redactor: &redactor };
    let mut offers = offers(with, &members).await?;
    let routes = routes.add_stubs(&mut offers);
    routes.check(&spec.agents, &members, &offers)?;
    let instructions: Vec<Option<String>> = (0..members.len())
        .map(|index| members.get(index).and_then(|card| own_instruction(card, &offers, index)))
        .collect();
    let (hosts, hooks) = (std::mem::take(&mut offers.hosts), offers.hooks.take());
    let cast = cast(spec, &members, &routes, &mut offers, schema)?.with_transcripts(traced);
    let cast = cast.with_vocabulary(maker.vocabulary());
    let (host, recorder) = host(spec, hosts, std::mem::take(&mut offers.limits), &cast)?;
    let mut stage = Stage {
        voices: Vec::new(),
        tools: Some(Tools { host, hooks, result_limit: spec.agents.tool_result_limit }),
        model: models.first().cloned().unwrap_or_default(),
        identity: format!("agents {}", loaded.digest),
        rules: AttachmentRules { kinds: Vec::new(), max_total: 0, max_count: 0 },
        speakers: Speakers {
            agent: loaded.worker.clone(),
            members: members.iter().map(|card| card.name.clone()).collect(),
            voices: Vec::new(),
        },
        redactor: Redactor::default(),
        recorder,
        cast: Arc::new(cast),
    };
    let cast = Arc::clone(&stage.cast);
    for (index, voice) in cast.voices().iter().enumerate() {
        let (Some(card), Some(model)) = (members.get(voice.member), models.get(voice.member)) else {
            continue;
        };
        let own = instructions.get(voice.member).and_then(|text| text.as_deref());
        let mut names = vec![model.clone()];
        names.extend(spec.fallback_models.iter().cloned());
        let asks = Asks {
            models: names,
            instruction: instruction(&cast, index, own),
            schema: cast.told_schema(index),
            tools: tool_specs(&cast, voice.member, voice.form, card),
            parallel_tool_calls: card.request.parallel_tool_calls,
            access: access_of(card, model),
        };
        let lanes = maker.lanes(&asks)?;
        redactor.learn(&lanes.secrets)?;
        stage.add(index, asks.instruction.clone(), lanes);
    }
    // The clone can read what was learned so far without a lock.
    stage.redactor = redactor.clone();
    if let Some(recorder) = &stage.recorder {
        recorder.redact_with(stage.redactor.clone());
    }
    Ok(stage)
}

impl Stage {
    fn add(&mut self, index: usize, system: Option<String>, lanes: Lanes) {
        let Lanes { model, lanes, identity, rules, .. } = lanes;
        self.identity = digest(&format!("{}\n{identity}", self.identity));
        self.speakers.voices.push(TracedVoice { model: model.to_string(), system });
        if index == 0 || self.rules.max_count == 0 {
            self.rules = rules.clone();
        }
        self.voices.push(Voice { lanes, files: rules });
    }
}

/// One host for all tools, which records their output if requested.
#[expect(clippy::type_complexity, reason = "a host, and the same host where it records")]
fn host(
    spec: &WorkSpec,
    hosts: Vec<(Vec<rowmill_tools::Names>, Arc<dyn ToolHost>)>,
    limits: ParallelLimits,
    cast: &Cast,
) -> Result<(Arc<dyn ToolHost>, Option<Arc<Recorder>>), Problem> {
    let all = limits.around(Arc::new(rowmill_tools::Tools::new(hosts)));
    match &spec.agents.record_tools {
        None => Ok((all, None)),
        Some(folder) => {
            // Recorded under the name that `--stub` uses.
            let named = cast.tools().iter().map(|tool| (tool.host_name.clone(), tool.spec.name.clone()));
            let recorder = Arc::new(Recorder::new(all, folder.clone(), named.collect())?);
            Ok((Arc::clone(&recorder) as Arc<dyn ToolHost>, Some(recorder)))
        }
    }
}

/// The card's instruction, with the texts of its servers and skills.
fn own_instruction(card: &Card, offers: &Offers, index: usize) -> Option<String> {
    let servers = offers.server_texts.get(index).map(String::as_str).unwrap_or_default();
    let skills = offers.skill_texts.get(index).and_then(|text| text.as_deref());
    let text = card.instruction.as_ref().map(|text| {
        text.replace(SERVER_INSTRUCTIONS, servers).replace(AGENT_SKILLS, skills.unwrap_or_default())
    });
    let placed = card.instruction.as_ref().is_some_and(|text| text.contains(AGENT_SKILLS));
    match (text, skills.filter(|_| !placed)) {
        (Some(text), Some(skills)) => Some(format!("{text}\n\n{skills}")),
        (None, Some(skills)) => Some(skills.to_owned()),
        (text, None) => text,
    }
}

fn cast(
    spec: &WorkSpec,
    cards: &[&Card],
    routes: &Routes,
    offers: &mut Offers,
    schema: Option<ResultSchema>,
) -> Result<Cast, Problem> {
    let mut tools = Vec::new();
    let mut members = Vec::new();
    for (index, card) in cards.iter().enumerate() {
        let offered = offers.tools.get_mut(index).map(std::mem::take).unwrap_or_default();
        let first = tools.len();
        for offer in offered {
            let most = routes.max_parallel(card, &offer.spec.name);
            let tool = routes.tool(card, offer);
            if let Some(most) = most {
                offers.limits.add([tool.host_name.clone()], most);
            }
            tools.push(tool);
        }
        members.push(Member {
            name: card.name.clone(),
            description: card.description.clone().unwrap_or_default(),
            kind: kind(cards, card, first..tools.len())?,
        });
        check_names(card, &tools, members.last())?;
    }
    let cast = Cast::new(members, tools, 0, schema)?;
    Ok(cast.with_turns(spec.agents.turns).with_repairs(spec.repairs))
}

/// Checks that no two tools of one agent have the same name.
fn check_names(card: &Card, tools: &[Tool], member: Option<&Member>) -> Result<(), Problem> {
    let Some(Kind::Agent(agent)) = member.map(|member| &member.kind) else { return Ok(()) };
    let own = agent.tools.iter().filter_map(|&index| tools.get(index)).map(|tool| tool.spec.name.as_str());
    let mut seen = std::collections::BTreeSet::new();
    for name in own.chain(agent.children.iter().map(|child| child.spec.name.as_str())) {
        if !seen.insert(name) {
            let message = format!("`{}` has two tools with the name `{name}`", card.source);
            return Err(Problem::new(ProblemCode::InvalidCard, message)
                .hint("rename one of them, or exclude one with a filter"));
        }
    }
    Ok(())
}

fn kind(cards: &[&Card], card: &Card, tools: std::ops::Range<usize>) -> Result<Kind, Problem> {
    let place = |name: &String| cards.iter().position(|other| other.name == *name).unwrap_or_default();
    let places = |names: &Vec<String>| names.iter().map(place).collect::<Vec<_>>();
    Ok(match &card.kind {
        CardKind::Agent { agents } => {
            let children = agents.iter().map(|name| child(cards, place(name))).collect::<Result<_, _>>()?;
            Kind::Agent(agent(card, tools, children))
        }
        CardKind::Chain { sequence, cumulative } => {
            Kind::Chain { sequence: places(sequence), cumulative: *cumulative }
        }
        CardKind::Parallel { fan_out, fan_in, include_request } => Kind::Parallel {
            fan_out: places(fan_out),
            fan_in: fan_in.as_ref().map(place),
            include_request: *include_request,
        },
        CardKind::EvaluatorOptimizer {
            generator,
            evaluator,
            min_rating,
            max_refinements,
            refinement_instruction,
        } => Kind::EvaluatorOptimizer {
            generator: place(generator),
            evaluator: place(evaluator),
            min_rating: rating(*min_rating),
            max_refinements: *max_refinements,
            instruction: refinement_instruction.clone(),
        },
        CardKind::Router { agents } => Kind::Router { agents: places(agents) },
        CardKind::Orchestrator { agents, plan_type, plan_iterations } => Kind::Orchestrator {
            agents: places(agents),
            plan: match plan_type {
                rowmill_cards::PlanType::Full => PlanType::Full,
                rowmill_cards::PlanType::Iterative => PlanType::Iterative,
            },
            iterations: plan_iterations.map(Into::into),
        },
        CardKind::IterativePlanner { agents, plan_iterations } => Kind::Orchestrator {
            agents: places(agents),
            plan: PlanType::Iterative,
            iterations: plan_iterations.map(Into::into),
        },
        CardKind::Maker { worker, k, max_samples, match_strategy, red_flag_max_length } => Kind::Maker {
            worker: place(worker),
            k: *k,
            max_samples: *max_samples,
            matching: match match_strategy {
                rowmill_cards::MatchStrategy::Exact => Matching::Exact,
                rowmill_cards::MatchStrategy::Normalized => Matching::Normalized,
                rowmill_cards::MatchStrategy::Structured => Matching::Structured,
            },
            red_flag_max_length: red_flag_max_length.map(|most| most as usize),
        },
    })
}

fn agent(card: &Card, tools: std::ops::Range<usize>, children: Vec<Child>) -> Agent {
    Agent {
        tools: tools.collect(),
        children,
        max_iterations: card.request.max_iterations.map_or(MAX_ITERATIONS, Into::into),
        max_parallel: card.max_parallel.map(|most| u32::from(most) as usize),
        child_timeout: card.child_timeout,
        one_by_one: card.request.parallel_tool_calls == Some(false),
        examples: card.history.clone(),
    }
}

fn rating(rating: rowmill_cards::Rating) -> Rating {
    match rating {
        rowmill_cards::Rating::Poor => Rating::Poor,
        rowmill_cards::Rating::Fair => Rating::Fair,
        rowmill_cards::Rating::Good => Rating::Good,
        rowmill_cards::Rating::Excellent => Rating::Excellent,
    }
}

/// An agent in the form in which it is offered to another one.
fn child(cards: &[&Card], place: usize) -> Result<Child, Problem> {
    let Some(card) = cards.get(place) else {
        return Err(Problem::new(ProblemCode::Internal, "a child is not among the members"));
    };
    let schema = card.tool_input_schema.clone().map_or_else(
        || {
            json!({
                "type": "object",
                "properties": {"message": {"type": "string", "description": "What the agent is asked."}},
                "required": ["message"],
                "additionalProperties": false
            })
        },
        Value::Object,
    );
    let legal =
        |letter: char| if letter.is_ascii_alphanumeric() || "_-".contains(letter) { letter } else { '_' };
    let name: String = card.name.chars().map(legal).take(LONGEST_NAME).collect();
    let description = card.description.clone().or_else(|| Some(format!("Asks the agent {}.", card.name)));
    Ok(Child {
        member: place,
        arguments: ResultSchema::parse(&schema.to_string(), &name).ok(),
        spec: ToolSpec { name, description, schema },
    })
}

/// The tools that a model role offers its model.
fn tool_specs(cast: &Cast, member: usize, form: Form, card: &Card) -> Vec<ToolSpec> {
    let no_tools = card.request.structured_tool_policy == StructuredToolPolicy::NoTools;
    match cast.members().get(member).map(|member| &member.kind) {
        Some(Kind::Agent(agent)) if !(no_tools && form != Form::Text) => {
            let own = agent.tools.iter().filter_map(|&tool| cast.tools().get(tool)).map(|tool| &tool.spec);
            own.chain(agent.children.iter().map(|child| &child.spec)).cloned().collect()
        }
        _ => Vec::new(),
    }
}
