//! Turns a request into the answer to deliver.

use std::time::Duration;

use rowmill_schema_faker::{seed_from, simulated_value};

use crate::admission::AdmittedCall;
use crate::answer::SimulatedAnswer;
use crate::call_marker;
use crate::distribution::RandomDistribution;
use crate::fault::{AnswerDelivery, FaultTrigger, SimulatedFault};
use crate::fault_marker;
use crate::outage::OutageKind;
use crate::outgoing_answer::OutgoingAnswer;
use crate::protocol::{ParsedRequest, RequestRefusal, VendorProtocol};
use crate::recorder::{CallInFlight, RecordedRequest};
use crate::reply::{CallCircumstances, SimulatedReply};
use crate::simulator_state::SimulatorState;

/// How a call will be answered.
#[derive(Debug)]
pub(crate) struct AnswerPlan<'s> {
    protocol: VendorProtocol,
    pub(crate) ask: ParsedRequest,
    pub(crate) how: SimulatedAnswer,
    pub(crate) at: CallCircumstances,
    pub(crate) asked: AnsweredPrompt,
    admission: AdmittedCall<'s>,
}

/// Why a call is not answered.
#[derive(Debug)]
pub(crate) enum CallRejection {
    /// With this error response.
    Refused(RequestRefusal),
    /// The connection is reset.
    Reset,
}

impl From<RequestRefusal> for CallRejection {
    fn from(refused: RequestRefusal) -> Self {
        Self::Refused(refused)
    }
}

/// An answer and how it is delivered.
#[derive(Debug)]
pub(crate) struct PreparedAnswer {
    pub(crate) outgoing: OutgoingAnswer,
    pub(crate) delivery: AnswerDelivery,
    /// The conversation that it answers, if a model was called.
    pub(crate) asked: Option<AnsweredPrompt>,
}

/// How an answer is counted.
#[derive(Debug, Clone)]
pub(crate) struct AnsweredPrompt {
    pub(crate) prompt: String,
    /// Identifies the conversation.
    pub(crate) conversation: u64,
}

impl PreparedAnswer {
    pub(crate) fn whole(outgoing: OutgoingAnswer) -> Self {
        Self { outgoing, delivery: AnswerDelivery::Whole, asked: None }
    }
}

impl SimulatorState {
    /// Answers a model call, after the waits that the script sets.
    pub(crate) async fn answer(
        &self,
        protocol: VendorProtocol,
        request: &RecordedRequest,
        call: &CallInFlight<'_>,
    ) -> PreparedAnswer {
        let mut plan = match self.plan(protocol, request, call).await {
            Ok(plan) => plan,
            Err(CallRejection::Refused(refused)) => {
                let headers = [refused.headers.as_slice(), &self.script.headers].concat();
                return PreparedAnswer::whole(OutgoingAnswer::json(
                    refused.status,
                    &headers,
                    &protocol.error(&refused),
                ));
            }
            Err(CallRejection::Reset) => {
                let nothing = OutgoingAnswer::text(503, "");
                return PreparedAnswer { outgoing: nothing, delivery: AnswerDelivery::Reset, asked: None };
            }
        };
        let headers = [plan.headers(), &self.script.headers].concat();
        let outgoing = match plan.fault() {
            Some(SimulatedFault::Status { code, headers: own, body }) => {
                let headers = [own.as_slice(), &headers].concat();
                match body {
                    Some(body) => OutgoingAnswer::with_body(
                        *code,
                        "application/json",
                        &headers,
                        body.clone().into_bytes(),
                    ),
                    None => OutgoingAnswer::json(*code, &headers, &protocol.status_error(*code)),
                }
            }
            Some(SimulatedFault::Garbage) => {
                OutgoingAnswer::with_body(200, "text/html", &[], GARBAGE.as_bytes().to_vec())
            }
            _ => {
                let reply = self.generate(&mut plan);
                protocol.render_answer(&plan.ask, &reply, &headers)
            }
        };
        PreparedAnswer {
            outgoing,
            delivery: AnswerDelivery::from_fault(plan.fault()),
            asked: Some(plan.asked),
        }
    }

