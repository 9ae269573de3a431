//! Agent cards: what an agent is, written down as Markdown or YAML.
