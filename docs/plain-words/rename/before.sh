set -u
grep -rlE "OutputItem ?= " crates xtask | xargs -r sed -i -E 's/([<,] ?)OutputItem( ?= )/\1Item\2/g; s/type OutputItem = /type Item = /g'
sed -i 's/types::SqliteRowValue/types::Value/g' crates/rowmill-sql/src/table.rs
sed -i 's/Conversation as ToldConversation/ConversationTranscript/' crates/rowmill-core/src/agent/mod.rs
grep -rl "ToldConversation" crates | xargs -r sed -i 's/\bToldConversation\b/ConversationTranscript/g'
sed -i 's/transcript::AgentConversation/transcript::ConversationTranscript/g' crates/rowmill-core/src/agent/conversation.rs
sed -i 's/self.keep(\*key, answer)/self.store(*key, answer)/' crates/rowmill-core/src/ports/mod.rs
grep -rlE '"(rowmill_types::)?time_text' crates xtask --include=*.rs | xargs -r sed -i -E 's/"(rowmill_types::)?time_text/"\1duration_text/g'
grep -rl "std::bind_slice" crates | xargs -r sed -i 's/std::bind_slice/std::slice/g'
sed -i 's/scalars::aggregate_names/scalars::function_names/' crates/rowmill-sql/src/advice.rs
sed -i 's/settings.agent_index(told/settings.agent_name(told/' crates/rowmill-core/src/record/trace.rs
python3 - <<'PY'
import re
p='crates/rowmill-models/src/model_settings.rs'; s=open(p).read()
for a,b in (('ReasoningStyle','Reasoning'),('SchemaStyle','Structured'),('DigestSeed','Seed')):
    s=re.sub(r'(?m)^(\s*(?:#\[[^\n]*\]\s*)?)%s(?=\s*[,:{=(]|\s*=>)'%a,lambda m:m.group(1)+b,s)
open(p,'w').write(s)
import glob
for p in glob.glob('crates/rowmill-models/src/**/*.rs',recursive=True):
    s=open(p).read(); t=re.sub(r'\b(Self|W)::Assembly\b',r'\1::StreamAssembly',s); t=re.sub(r'\btype Assembly\b','type StreamAssembly',t)
    if s!=t: open(p,'w').write(t)
PY
sed -i 's/AnswerJudgement, answer_judgement}/AnswerJudgement, judge_answer}/' crates/rowmill-core/src/agent/conversation.rs
sed -i -E 's/\bComparison\b/ComparisonOperator/g' crates/rowmill-sql/src/scan_plan.rs crates/rowmill-sql/src/scan_table.rs
sed -i -E '/^pub use table::/s/\bComparison\b/ComparisonOperator/' crates/rowmill-sql/src/lib.rs
sed -i 's/AnswerJudgement, answer_judgement}/AnswerJudgement, judge_answer}/; s/AnswerJudgement, judge}/AnswerJudgement, judge_answer}/' crates/rowmill-core/src/agent/conversation.rs
sed -i -E 's/\bjudge\(/judge_answer(/; s/\banswer_judgement\(/judge_answer(/' crates/rowmill-core/src/agent/conversation.rs
