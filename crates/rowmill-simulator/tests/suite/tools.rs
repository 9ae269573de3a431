//! The simulator acts as a model that calls tools, in every protocol, plain and streamed.

use crate::support::Client;
use crate::support::talk::{ReadAnswer, Talk, WAYS, Way, responses_stream};
use rowmill_simulator::{Citation, RecordedRole, ScriptedTurn, SimulatedAnswer, Simulator, SimulatorScript};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite;

/// Every protocol, plain and streamed.
fn each() -> impl Iterator<Item = (Way, bool)> {
    WAYS.into_iter().flat_map(|way| [(way, false), (way, true)])
}

fn two_calls() -> SimulatorScript {
    SimulatorScript::new().answer_calls(|seen| match seen.turn {
        1 => SimulatedAnswer::Calls {
            text: "Looking.".into(),
            calls: vec![("find".into(), json!({"q": seen.prompt, "n": 1})), ("give".into(), json!({}))],
        },
        _ => SimulatedAnswer::Text(format!("got {}", seen.last)),
    })
}

#[test]
fn a_model_calls_tools_and_answers_with_what_they_gave() {
    let simulator = Simulator::start_blocking(two_calls());
    let mut client = Client::to(&simulator);
    for (way, streamed) in each() {
        let mut talk = Talk::new(way, streamed, "Rate it.");
        let answer = talk.ask(&mut client);
        let called: Vec<(&str, &Value)> =
            answer.calls.iter().map(|(_, name, arguments)| (name.as_str(), arguments)).collect();
        assert_eq!(called, [("find", &json!({"q": "Rate it.", "n": 1})), ("give", &json!({}))], "{way:?}");
        let finish = match way {
            Way::Chat => "tool_calls",
            Way::Responses => "completed",
            Way::Messages => "tool_use",
            Way::Google => "STOP",
        };
        assert_eq!((answer.text.as_str(), answer.finish.as_str()), ("Looking.", finish), "{way:?}");
        assert_ne!(answer.calls[0].0, answer.calls[1].0);

        talk.give(&[(&answer.calls[1], "second"), (&answer.calls[0], "first")]);
        let last = talk.ask(&mut client);
        assert_eq!((last.text.as_str(), last.calls.len()), ("got second\nfirst", 0), "{way:?} {streamed}");
    }
    assert_eq!(simulator.stats().by_status, [(200, 16)].into());
}

#[test]
fn what_each_call_brought_can_be_checked_to_the_word() {
    let simulator = Simulator::start_blocking(two_calls());
    let mut client = Client::to(&simulator);
    for way in WAYS {
        let mut talk = Talk::new(way, false, "Rate it.");
        let answer = talk.ask(&mut client);
        talk.give(&[(&answer.calls[0], "first"), (&answer.calls[1], "second")]);
        talk.ask(&mut client);
        let seen = simulator.calls().pop().unwrap();
        assert_eq!((seen.system.as_str(), seen.prompt.as_str(), seen.turn), ("Be brief.", "Rate it.", 2));
        assert_eq!(seen.tools, ["find", "give"]);
        let id = |at: usize| answer.calls[at].0.clone();
        let expected = json!([
            {"role": "user", "text": "Rate it."},
            {"role": "assistant", "text": "Looking.", "calls": [
                {"id": id(0), "name": "find", "arguments": {"q": "Rate it.", "n": 1}},
                {"id": id(1), "name": "give", "arguments": {}}
            ]},
            {"role": "tool", "text": "first\nsecond", "answers": [
                {"call": id(0), "tool": "find", "text": "first", "is_error": false},
                {"call": id(1), "tool": "give", "text": "second", "is_error": false}
            ]}
        ]);
        assert_eq!(serde_json::to_value(&seen.messages).unwrap(), expected, "{way:?}");
        assert_eq!((&seen.calls, &seen.results), (&seen.messages[1].calls, &seen.messages[2].answers));
    }
}

