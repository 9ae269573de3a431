//! From a request to the answer that is to be delivered.

use std::time::Duration;

use rowmill_core::simulate::seed_of;

use crate::fault::{Delivery, Fault, When};
use crate::gate::Gate;
use crate::marker;
use crate::outgoing::Outgoing;
use crate::protocol::{Ask, Protocol, Refused};
use crate::recorder::{Call, Recorder, RequestSeen};
use crate::reply::{Circumstances, Reply};
use crate::script::{Answer, Script};

/// What a simulator's connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) script: Script,
    pub(crate) recorder: Recorder,
    pub(crate) gate: Gate,
}

/// How a call will be answered.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) ask: Ask,
    pub(crate) how: Answer,
    pub(crate) at: Circumstances,
}

/// An answer and the way it goes out.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) outgoing: Outgoing,
    pub(crate) delivery: Delivery,
    /// The prompt that it answers, where a model was called.
    pub(crate) prompt: Option<String>,
}

impl Exchange {
    pub(crate) fn whole(outgoing: Outgoing) -> Self {
        Self { outgoing, delivery: Delivery::Whole, prompt: None }
    }
}

impl Shared {
    pub(crate) fn new(script: Script) -> Self {
        let recorder = Recorder::new(script.keep_requests, script.keep_prompts);
        let gate = Gate::new(script.hold_after, script.drip_every);
        Self { script, recorder, gate }
    }

    /// Answers a model call, after the waits that the script asks for.
    pub(crate) async fn answer(
        &self,
        protocol: Protocol,
        request: &RequestSeen,
        call: &Call<'_>,
    ) -> Exchange {
        let plan = match self.plan(protocol, request, call).await {
            Ok(plan) => plan,
            Err(refused) => {
                let body = protocol.error(&refused);
                return Exchange::whole(Outgoing::json(refused.status, &self.script.headers, &body));
            }
        };
        let fault = plan.fault();
        let outgoing = match fault {
            Some(Fault::Status { code, headers, body }) => {
                let headers = [headers.as_slice(), &self.script.headers].concat();
                match body {
                    Some(body) => {
                        Outgoing::plain(*code, "application/json", &headers, body.clone().into_bytes())
                    }
                    None => Outgoing::json(*code, &headers, &protocol.status_error(*code)),
                }
            }
            Some(Fault::Garbage) => Outgoing::plain(200, "text/html", &[], GARBAGE.as_bytes().to_vec()),
            _ => protocol.render(&plan.ask, &plan.reply(&self.script), &self.script.headers),
        };
        Exchange { outgoing, delivery: Delivery::of(fault), prompt: Some(plan.ask.prompt) }
    }

    /// Checks a call, waits as the script says, and decides how it is answered.
    pub(crate) async fn plan(
        &self,
        protocol: Protocol,
        request: &RequestSeen,
        call: &Call<'_>,
    ) -> Result<Plan, Refused> {
        protocol.check_headers(request, self.script.key.as_deref())?;
        let ask = protocol.ask(request)?;
        protocol.check_model(&ask.model, &self.script.models)?;
        let at = Circumstances {
            number: call.number,
            of_prompt: self.recorder.prompt_called(&ask.prompt),
            cached: !ask.system.is_empty() && self.recorder.prefix_is_known(&ask.system),
        };
        self.gate.pass(at.number).await;
        let latency = self.latency(at.number);
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        let how = self.decide(&ask.prompt, at);
        Ok(Plan { ask, how, at })
    }

    fn latency(&self, number: u64) -> Duration {
        let share = self.chance("jitter", number);
        self.script.latency + self.script.jitter.mul_f64(share)
    }

    fn decide(&self, prompt: &str, at: Circumstances) -> Answer {
        let struck = self.script.faults.iter().enumerate().find(|(rule, (when, _))| match when {
            When::Always => true,
            When::Nth(number) => *number == at.number,
            When::PromptContains(text, times) => at.of_prompt <= *times && prompt.contains(text.as_str()),
            When::Rate(rate) => self.chance(&rule.to_string(), at.number) < *rate,
        });
        if let Some((_, (_, fault))) = struck {
            return Answer::Fail(fault.clone());
        }
        if let Some(fault) = marker::fault_for(prompt, at.of_prompt) {
            return Answer::Fail(fault);
        }
        self.script.answer.as_ref().map_or(Answer::Made, |answer| answer(prompt, at.of_prompt))
    }

    /// A number from 0 up to 1 that follows from the seed, what it is for and the call.
    fn chance(&self, purpose: &str, number: u64) -> f64 {
        let drawn = seed_of(&[&self.script.seed.to_string(), purpose, &number.to_string()]);
        (drawn >> 11) as f64 / (1u64 << 53) as f64
    }
}

const GARBAGE: &str = "<html><body><h1>It works!</h1></body></html>";

impl Plan {
    pub(crate) fn fault(&self) -> Option<&Fault> {
        if let Answer::Fail(fault) = &self.how { Some(fault) } else { None }
    }

    pub(crate) fn reply(&self, script: &Script) -> Reply {
        Reply::make(script, &self.ask, self.at, &self.how)
    }
}
