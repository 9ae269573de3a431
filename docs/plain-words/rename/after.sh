cd crates
sed -i 's/Fetcher, make_request}/Fetcher, fetch_answer}/; s/\bmake_request\b/fetch_answer/' rowmill-data/src/hub/client.rs
sed -i 's/pub use dataset::{dataset,/pub use dataset::{open_dataset,/' rowmill-data/src/lib.rs
sed -i 's/pub(crate) use dataset::dataset;/pub(crate) use dataset::parquet_dataset;/' rowmill-data/src/parquet/mod.rs
sed -i -E 's/\bDocument\b,/DocumentFile,/; ' rowmill-data/src/documents/source.rs
sed -i 's/chat::client::build_model/chat::client::build_chat_model/; s/responses::client::build_model/responses::client::build_responses_model/; s/anthropic::client::build_model/anthropic::client::build_anthropic_model/; s/google::client::build_model/google::client::build_google_model/; s/builtin::build_model/builtin::build_builtin_model/' rowmill-models/src/build_model.rs
sed -i 's/rowmill_sql::ColumnCondition/rowmill_sql::ScanCondition/' rowmill-sql/src/table.rs rowmill-data/src/sql/*.rs
sed -i -E 's/envelopes: dataset\(/envelopes: open_dataset(/' rowmill-data/src/output/rows.rs
for p in google messages responses chat; do sed -i -E "s/self::read::ask\b/self::read::read_${p}_request/; s/self::read::\{ask\b/self::read::{read_${p}_request/" rowmill-simulator/src/protocol/$p/mod.rs; done
sed -i -E 's/pub\(crate\) fn look</pub(crate) fn with_stats</' rowmill-simulator/src/recorder.rs
sed -i 's/retry::StopPolicy/retry::RetryPolicy/' rowmill-engine/src/plan.rs
cd ..
sed -i 's/InputLocation, dataset}/InputLocation, open_dataset}/' crates/rowmill-data/src/output/rows.rs
sed -i -E 's/parquet::(dataset|open_dataset)\(/parquet::parquet_dataset(/; s/documents::(dataset|open_dataset)\(/documents::documents_dataset(/' crates/rowmill-data/src/dataset.rs
sed -i -E '/use self::read::/s/\bask\b/read_google_request/' crates/rowmill-simulator/src/protocol/google/mod.rs
sed -i -E 's/fn look<T>\(&self, look:/fn with_stats<T>(\&self, read:/; s/^(\s+)look\(self\.gather/\1read(self.gather/' crates/rowmill-simulator/src/recorder.rs
sed -i -E 's/\bSchemaModelChecker\b/SchemaModel/; s/\bStoredTurns\b/Turns/' crates/rowmill-types/src/setting.rs crates/rowmill-types/src/problem_code.rs
cd crates/rowmill/src
grep -rl "columns_text" ../../rowmill-data/src | xargs -r sed -i 's/\bcolumns_text\b/column_list_text/g'
sed -i -E 's/columns_text\(all_rows\)\.ok/column_list_text(all_rows).ok/; /^use rowmill_data/,/;/s/\bcolumns_text\b/column_list_text/' columns.rs
grep -rl "rowmill_data::.*columns_text" . | xargs -r sed -i -E '/rowmill_data/s/\bcolumns_text\b/column_list_text/'
sed -i -E '28s/attachment_loader/configured_attachments/' attachments.rs
sed -i -E 's/set_up_model, model_setup\}/set_up_model, set_up_agents}/; s/\bmodel_setup\(/set_up_agents(/' agents/select_worker.rs
sed -i 's/AgentSetupSettings, model_setup}/AgentSetupSettings, set_up_agents}/' agents/mod.rs
sed -i 's/PythonLifecycleHook as CardHook/LifecycleHook as CardHook/' agents/tool_offers.rs
sed -i -E 's/AgentKind as CardKind, SERVER/CardKind, SERVER/; s/rowmill_tools::Names/rowmill_tools::HostedNames/; s/rowmill_tools::ToolAccess/rowmill_tools::CombinedToolHost/' agents/setup.rs
sed -i 's/WorkerTools as CrewTools, RoleModels/ToolAccess, RoleModels/; s/\bCrewTools\b/ToolAccess/g' batch/row_worker.rs
sed -i 's/WorkerTools as Router/CombinedToolHost as Router/' batch/tools.rs
sed -i 's/replace_ids, record_final_spend, settle/replace_ids, settle_output, settle/; s/\brecord_final_spend(/settle_output(/' row_identity.rs
sed -i 's/use crate::process_environment::VariableLookup as RunEnvironment;/use crate::environment::RunEnvironment;/' endpoints.rs
sed -i 's/load_texts as load_agents/load_card_set as load_agents/' texts.rs
sed -i -E 's/fingerprint::cards_digest/fingerprint::text_digest/' agents/load_digest.rs
sed -i 's/rowmill_cards::NameFilter/rowmill_cards::ServerFilter/' agents/servers.rs
sed -i -E '/^use rowmill_cards/,/;/s/\bparse\b/parse_card/; s/join_problems, parse,/join_problems, parse_card,/' agents/load.rs
sed -i -E '/rowmill_data/s/\bdataset\b/open_dataset/' head.rs inputs.rs lib.rs
sed -i 's/Iterator<BatchItem = /Iterator<Item = /' batch/*.rs
cd ../../..
sed -i -E 's/head_of_dataset<T>\(&self, head_of_dataset:/with_stats<T>(\&self, read:/; s/^(\s+)head_of_dataset\(self\.gather/\1read(self.gather/; s/Passes the statistics so far to `head_of_dataset`/Passes the statistics so far to `read`/' crates/rowmill-simulator/src/recorder.rs
sed -i -E 's/\bmodel_setup\b/set_up_agents/' crates/rowmill/src/batch/row_worker.rs
sed -i -E '/^use rowmill_data::/,/;/s/\bdataset\b/open_dataset/' crates/rowmill/src/inputs.rs
sed -i -E '/^(pub )?use rowmill_data::/,/;/s/\bdataset,/open_dataset,/' crates/rowmill/src/lib.rs
sed -i -E 's/attachments::attachment_loader/attachments::configured_attachments/' crates/rowmill/src/plan.rs crates/rowmill/src/run.rs
sed -i -E '/use crate::attachments::/s/\battachment_loader\b/configured_attachments/; s/\battachment_loader\(/configured_attachments(/' crates/rowmill/src/run.rs crates/rowmill/src/plan.rs
sed -i '55s/attachment_loader/openai_files/' crates/rowmill-models/src/files/rules.rs
cd crates/rowmill-cli/src
sed -i 's/results::run_results_command(&spec)/results::read_results(\&spec)/' commands/results.rs
sed -i 's/problem_text(problem_at)/problem_text(problem)/' commands/run.rs
sed -i 's/\bnotation::/parse_flags::/g' simulate_flags.rs
sed -i 's/use crate::agent_flags::AgentOptions/use crate::agent_flags::AgentFlags/' flags.rs
sed -i 's/PruneReport, Stats}/PruneReport, AnswerStoreStats}/; s/\bStats\b/AnswerStoreStats/g; s/AnswerStoreAnswerStoreStats/AnswerStoreStats/g' commands/cache.rs
sed -i 's/ExitCode, Limits, Problem/ExitCode, SharedLimits, Problem/; s/\bLimits::/SharedLimits::/' run_with_signals.rs
sed -i -E 's/wording::Vocabulary/wording::SettingVocabulary/; s/([^A-Za-z])Vocabulary\b/\1SettingVocabulary/g; s/SettingSettingVocabulary/SettingVocabulary/g' spec_vocabulary.rs
cd ../../..
