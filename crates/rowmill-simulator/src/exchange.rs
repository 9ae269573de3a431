//! Turns a request into the answer to deliver.

use std::time::Duration;

use rowmill_schema_faker::{seed_of, value_for};

use crate::admission::Admission;
use crate::answer::Answer;
use crate::call_marker;
use crate::distribution::Distribution;
use crate::fault::{Delivery, Fault, When};
use crate::marker;
use crate::outage::OutageKind;
use crate::outgoing::Outgoing;
use crate::protocol::{Ask, Protocol, Refused};
use crate::recorder::{Call, RequestSeen};
use crate::reply::{Circumstances, Reply};
use crate::shared::Shared;

/// How a call will be answered.
#[derive(Debug)]
pub(crate) struct Plan<'s> {
    protocol: Protocol,
    pub(crate) ask: Ask,
    pub(crate) how: Answer,
    pub(crate) at: Circumstances,
    pub(crate) asked: Asked,
    admission: Admission<'s>,
}

/// Why a call is not answered.
#[derive(Debug)]
pub(crate) enum Rejection {
    /// With this error response.
    Refused(Refused),
    /// The connection is reset.
    Reset,
}

impl From<Refused> for Rejection {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// An answer and how it is delivered.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) outgoing: Outgoing,
    pub(crate) delivery: Delivery,
    /// The conversation that it answers, if a model was called.
    pub(crate) asked: Option<Asked>,
}

/// How an answer is counted.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) prompt: String,
    /// Identifies the conversation.
    pub(crate) conversation: u64,
}

impl Exchange {
    pub(crate) fn whole(outgoing: Outgoing) -> Self {
        Self { outgoing, delivery: Delivery::Whole, asked: None }
    }
}

impl Shared {
    /// Answers a model call, after the waits that the script sets.
    pub(crate) async fn answer(
        &self,
        protocol: Protocol,
        request: &RequestSeen,
        call: &Call<'_>,
    ) -> Exchange {
        let mut plan = match self.plan(protocol, request, call).await {
            Ok(plan) => plan,
            Err(Rejection::Refused(refused)) => {
                let headers = [refused.headers.as_slice(), &self.script.headers].concat();
                return Exchange::whole(Outgoing::json(refused.status, &headers, &protocol.error(&refused)));
            }
            Err(Rejection::Reset) => {
                let nothing = Outgoing::text(503, "");
                return Exchange { outgoing: nothing, delivery: Delivery::Reset, asked: None };
            }
        };
        let headers = [plan.headers(), &self.script.headers].concat();
        let outgoing = match plan.fault() {
            Some(Fault::Status { code, headers: own, body }) => {
                let headers = [own.as_slice(), &headers].concat();
                match body {
                    Some(body) => {
                        Outgoing::plain(*code, "application/json", &headers, body.clone().into_bytes())
                    }
                    None => Outgoing::json(*code, &headers, &protocol.status_error(*code)),
                }
            }
            Some(Fault::Garbage) => Outgoing::plain(200, "text/html", &[], GARBAGE.as_bytes().to_vec()),
            _ => {
                let reply = self.generate(&mut plan);
                protocol.render(&plan.ask, &reply, &headers)
            }
        };
        Exchange { outgoing, delivery: Delivery::of(plan.fault()), asked: Some(plan.asked) }
    }