#[test]
fn scripts_see_tools_schemas_failures_and_how_often_a_turn_came() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().answer_calls(|seen| {
        let tool = &seen.tools[0];
        assert_eq!((tool.name.as_str(), tool.description.as_str()), ("find", "Does."));
        assert_eq!(tool.schema["properties"]["q"]["type"], "string");
        assert_eq!((seen.model, seen.hosted, seen.schema), ("m", &[][..], None));
        match seen.messages.last() {
            Some(message) if message.role == RecordedRole::Tool => {
                SimulatedAnswer::Text(format!("{} {}", message.answers[0].is_error, seen.conversation_count))
            }
            _ => SimulatedAnswer::Calls { text: String::new(), calls: vec![("find".into(), json!({}))] },
        }
    }));
    let mut client = Client::to(&simulator);
    let mut talk = Talk::new(Way::Messages, false, "x");
    let answer = talk.ask(&mut client);
    talk.messages_mut().push(json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": answer.calls[0].0, "content": [{"type": "text", "text": "no"}], "is_error": true}
    ]}));
    assert_eq!(talk.clone().ask(&mut client).text, "true 1");
    assert_eq!(talk.ask(&mut client).text, "true 2");
    let stats = simulator.stats();
    assert_eq!((stats.answers, stats.repeated_turns, stats.repeated_answers), (3, 1, 2));
}

#[test]
fn thoughts_come_back_as_they_were_or_the_request_is_refused() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().answer_calls(|seen| {
        match seen.turn {
            1 => ScriptedTurn::new()
                .text("Hm.")
                .call("find", json!({"q": "a"}))
                .call("give", json!({}))
                .think()
                .into(),
            _ => SimulatedAnswer::Text("done".into()),
        }
    }));
    let mut client = Client::to(&simulator);
    for (way, streamed) in each() {
        let mut talk = Talk::new(way, streamed, "Think.");
        let answer = talk.ask(&mut client);
        talk.give(&[(&answer.calls[0], "1"), (&answer.calls[1], "2")]);
        assert_eq!(talk.clone().ask(&mut client).text, "done", "{way:?}");
        let (place, altered, missing) = match way {
            // Chats have no signed thoughts.
            Way::Chat => {
                assert!(answer.content["reasoning_content"].is_string());
                continue;
            }
            Way::Responses => ("/input/1", "could not be verified", "without its required 'reasoning' item"),
            Way::Messages => ("/messages/1/content/0", "Invalid `signature`", "Expected `thinking`"),
            Way::Google => ("/contents/1/parts", "signature is not valid", "missing a thought_signature"),
        };
        let mut spoilt = talk.clone();
        spoil(way, spoilt.body.pointer_mut(place).unwrap());
        let reply = spoilt.post(&mut client);
        assert_eq!(reply.status, 400, "{way:?}");
        assert!(reply.body.contains(altered), "{}", reply.body);

        leave_out(&mut talk);
        let reply = talk.post(&mut client);
        assert_eq!(reply.status, 400, "{way:?}");
        assert!(reply.body.contains(missing), "{}", reply.body);
    }
}

fn spoil(way: Way, place: &mut Value) {
    match way {
        Way::Responses => place["encrypted_content"] = json!("b3RoZXI="),
        Way::Messages => place["thinking"] = json!("I thought something else."),
        _ => signed(place)["thoughtSignature"] = json!("b3RoZXI="),
    }
}

fn signed(parts: &mut Value) -> &mut Value {
    parts.as_array_mut().unwrap().iter_mut().find(|part| part.get("thoughtSignature").is_some()).unwrap()
}

fn leave_out(talk: &mut Talk) {
    match talk.way {
        Way::Responses => drop(talk.messages_mut().remove(1)),
        Way::Messages => drop(talk.messages_mut()[1]["content"].as_array_mut().unwrap().remove(0)),
        _ => drop(
            signed(&mut talk.messages_mut()[1]["parts"]).as_object_mut().unwrap().remove("thoughtSignature"),
        ),
    }
}

#[test]
fn thoughts_that_the_vendor_keeps_are_found_by_their_id_unless_it_was_asked_not_to_keep_them() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().answer_calls(|seen| match seen.turn {
        1 => ScriptedTurn::new().call("find", json!({})).think().into(),
        _ => SimulatedAnswer::Text("done".into()),
    }));
    let mut client = Client::to(&simulator);
    let mut talk = Talk::new(Way::Responses, false, "Think.");
    talk.body["include"] = json!([]);
    let answer = talk.ask(&mut client);
    assert!(answer.content[0].get("encrypted_content").is_none());
    talk.give(&[(&answer.calls[0], "1")]);
    assert_eq!(talk.clone().ask(&mut client).text, "done");
    talk.body["store"] = json!(false);
    let reply = talk.post(&mut client);
    assert_eq!(reply.status, 404);
    assert!(reply.body.contains("Items are not persisted"), "{}", reply.body);
}

