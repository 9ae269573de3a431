//! Times when the provider is down.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use crate::support::{CHAT, Client, End, chat};
use rowmill_simulator::{OutageKind, Simulator, SimulatorScript};

fn address(simulator: &Simulator) -> String {
    simulator.url().strip_prefix("http://").unwrap().to_owned()
}

#[test]
fn during_an_outage_every_call_gets_its_status_and_statistics_stay_readable() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().key("k"));
    let mut client = Client::to(&simulator);
    for status in [503, 529] {
        simulator.begin_outage(OutageKind::Status(status));
        assert_eq!(client.post(CHAT, "", &chat("x")).status, status);
    }
    assert_eq!(client.get("/stats").json()["outage_refused"], 2);
    simulator.end_outage();
    assert_eq!(client.post(CHAT, "authorization: Bearer k\r\n", &chat("x")).status, 200);
}

#[test]
fn an_outage_can_reset_connections() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    simulator.begin_outage(OutageKind::Reset);
    assert_eq!(Client::to(&simulator).post(CHAT, "", &chat("x")).end, End::Reset);
    simulator.end_outage();
    assert_eq!(Client::to(&simulator).post(CHAT, "", &chat("x")).status, 200);
}

/// Connects until the result is as wanted, which is bound to happen.
fn connect_until(address: &str, wanted: impl Fn(&std::io::Result<TcpStream>) -> bool) {
    while !wanted(&TcpStream::connect(address)) {
        std::thread::yield_now();
    }
}

#[test]
fn an_outage_can_refuse_connections_and_close_open_ones() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut open = Client::to(&simulator);
    assert_eq!(open.post(CHAT, "", &chat("x")).status, 200);
    simulator.begin_outage(OutageKind::Refuse);
    let address = address(&simulator);
    connect_until(&address, |connected| {
        connected.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    });
    assert_ne!(open.receive().end, End::Whole);
    simulator.end_outage();
    connect_until(&address, Result::is_ok);
    assert_eq!(Client::at(&address).post(CHAT, "", &chat("x")).status, 200);
}

#[test]
fn an_outage_on_the_script_comes_at_its_time() {
    let hour = Duration::from_secs(3_600);
    for (start, status) in [(Duration::ZERO, 503), (hour, 200)] {
        let simulator = Simulator::start_blocking(SimulatorScript::new().outage(start, hour));
        assert_eq!(Client::to(&simulator).post(CHAT, "", &chat("x")).status, status, "{start:?}");
        simulator.end_outage();
        assert_eq!(Client::to(&simulator).post(CHAT, "", &chat("x")).status, 200, "{start:?}");
    }
}

#[test]
fn it_listens_on_the_loopback_address_unless_set_otherwise() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    assert!(simulator.url().starts_with("http://127.0.0.1:"), "{}", simulator.url());
    let everywhere = Simulator::start_blocking(SimulatorScript::new().host("0.0.0.0".parse().unwrap()));
    assert!(everywhere.url().starts_with("http://0.0.0.0:"), "{}", everywhere.url());
}