    /// Checks a call, admits it, waits as the script says, and decides how it is answered.
    pub(crate) async fn plan(
        &self,
        protocol: Protocol,
        request: &RequestSeen,
        call: &Call<'_>,
    ) -> Result<Plan<'_>, Rejection> {
        self.check_outage()?;
        protocol.check_headers(request, self.script.key.as_deref())?;
        protocol.check_size(request, self.script.body_limit)?;
        let ask = protocol.ask(request, &self.stored, &self.thoughts)?;
        protocol.check_model(&ask.model, &self.script.models)?;
        self.recorder.call_seen(&self.script, request, &ask, call.number);
        let input = self.script.tokenizer.count_prompt(&ask);
        let key = protocol.key(request).unwrap_or_default();
        let admission = self.admit(protocol, &ask, key, input)?;
        let asked = Asked { prompt: ask.prompt.clone(), conversation: ask.conversation() };
        let (of_prompt, of_turn) = self.recorder.asked(&asked);
        let at = Circumstances { number: call.number, of_prompt, of_turn, input, prefix: admission.prefix };
        self.gate.pass(at.number).await;
        let latency = self.latency(self.conditions().latency, at.number);
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        let how = match self.decide(&ask, at) {
            Answer::Made => made(&ask)?,
            how => how,
        };
        Ok(Plan { protocol, ask, how, at, asked, admission })
    }

    fn check_outage(&self) -> Result<(), Rejection> {
        let outage = self.conditions().outage();
        if outage.is_some() {
            self.recorder.outage_refused();
        }
        match outage {
            None => Ok(()),
            Some(OutageKind::Status(status)) => Err(Refused::of_status(status).into()),
            Some(OutageKind::Reset | OutageKind::Refuse) => Err(Rejection::Reset),
        }
    }

    /// Makes the answer. From here on it counts as used and is charged for, whether it arrives or not, unless
    /// the vendor rejects the call instead.
    pub(crate) fn generate(&self, plan: &mut Plan<'_>) -> Reply {
        let reply = Reply::make(&self.script, &plan.ask, plan.at, &plan.how);
        let is_charged = match plan.fault() {
            // A call that is never answered was never processed.
            Some(Fault::Reset | Fault::Hang) => false,
            Some(Fault::Filter) => !plan.protocol.refuses_filtered(),
            _ => true,
        };
        if is_charged {
            plan.admission.settle(&reply.tokens);
        }
        self.thoughts.remember(&plan.ask, &reply);
        reply
    }

    /// The wait before the answer to a call.
    pub(crate) fn latency(&self, latency: Distribution, number: u64) -> Duration {
        let chance = |purpose| chance(self.script.seed, purpose, &number.to_string());
        let jitter = self.script.jitter.mul_f64(chance("jitter"));
        latency.draw_wait((chance("latency"), chance("latency too"))) + jitter
    }

    fn decide(&self, ask: &Ask, at: Circumstances) -> Answer {
        let prompt = ask.prompt.as_str();
        let struck = self.script.faults.iter().enumerate().find(|(rule, (when, _))| match when {
            When::Always => true,
            When::Nth(number) => *number == at.number,
            When::PromptContains(text, times) => at.of_prompt <= *times && prompt.contains(text.as_str()),
            When::Rate(rate) => chance(self.script.seed, &rule.to_string(), &at.number.to_string()) < *rate,
        });
        if let Some((_, (_, fault))) = struck {
            return Answer::Fail(fault.clone());
        }
        if let Some(fault) = marker::fault_for(prompt, at.of_prompt) {
            return Answer::Fail(fault);
        }
        let seen = ask.seen(at.of_prompt, at.of_turn);
        let told = match (&self.script.reply, &self.script.answer) {
            (Some(reply), _) => reply(&seen),
            (None, Some(answer)) => answer(prompt, at.of_prompt),
            (None, None) => Answer::Made,
        };
        if told != Answer::Made {
            return told;
        }
        let ruled = self.script.rules.answer(&seen);
        ruled.or_else(|| call_marker::calls_for(ask)).unwrap_or(Answer::Made)
    }
}

/// A value for the schema of a call, if it has one; an error if that would be too large.
fn made(ask: &Ask) -> Result<Answer, Refused> {
    let Some(schema) = &ask.schema else { return Ok(Answer::Made) };
    let value = value_for(schema, seed_of(&[&ask.prompt])).map_err(|what| {
        Refused::invalid(format!("the schema asks for more than the simulator can generate: {what}"))
    });
    Ok(Answer::Json(value?))
}

/// A number from 0 up to 1, derived from the seed, its purpose and its subject.
pub(crate) fn chance(seed: u64, purpose: &str, whom: &str) -> f64 {
    let drawn = seed_of(&[&seed.to_string(), purpose, whom]);
    (drawn >> 11) as f64 / (1u64 << 53) as f64
}

const GARBAGE: &str = "<html><body><h1>It works!</h1></body></html>";

impl Plan<'_> {
    pub(crate) fn fault(&self) -> Option<&Fault> {
        if let Answer::Fail(fault) = &self.how { Some(fault) } else { None }
    }

    /// The headers that report the state of the limits.
    pub(crate) fn headers(&self) -> &[(String, String)] {
        &self.admission.headers
    }
}
