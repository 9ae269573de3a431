fn main() {
    let seconds: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let batches =
        rowmill_simulator::SimulatedBatches::new().duration(std::time::Duration::from_secs_f64(seconds));
    let simulator = rowmill_simulator::Simulator::start_blocking(
        rowmill_simulator::SimulatorScript::new()
            .port(18099)
            .keep_requests(0)
            .forget_prompts()
            .batches(batches),
    );
    println!("{}", simulator.url());
    std::io::stdin().read_line(&mut String::new()).ok();
}