#[test]
fn anthropic_pauses_a_turn_that_goes_on_when_it_is_sent_back() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().answer_calls(|seen| match seen.turn {
        1 => ScriptedTurn::new().text("Searching.").pause().into(),
        _ => ScriptedTurn::new().text("Found.").cite(citation()).into(),
    }));
    let mut client = Client::to(&simulator);
    for streamed in [false, true] {
        let mut talk = Talk::new(Way::Messages, streamed, "Search.");
        offer_search(&mut talk);
        let answer = talk.ask(&mut client);
        assert_eq!(
            (answer.finish.as_str(), &answer.content[0]["type"]),
            ("pause_turn", &json!("server_tool_use"))
        );
        let answer = talk.ask(&mut client);
        assert_eq!((answer.finish.as_str(), answer.text.as_str()), ("end_turn", "Found."));
    }
}

fn citation() -> Citation {
    Citation {
        url: "https://otters.example/1".into(),
        title: Some("Otters".into()),
        text: Some("They swim.".into()),
    }
}

fn offer_search(talk: &mut Talk) {
    let tool = match talk.way {
        Way::Chat => {
            talk.body["web_search_options"] = json!({});
            return;
        }
        Way::Responses => json!({"type": "web_search"}),
        Way::Messages => json!({"type": "web_search_20250305", "name": "web_search"}),
        Way::Google => json!({"googleSearch": {}}),
    };
    talk.body["tools"].as_array_mut().unwrap().push(tool);
}

#[test]
fn a_search_at_the_provider_is_cited_and_counted_as_the_vendor_does() {
    let simulator = Simulator::start_blocking(
        SimulatorScript::new()
            .answer_calls(|_| ScriptedTurn::new().text("They swim.").cite(citation()).into()),
    );
    let mut client = Client::to(&simulator);
    for (way, streamed) in each() {
        let mut talk = Talk::new(way, streamed, "Do otters swim?");
        let without: ReadAnswer = talk.clone().ask(&mut client);
        assert!(!without.content.to_string().contains("otters.example"), "{way:?}");
        offer_search(&mut talk);
        let answer = talk.ask(&mut client);
        let place = match way {
            // A stream of this protocol is assembled without its annotations.
            Way::Chat if streamed => continue,
            Way::Chat => "/choices/0/message/annotations/0/url_citation/url",
            Way::Responses => "/output/1/content/0/annotations/0/url",
            Way::Messages => "/content/2/citations/0/url",
            Way::Google => "/candidates/0/groundingMetadata/groundingChunks/0/web/uri",
        };
        assert_eq!(answer.whole.pointer(place), Some(&json!("https://otters.example/1")), "{}", answer.whole);
        match way {
            Way::Responses => assert_eq!(answer.content[0]["type"], "web_search_call"),
            Way::Messages => assert_eq!(answer.whole["usage"]["server_tool_use"]["web_search_requests"], 1),
            _ => {}
        }
        assert_eq!(simulator.calls().pop().unwrap().tools, ["find", "give", "web_search"]);
        // The result of the provider's tool is accepted back, as is the next question.
        talk.messages_mut().push(match way {
            Way::Google => json!({"role": "user", "parts": [{"text": "And?"}]}),
            _ => json!({"role": "user", "content": "And?"}),
        });
        assert_eq!(talk.ask(&mut client).text, "They swim.", "{way:?}");
    }
}

#[test]
fn a_websocket_carries_calls_and_results_too() {
    let simulator = Simulator::start_blocking(two_calls());
    let address = simulator.url().strip_prefix("http://").unwrap().to_owned();
    let stream = std::net::TcpStream::connect(&address).unwrap();
    let url = format!("ws://{address}/v1/responses");
    let (mut socket, _) = tungstenite::client(url.as_str(), stream).unwrap();
    let mut ask = |body: &Value| -> Vec<Value> {
        let mut message = body.clone();
        message["type"] = json!("response.create");
        socket.send(tungstenite::Message::text(message.to_string())).unwrap();
        let mut events: Vec<Value> = Vec::new();
        while !events
            .last()
            .is_some_and(|event| event["type"] == "response.completed" || event["type"] == "error")
        {
            events.push(serde_json::from_str(socket.read().unwrap().to_text().unwrap()).unwrap());
        }
        events
    };
    let mut talk = Talk::new(Way::Responses, true, "Rate it.");
    let reported = responses_stream(&ask(&talk.body));
    assert_eq!(reported.calls.len(), 2);
    talk.messages_mut().extend(reported.content.as_array().unwrap().clone());
    let refused = ask(&talk.body);
    assert_eq!((refused.len(), &refused[0]["status"]), (1, &json!(400)));
    talk.give(&[(&reported.calls[0], "first"), (&reported.calls[1], "second")]);
    assert_eq!(responses_stream(&ask(&talk.body)).text, "got first\nsecond");
}
