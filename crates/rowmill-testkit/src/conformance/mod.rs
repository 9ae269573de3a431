//! The contracts of the ports, as suites that can check any implementation.
//!
//! A suite is one function per port. It takes the implementation, and a small description of facts that only
//! its author knows: which tool fails, which rows are bad, how running calls can be observed. It returns
//! every violation of the contract as a sentence, and nothing if the contract is satisfied. A panic of the
//! implementation is a violation, as is a call that does not return within a minute. A test of an
//! implementation is therefore a single line that asserts that the list is empty:
//!
//! ```
//! use rowmill_testkit::FakeDataset;
//! use rowmill_testkit::conformance::{DatasetFacts, check_dataset};
//!
//! let mine = FakeDataset::from_texts([r#"{"name": "Ada"}"#, "not a row", r#"{"name": "Bo"}"#]);
//! let facts = DatasetFacts { rows: Some(3), bad: Some(vec![2]), ..DatasetFacts::default() };
//! assert_eq!(check_dataset(&mine, &facts), Vec::<String>::new());
//! ```
//!
//! | port | suite |
//! |---|---|
//! | `Model` | [`check_program_model`]; [`check_model`] for models that speak a protocol of the simulator |
//! | `BatchApi` | [`check_batch_api`] |
//! | `ToolHost` | [`check_tool_host`] |
//! | `HookRunner` | [`check_hooks`] |
//! | `Dataset` and `RowSource` | [`check_dataset`] |
//! | `AttachmentLoader` | [`check_attachments`] |
//! | `RunStore`, `Ledger` and `RecordReader` | [`check_run_store`]; [`append_until_killed`] and [`check_killed_store`] for stores that outlive a process |
//! | `AnswerStore` | [`check_answer_store`] |
//! | `RecordSink` | [`check_sink`] |
//! | `Observer` | [`check_observer`] |
//!
//! The suites for asynchronous ports wait with tokio's clock, so they need its runtime with time, as provided
//! by `#[tokio::test]`. With paused time the waits end immediately, which is suitable only for
//! implementations without I/O.

mod answers;
#[cfg(feature = "attachments")]
mod attachments;
mod batch_api;
mod check_suite;
mod dataset;
mod hooks;
mod killed_store;
mod model;
mod observer;
mod parts;
mod reading;
mod records;
mod run_store;
#[cfg(feature = "simulator")]
mod simulator;
mod sink;
mod tools;

pub use answers::check_answer_store;
#[cfg(feature = "attachments")]
pub use attachments::{AttachmentFacts, check_attachments};
pub use batch_api::{BatchFacts, check_batch_api};
pub use dataset::{DatasetFacts, ReadExtent, RowNumbering, check_dataset};
pub use hooks::{HookCase, HookFacts, check_hooks};
pub use killed_store::{append_until_killed, check_killed_store};
pub use model::{AnswerMatchFn, ModelFacts, check_program_model};
pub use observer::check_observer;
pub use run_store::check_run_store;
#[cfg(feature = "simulator")]
pub use simulator::check_model;
pub use sink::{ExpectedBytesFn, SinkFacts, check_sink};
pub use tools::{AfterRelease, CountingTool, EchoTool, ToolCase, ToolFacts, check_tool_host};
