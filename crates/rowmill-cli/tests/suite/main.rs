//! All integration tests of this crate, in one program, so that it is linked once.

#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "what fails here fails the test"
)]

mod agent_examples;
mod agent_faults;
mod agent_hosted;
mod agent_kill;
mod agent_limits;
mod agent_plans;
mod agent_problems;
mod agent_python;
mod agent_reuse;
mod agent_stops;
mod agent_structured;
mod agent_support;
mod agent_tools;
mod agent_types;
mod agents;
mod agents_support;
mod batch_commands;
mod batch_kills;
mod batch_pass_kills;
mod batch_random_kills;
mod batch_spending;
mod batch_submissions;
mod batch_support;
mod batch_two_processes;
mod batch_views;
mod builtin;
mod cache;
mod cards;
mod compatible;
mod corrections;
mod defects;
mod docs_commands;
mod documents;
mod envelopes;
mod examples;
mod fast_agent_guide;
mod faults;
mod faults_support;
mod flags;
mod head;
mod help;
mod hints;
mod kill;
mod limits;
mod links;
mod mcp;
mod models;
mod money;
mod money_faults;
mod newcomers;
mod outages;
mod paths;
mod paths_kept;
mod paths_read;
mod pipes;
mod plan;
mod policies;
mod precedence;
mod problems;
mod prompts;
mod providers;
mod remote;
mod replaced_outputs;
mod results;
mod resume;
mod resume_files;
mod resume_moved;
mod resume_rows;
mod reuse;
mod rows;
mod schema_models;
mod screen;
mod secrets;
mod select;
mod signals;
mod simulate;
mod simulate_tools;
mod spec_words;
mod specs;
mod standard_output;
mod structured;
mod support;
mod table_faults;
mod tables;
mod text_inputs;
mod timeouts;
mod traces;
mod typed_sql;
