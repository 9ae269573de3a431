//! The permanent codes of everything that can stop a command.

use crate::Words;

macro_rules! problem_codes {
    ($($variant:ident = $code:literal, $what:literal, $next:literal;)*) => {
        /// A code whose meaning never changes. `docs/errors.md` is generated from this list.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum ProblemCode { $(#[doc = $what] $variant,)* }

        impl ProblemCode {
            /// Every code, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code as printed.
            #[must_use]
            pub fn code(self) -> &'static str { match self { $(Self::$variant => $code,)* } }

            /// What happened, as a sentence.
            #[must_use]
            pub fn what(self) -> Words {
                Words::from_template(match self { $(Self::$variant => $what,)* })
            }

            /// What the user can do about it.
            #[must_use]
            pub fn next(self) -> Words {
                Words::from_template(match self { $(Self::$variant => $next,)* })
            }
        }
    };
}

problem_codes! {
    Usage = "RM0001", "The command line is wrong: a value out of range, or flags that exclude each other.",
        "Read the message; {do:list_settings}.";
    Interrupted = "RM0002", "Ctrl-C, SIGTERM or SIGHUP came while the servers and functions of agents were starting; nothing was sent.",
        "Give the same command again.";
    InputNotFound = "RM1001", "The input does not exist or is not a file.",
        "Check the path given to {input}.";
    InputUnreadable = "RM1002", "The input exists but cannot be read.",
        "Check its permissions; what was answered before is kept, go on with {resume}.";
    InputFormat = "RM1003", "The format of the input is not known from its name.",
        "Name it with {input_format: jsonl|csv|tsv}.";
    InvalidId = "RM1004", "A row's id is empty, null, an array or an object; nothing was sent.",
        "Correct the row, or name another field with {id_field}.";
    DuplicateId = "RM1005", "Two rows have the same id; nothing was sent.",
        "Make ids unique, or leave {id_field} out to use row numbers.";
    InputAmbiguous = "RM1006", "The address stands for several files or splits, and one must be chosen.",
        "Choose one of those that the message lists, in the spelling that it shows.";
    FetchFailed = "RM1007", "What is elsewhere could not be fetched: no answer, a refusal, a cut transfer, or other bytes than were promised.",
        "Do as the message says and give the same command again; a download that was cut goes on where it ended.";
    UnknownColumn = "RM1008", "The template, {id_field}, {attach} or {split_by} names a column that the input does not have; nothing was sent.",
        "Use one of the columns that the message lists; `rowmill head` shows them with their values.";
    InvalidQuery = "RM1020", "The query, condition or list of columns given to {sql}, {where} or {columns} cannot be used; nothing was sent.",
        "Correct it at the place that the message shows; `docs/sql.md` has examples.";
    QueryFailed = "RM1021", "The query given to {sql} or {where} failed on a value while it ran. What was answered before is kept.",
        "Correct the query, or leave out the rows that it fails on with `WHERE`.";
    DeadlinePassed = "RM1040", "The time given to {deadline} was over before the first row was sent; nothing was sent.",
        "Give more time, or see what the input waits for.";
    ColumnTypeBroken = "RM1060", "A value of the input does not have the type of its column, which the query uses. Types come from the first rows, or from {types}.",
        "Name the type that fits all rows, such as {types: x=text}, and cast in the query: `TRY_CAST(x AS DOUBLE)` gives null for what is no number.";
    InvalidTypes = "RM1061", "{types} names a column that the input does not have, or a type that there is not; nothing was sent.",
        "Write {types: column=type,…}, such as {types: zip=text,price=decimal(10,2)}.";
    NoSqlEngine = "RM1062", "{sql_engine: duckdb} needs DuckDB, and neither its program nor its Python package was found; nothing was sent.",
        "Install one of them, such as `pip install duckdb`, or leave the flag out to use the built-in engine.";
    TextUnreadable = "RM1101", "A template, instruction, schema or variable file could not be read.",
        "Check the path or URL; nothing was sent.";
    InvalidSchema = "RM1102", "The JSON Schema is not valid; nothing was sent.",
        "Correct it at the place that the message names.";
    SchemaModel = "RM1103", "{schema_model} could not give a schema.",
        "The message holds what Python said; nothing was sent.";
    InvalidVariables = "RM1104", "{var}, {var_file} or {vars_json} is not usable, or the instruction names a variable that was not given.",
        "Use {var: name=value}; a {vars_json} file holds one JSON object of strings.";
    InvalidCard = "RM1105", "An agent card cannot be used, cards do not fit together, or it is not clear which agent works on rows; nothing was sent.",
        "Correct it at the place that the message names; `docs/agent-cards.md` lists every field.";
    InvalidModel = "RM1201", "The model string names an unknown provider or key, or a value that the provider does not take.",
        "The message lists what exists; `rowmill models` shows providers and keys.";
    MissingKey = "RM1202", "The provider needs a key and none is set; nothing was sent.",
        "Set the variable that the message names, or `api_key_env` in `rowmill.toml`.";
    InvalidConfig = "RM1203", "The configuration file `rowmill.toml` cannot be used.",
        "Correct it at the place that the message names.";
    InvalidSpec = "RM1204", "The spec of a run is not valid JSON, has a field or a value that there is not, is of another version, or says things that exclude each other; nothing was sent.",
        "Correct it at the place that the message names; `docs/run-spec.md` tells what a spec may say, and its JSON Schema is `docs/run-spec.schema.json`.";
    OutputExists = "RM1301", "The output exists already, or an unfinished run belongs to it.",
        "Use {resume} to go on with it, or {overwrite} to replace it.";
    OutputPath = "RM1302", "An output path cannot be used: its folder cannot be made or it is not a file.",
        "Choose another path.";
    SamePath = "RM1303", "What is to be written is also read, or written as something else; nothing was touched.",
        "Give each its own path.";
    OutputBusy = "RM1304", "Another run is writing to the same output.",
        "Wait for it, or choose another output.";
    OutputUnusable = "RM1305", "The existing output holds lines that are not envelopes, which a resume could lose, or lacks rows that should be in it.",
        "Move the file away, or correct the line that the message names; where rows are missing, resume the run.";
    ChangedRun = "RM1306", "The run to be resumed was made with other settings.",
        "Add {accept_changes}: rows that are ok stay, the others are done with the new settings. Or go back to the earlier settings.";
    LedgerUnusable = "RM1307", "The ledger of the run to be resumed cannot be read.",
        "Move the work folder away to resume from the output alone.";
    RunUnusable = "RM1308", "There is no run to export, nothing is in it yet, or it lacks what the table needs.",
        "Give the output of a run or its work folder to `rowmill export`.";
    WriteFailed = "RM1401", "A file could not be written. Everything answered before is kept.",
        "Make room or correct permissions, then {do:run_again}.";
    CacheUnusable = "RM1501", "The store of answers cannot be used: it is damaged, of another format, or cannot be opened.",
        "Name another folder with {cache}, or move the file that the message names away to begin an empty store.";
    ToolServer = "RM1601", "An MCP server that an agent needs does not start, cannot be reached, or refuses the credential; nothing was sent.",
        "Do as the message says; what the server printed stands below it.";
    FunctionUnusable = "RM1611", "A Python function that a card names as a tool or a hook cannot be used, or there is no Python; nothing was sent.",
        "Correct the function that the message names; `docs/python-tools.md` tells what it may look like.";
    ShellUnusable = "RM1612", "The folder that shell commands shall work in is missing; nothing was sent.",
        "Create it, or name another one with `cwd` in the card.";
    StubUnusable = "RM1613", "The answers given to {stub} cannot be read, or a line of them is not an answer; nothing was sent.",
        "Correct the line that the message names.";
    SkillUnusable = "RM1614", "A skill cannot be used: its folder is missing, it has no name or description, or two have the same name; nothing was sent.",
        "Correct the `SKILL.md` that the message names.";
    Unauthorized = "RM2001", "The provider refused the credential, so no row can succeed.",
        "Set the right key, then {do:run_again}.";
    UnknownModel = "RM2002", "The provider does not know the model, or has nothing at the path of the base URL, so no row can succeed.",
        "Correct {model} or the base URL, then {do:run_again_changed}.";
    Unreachable = "RM2003", "Nothing answers at the provider's address, so no row can succeed.",
        "Start the server or correct the base URL, then {do:run_again}.";
    QuotaExhausted = "RM2004", "The account's quota, credit or daily limit is used up and {on_quota: stop} was given. No row failed.",
        "Raise the quota or wait until it is renewed, then {do:run_again}.";
    ProviderDown = "RM2005", "The provider let no call through for as long as {max_outage} allows. No row failed for it.",
        "Run again with {resume} when the provider is back.";
    UnknownPrice = "RM2006", "{max_cost} was given, but the price of the model or the length of its answers is not known; nothing was sent.",
        "Give the price in `rowmill.toml`, or bound answers with `?max_tokens=` in the model string.";
    OpenFiles = "RM2007", "This machine allows so few open files that the command cannot do its work, or a run not make a single connection.",
        "Raise the limit with `ulimit -n 1024` in the same shell, then give the same command with {resume}.";
    SameFailure = "RM2008", "None of the first fifty rows was ok, and nearly all of them failed for the same reason, so the rest was not sent.",
        "Look at the example in the message, put right what is wrong, then {do:run_again}, which tries these rows again; {do:send_regardless}.";
    Internal = "RM9001", "rowmill itself failed.",
        "Please report it with the message.";
}
