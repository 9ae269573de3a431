//! Items with a worker that does nothing.

use std::fs;
use std::process::{Command, Stdio};

use crate::TaskFailure;
use crate::bench::context::BenchContext;
use crate::bench::measure::{ProcessCost, measure_cost, median};
use crate::bench::python_packages::{LANGROID, prepare_tokenizers};
use crate::bench::report::{ReportSection, ReportTable, TargetVerdict, whole_number_text};
use crate::workspace::Workspace;

/// The number of items for the target.
const ITEMS: u64 = 100_000;
/// This many times as many must fit into the same memory.
const TIMES: u64 = 20;
/// Langroid gets fewer items, because it takes so long.
const FEW: u64 = 200;
/// The number of items at once, unless stated otherwise.
const PARALLEL: u64 = 64;
const ROUNDS: usize = 5;
/// The tolerance for memory that should not grow with the number of items.
const FLAT: f64 = 2.0;

/// The measurements of some items.
struct ItemTrial {
    name: String,
    items: u64,
    /// How long the call took, without the start of the process.
    seconds: f64,
    /// The CPU time of the whole process.
    cpu: f64,
    peak: f64,
}

impl ItemTrial {
    /// Runs a command several times, which prints the duration of the call in seconds.
    fn of(name: &str, items: u64, rounds: usize, command: impl Fn() -> Command) -> Result<Self, TaskFailure> {
        let (mut seconds, mut cpu, mut peak) = (Vec::new(), Vec::new(), 0.0_f64);
        for _ in 0..rounds {
            let (cost, output) = measure_cost(&mut command())?;
            let took = output
                .trim()
                .parse()
                .map_err(TaskFailure::context(format_args!("{name} reported no time")))?;
            seconds.push(took);
            cpu.push(cost.cpu.as_secs_f64());
            peak = peak.max(ProcessCost::peak_megabytes(&cost));
        }
        Ok(Self { name: name.to_owned(), items, seconds: median(&seconds), cpu: median(&cpu), peak })
    }

    fn rate(&self) -> f64 {
        self.items as f64 / self.seconds
    }

    fn line(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            whole_number_text(self.items as f64),
            whole_number_text(self.rate()),
            format!("{:.2}", self.seconds * 1e6 / self.items as f64),
            format!("{:.2}", self.cpu),
            format!("{:.1}", self.peak),
        ]
    }
}

/// Items without cost, as a list and as a stream, and some of them by Langroid.
pub(super) fn nothing(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    let (items, many) = (context.rows(ITEMS), context.rows(ITEMS * TIMES));
    let own = |results, items| move || own_command(context, results, items);
    let list = ItemTrial::of("rowmill, a list", items, ROUNDS, own("list", items))?;
    let stream = ItemTrial::of("rowmill, a stream", items, ROUNDS, own("stream", items))?;
    let long = ItemTrial::of("rowmill, a longer stream", many, 1, own("stream", many))?;
    let few = ItemTrial::of("rowmill, a short list", FEW, ROUNDS, own("list", FEW))?;
    let mut numbers = Vec::new();
    let mut verdicts = vec![
        TargetVerdict {
            target: "100,000 items with a function that does nothing: at least 200,000 items/s",
            measured: format!(
                "{} as a list, {} as a stream",
                whole_number_text(list.rate()),
                whole_number_text(stream.rate())
            ),
            reached: list.rate().min(stream.rate()) >= 200_000.0,
        },
        TargetVerdict {
            target: "memory is flat when results are streamed: 20 times the items in at most 2 MB more",
            measured: format!("{:.1} MB, then {:.1} MB", stream.peak, long.peak),
            reached: long.peak - stream.peak <= FLAT,
        },
    ];
    let mut trials = vec![list, stream, long, few];
    match langroid(context) {
        Ok(rival) => {
            let ours = trials.last().map_or(f64::NAN, ItemTrial::rate);
            verdicts.push(TargetVerdict {
                target: "200 items: at least 100 times the items/s of Langroid",
                measured: format!("{} times", whole_number_text(ours / rival.rate())),
                reached: ours >= 100.0 * rival.rate(),
            });
            trials.push(rival);
        }
        Err(why) => numbers.push(format!("Langroid {} was not measured: {why}", LANGROID.version)),
    }
    let head = ["worked on by", "items", "items/s", "µs per item", "CPU seconds with the start", "peak MB"];
    Ok(ReportSection {
        title: "Items that cost nothing",
        about: "Every item is a number, the worker doubles it, 64 at once. The time is that of the call alone; CPU \
                and memory are those of the whole process. rowmill: the median of five runs, one for the longer \
                stream; Langroid: one run.",
        commands: vec![
            format!("cargo xtask work-items --items {ITEMS} --results list"),
            format!("cargo xtask work-items --items {ITEMS} --results stream"),
            format!("python langroid_items.py {FEW} {PARALLEL}"),
        ],
        table: Some(ReportTable {
            head: head.map(str::to_owned).to_vec(),
            rows: trials.iter().map(ItemTrial::line).collect(),
        }),
        numbers,
        verdicts,
    })
}

/// The command that works on as many items, and returns the results in this way.
fn own_command(context: &BenchContext, results: &str, items: u64) -> Command {
    let mut command = Command::new(&context.xtask);
    let items = items.to_string();
    command.current_dir(&context.folder).args(["work-items", "--items", &items, "--results", results]);
    command
}

/// The same items by Langroid, or why not.
fn langroid(context: &BenchContext) -> Result<ItemTrial, String> {
    let folder = context.folder.join("agents");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let workspace = Workspace::here().map_err(|failure| failure.to_string())?;
    prepare_tokenizers(&workspace, &folder.join("tokenizers"))?;
    let python = LANGROID.install(&folder)?;
    fs::write(folder.join("langroid_items.py"), include_str!("langroid_items.py"))
        .map_err(|error| error.to_string())?;
    let command = || {
        let mut command = Command::new(&python);
        command.args(["langroid_items.py", &FEW.to_string(), &PARALLEL.to_string()]);
        command.current_dir(&folder).stderr(Stdio::null());
        command.env("HOME", "home").env("TIKTOKEN_CACHE_DIR", "tokenizers").env("DO_NOT_TRACK", "1");
        command
    };
    let name = format!("Langroid {}, `run_batch_tasks`", LANGROID.version);
    ItemTrial::of(&name, FEW, 1, command).map_err(|failure| failure.to_string())
}