    /// Checks a call, admits it, waits as the script says, and decides how it is answered.
    pub(crate) async fn plan(
        &self,
        protocol: VendorProtocol,
        request: &RecordedRequest,
        call: &CallInFlight<'_>,
    ) -> Result<AnswerPlan<'_>, CallRejection> {
        self.check_outage()?;
        protocol.check_headers(request, self.script.key.as_deref())?;
        protocol.check_size(request, self.script.body_limit)?;
        let ask = protocol.read_request(request, &self.stored, &self.thoughts)?;
        protocol.check_model(&ask.model, &self.script.models)?;
        self.recorder.call_seen(&self.script, request, &ask, call.number);
        let input = self.script.tokenizer.count_prompt(&ask);
        let key = protocol.key(request).unwrap_or_default();
        let admission = self.admit(protocol, &ask, key, input)?;
        let asked = AnsweredPrompt { prompt: ask.prompt.clone(), conversation: ask.conversation() };
        let (of_prompt, of_turn) = self.recorder.count_prompt(&asked);
        let at =
            CallCircumstances { number: call.number, of_prompt, of_turn, input, prefix: admission.prefix };
        self.gate.wait_for_release(at.number).await;
        let latency = self.latency(self.conditions().latency, at.number);
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        let how = match self.decide(&ask, at) {
            SimulatedAnswer::Default => made_for_schema(&ask)?,
            how => how,
        };
        Ok(AnswerPlan { protocol, ask, how, at, asked, admission })
    }

    /// Rejects a request during an outage.
    pub(crate) fn check_outage(&self) -> Result<(), CallRejection> {
        let outage = self.conditions().outage();
        if outage.is_some() {
            self.recorder.record_outage();
        }
        match outage {
            None => Ok(()),
            Some(OutageKind::Status(status)) => Err(RequestRefusal::from_status(status).into()),
            Some(OutageKind::Reset | OutageKind::Refuse) => Err(CallRejection::Reset),
        }
    }

    /// Makes the answer. From here on it counts as used and is charged for, whether it arrives or not, unless
    /// the vendor rejects the call instead.
    pub(crate) fn generate(&self, plan: &mut AnswerPlan<'_>) -> SimulatedReply {
        let reply = SimulatedReply::make(&self.script, &plan.ask, plan.at, &plan.how);
        let is_charged = match plan.fault() {
            // A call that is never answered was never processed.
            Some(SimulatedFault::Reset | SimulatedFault::Hang) => false,
            Some(SimulatedFault::Filter) => !plan.protocol.refuses_filtered(),
            _ => true,
        };
        if is_charged {
            plan.admission.settle(&reply.tokens);
        }
        self.thoughts.remember(&plan.ask, &reply);
        reply
    }

    /// The wait before the answer to a call.
    pub(crate) fn latency(&self, latency: RandomDistribution, number: u64) -> Duration {
        let chance = |purpose| seeded_chance(self.script.seed, purpose, &number.to_string());
        let jitter = self.script.jitter.mul_f64(chance("jitter"));
        latency.draw_wait((chance("latency"), chance("latency too"))) + jitter
    }

    /// How a call is answered.
    pub(crate) fn decide(&self, ask: &ParsedRequest, at: CallCircumstances) -> SimulatedAnswer {
        let prompt = ask.prompt.as_str();
        let struck = self.script.faults.iter().enumerate().find(|(rule, (when, _))| match when {
            FaultTrigger::Always => true,
            FaultTrigger::Nth(number) => *number == at.number,
            FaultTrigger::PromptContains(text, times) => {
                at.of_prompt <= *times && prompt.contains(text.as_str())
            }
            FaultTrigger::Rate(rate) => {
                seeded_chance(self.script.seed, &rule.to_string(), &at.number.to_string()) < *rate
            }
        });
        if let Some((_, (_, fault))) = struck {
            return SimulatedAnswer::Fail(fault.clone());
        }
        if let Some(fault) = fault_marker::fault_for(prompt, at.of_prompt) {
            return SimulatedAnswer::Fail(fault);
        }
        let seen = ask.view(at.of_prompt, at.of_turn);
        let scripted = match (&self.script.reply, &self.script.answer) {
            (Some(reply), _) => reply(&seen),
            (None, Some(answer)) => answer(prompt, at.of_prompt),
            (None, None) => SimulatedAnswer::Default,
        };
        if scripted != SimulatedAnswer::Default {
            return scripted;
        }
        let ruled = self.script.rules.answer(&seen);
        ruled.or_else(|| call_marker::calls_for(ask)).unwrap_or(SimulatedAnswer::Default)
    }
}

/// A value for the schema of a call, if it has one; an error if that would be too large.
pub(crate) fn made_for_schema(ask: &ParsedRequest) -> Result<SimulatedAnswer, RequestRefusal> {
    let Some(schema) = &ask.schema else { return Ok(SimulatedAnswer::Default) };
    let value = simulated_value(schema, seed_from(&[&ask.prompt])).map_err(|what| {
        RequestRefusal::invalid(format!("the schema asks for more than the simulator can generate: {what}"))
    });
    Ok(SimulatedAnswer::Json(value?))
}

/// A number from 0 up to 1, derived from the seed, its purpose and its subject.
pub(crate) fn seeded_chance(seed: u64, purpose: &str, whom: &str) -> f64 {
    let drawn = seed_from(&[&seed.to_string(), purpose, whom]);
    (drawn >> 11) as f64 / (1u64 << 53) as f64
}

pub(crate) const GARBAGE: &str = "<html><body><h1>It works!</h1></body></html>";

impl AnswerPlan<'_> {
    pub(crate) fn fault(&self) -> Option<&SimulatedFault> {
        if let SimulatedAnswer::Fail(fault) = &self.how { Some(fault) } else { None }
    }

    /// The headers that report the state of the limits.
    pub(crate) fn headers(&self) -> &[(String, String)] {
        &self.admission.headers
    }
}
