//! The permanent codes of everything that can stop a command.

use crate::DiagnosticText;

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
            pub fn description(self) -> DiagnosticText {
                DiagnosticText::from_template(match self { $(Self::$variant => $what,)* })
            }

            /// What the user can do about it.
            #[must_use]
            pub fn advice(self) -> DiagnosticText {
                DiagnosticText::from_template(match self { $(Self::$variant => $next,)* })
            }
        }
    };
}

problem_codes! {
    Usage = "RM0001", "The command line is invalid: a value out of range, or flags that cannot be used together.",
        "Read the message; {do:list_settings}.";
    Interrupted = "RM0002", "Ctrl-C, SIGTERM or SIGHUP was received while the servers and functions of agents were starting; nothing was sent.",
        "Run the same command again.";
    MissingFeature = "RM0003", "The library was built without a part that the command needs; nothing was sent.",
        "Enable the feature named in the message in `Cargo.toml`; the program `rowmill` has all of them.";
    InputNotFound = "RM1001", "The input does not exist or is not a file.",
        "Check the path given to {input}.";
    InputUnreadable = "RM1002", "The input exists but cannot be read.",
        "Check its permissions; finished rows are kept, continue with {resume}.";
    InputFormat = "RM1003", "The format of the input cannot be determined from its name.",
        "Set it with {input_format: jsonl|csv|tsv}.";
    InvalidId = "RM1004", "A row's id is empty, null, an array or an object; nothing was sent.",
        "Correct the row, or name another field with {id_field}.";
    DuplicateId = "RM1005", "Two rows have the same id; nothing was sent.",
        "Make ids unique, or omit {id_field} to use row numbers.";
    InputAmbiguous = "RM1006", "The URL matches several files or splits, and one must be chosen.",
        "Choose one of those listed in the message, spelled as shown there.";
    FetchFailed = "RM1007", "A remote file could not be downloaded: no response, access denied, an interrupted transfer, or a checksum mismatch.",
        "Follow the message and run the same command again; an interrupted download continues where it stopped.";
    UnknownColumn = "RM1008", "The template, {id_field}, {attach} or {split_by} names a column that the input does not have; nothing was sent.",
        "Use one of the columns listed in the message; `rowmill head` shows them with their values.";
    InvalidQuery = "RM1020", "The query, condition or list of columns given to {sql}, {where} or {columns} cannot be used; nothing was sent.",
        "Correct it at the position shown in the message; `docs/sql.md` has examples.";
    QueryFailed = "RM1021", "The query given to {sql} or {where} failed on a value while it ran. Finished rows are kept.",
        "Correct the query, or exclude the rows that it fails on with `WHERE`.";
    DeadlinePassed = "RM1040", "{deadline} passed before the first row was sent; nothing was sent.",
        "Allow more time, or check what the input is waiting for.";
    ColumnTypeBroken = "RM1060", "A value in the input does not match the type of its column, which the query uses. Types are inferred from the first rows, or set with {types}.",
        "Set a type that fits all rows, such as {types: x=text}; its values then stay as they are. A computation needs a cast: `TRY_CAST(x AS DOUBLE)` returns null for text that is not a number.";
    InvalidTypes = "RM1061", "{types} names an unknown column or an unknown type; nothing was sent.",
        "Write {types: column=type,…}, such as {types: zip=text,price=decimal(10,2)}.";
    NoSqlEngine = "RM1062", "{sql_engine: duckdb} needs DuckDB, and neither its program nor its Python package was found; nothing was sent.",
        "Install one of them, such as `pip install duckdb`, or omit the flag to use the built-in engine.";
    TextUnreadable = "RM1101", "A template, instruction, schema or variable file could not be read.",
        "Check the path or URL; nothing was sent.";
    InvalidSchema = "RM1102", "The JSON Schema is not valid; nothing was sent.",
        "Correct it at the position given in the message.";
    SchemaModel = "RM1103", "{schema_model} did not produce a schema.",
        "The message contains Python's output; nothing was sent.";
    InvalidVariables = "RM1104", "{var}, {var_file} or {vars_json} is invalid, or the instruction uses a variable that was not given.",
        "Use {var: name=value}; a {vars_json} file contains one JSON object of strings.";
    InvalidCard = "RM1105", "An agent card cannot be used, cards do not fit together, or it is not clear which agent should process the rows; nothing was sent.",
        "Correct it at the position given in the message; `docs/agent-cards.md` lists every field.";
    InvalidModel = "RM1201", "The model string has an unknown provider or key, or a value that the provider does not accept.",
        "The message lists valid choices; `rowmill models` shows providers and keys.";
    MissingKey = "RM1202", "The provider needs a key and none is set; nothing was sent.",
        "Set the variable named in the message, or `api_key_env` in `rowmill.toml`.";
    InvalidConfig = "RM1203", "The configuration file `rowmill.toml` is invalid.",
        "Correct it at the position given in the message.";
    InvalidSpec = "RM1204", "The spec of a run is not valid JSON, has an unknown field or value, has an unsupported version, or contains conflicting settings; nothing was sent.",
        "Correct it at the position given in the message; `docs/run-spec.md` describes the format, and its JSON Schema is `docs/run-spec.schema.json`.";
    OutputExists = "RM1301", "The output exists already, or an unfinished run belongs to it.",
        "Use {resume} to continue the run, or {overwrite} to replace it.";
    OutputPath = "RM1302", "An output path cannot be used: its folder cannot be created or it is not a file.",
        "Choose another path.";
    SamePath = "RM1303", "A file would be both read and written, or written twice; nothing was changed.",
        "Use a different path for each.";
    OutputBusy = "RM1304", "Another run is writing to the same output.",
        "Wait for it, or choose another output.";
    OutputUnusable = "RM1305", "The existing output has lines that are not envelopes, which a resume could lose, or lacks rows that it should have.",
        "Move the file away, or correct the line named in the message; if rows are missing, resume the run.";
    ChangedRun = "RM1306", "The run to be resumed was started with different settings.",
        "Add {accept_changes}: rows that are ok are kept, the others are processed with the new settings. Or restore the earlier settings.";
    LedgerUnusable = "RM1307", "The ledger of the run to be resumed cannot be read.",
        "Move the work folder away to resume from the output alone.";
    RunUnusable = "RM1308", "There is no run to export, it has no results yet, or it lacks data that the table needs.",
        "Pass the output of a run or its work folder to `rowmill export`.";
    UnknownBatch = "RM1309", "No run in the batch lane with this id is known on this machine, or its spec was not kept.",
        "Use an id that `rowmill batch list` shows, or repeat the command of the run with {resume}.";
    WriteFailed = "RM1401", "A file could not be written. Finished rows are kept.",
        "Free some disk space, raise the limit on file sizes (`ulimit -f`) or correct the permissions, then {do:run_again}.";
    CacheUnusable = "RM1501", "The answer cache cannot be used: it is damaged, has a different format, or cannot be opened.",
        "Choose another folder with {cache}, or move the file named in the message away to start with an empty cache.";
    ToolServer = "RM1601", "An MCP server that an agent needs does not start, cannot be reached, or rejects the credential; nothing was sent.",
        "Follow the message; the server's output is shown below it.";
    FunctionUnusable = "RM1611", "A Python function that a card uses as a tool or a hook is not usable, or Python was not found; nothing was sent.",
        "Correct the function named in the message; `docs/python-tools.md` describes what it must look like.";
    ShellUnusable = "RM1612", "The working folder for shell commands does not exist; nothing was sent.",
        "Create it, or set another one with `cwd` in the card.";
    StubUnusable = "RM1613", "The answers given to {stub} cannot be read, or a line of them is not an answer; nothing was sent.",
        "Correct the line named in the message.";
    SkillUnusable = "RM1614", "A skill cannot be used: its folder is missing, it has no name or description, or two have the same name; nothing was sent.",
        "Correct the `SKILL.md` named in the message.";
    Unauthorized = "RM2001", "The provider rejected the credential, so no row can succeed.",
        "Set the right key, then {do:run_again}.";
    UnknownModel = "RM2002", "The provider does not know the model, or has nothing at the path of the base URL, so no row can succeed.",
        "Correct {model} or the base URL, then {do:run_again_changed}.";
    Unreachable = "RM2003", "No server responds at the provider's address, so no row can succeed.",
        "Start the server or correct the base URL, then {do:run_again}.";
    QuotaExhausted = "RM2004", "The account's quota, credit or daily limit is used up and {on_quota: stop} was given. No row failed.",
        "Raise the quota or wait until it is renewed, then {do:run_again}.";
    ProviderDown = "RM2005", "The provider was down for longer than {max_outage} allows. No row failed because of it.",
        "Run again with {resume} when the provider is back.";
    UnknownPrice = "RM2006", "{max_cost} was given, but the price of the model or the maximum length of its answers is unknown; nothing was sent.",
        "Set the price in `rowmill.toml`, or limit answers with `?max_tokens=` in the model string.";
    OpenFiles = "RM2007", "The open file limit is too low for the command to run or to make a single connection.",
        "Raise the limit with `ulimit -n 1024` in the same shell, then run the same command with {resume}.";
    SameFailure = "RM2008", "None of the first fifty rows was ok, and nearly all of them failed for the same reason, so the rest was not sent.",
        "Fix the cause shown in the example, then {do:run_again} to retry these rows; {do:send_regardless}.";
    BatchRefused = "RM2009", "The provider refused a batch job, or does not know one that it had accepted. Jobs that were submitted stay, and finished rows are kept.",
        "Correct what the message names, then {do:run_again}.";
    Internal = "RM9001", "rowmill itself failed.",
        "Please report it with the message.";
}
