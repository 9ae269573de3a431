//! The names that an expression can use.

use sqlparser::ast::{Expr, Ident, NamedWindowDefinition};

use crate::values::sql_type::SqlType;

/// A table that a query reads, under a generated alias.
#[derive(Debug, Clone)]
pub(super) struct ScopeTable {
    /// Its alias in the SQLite query.
    pub(super) alias: String,
    /// Its name in the user's query.
    pub(super) name: Option<String>,
    pub(super) columns: Vec<ScopeColumn>,
    /// Whether its rows have numbers.
    pub(super) has_row_numbers: bool,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub(super) struct ScopeColumn {
    pub(super) name: String,
    pub(super) kind: SqlType,
    pub(super) sql: String,
    pub(super) raw: Option<String>,
    pub(super) note: Option<String>,
    /// Whether it can only be used by its qualified name: the second of two columns that `USING` joins.
    pub(super) is_hidden: bool,
}

/// The clause of a query in which an expression is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueryClause {
    Select,
    Where,
    Join,
    GroupBy,
    Having,
    Qualify,
    OrderBy,
    /// Inside an aggregate function.
    GroupArgument,
    /// Inside `OVER`, or inside a function with it.
    WindowPart,
    Values,
}

impl QueryClause {
    pub(super) fn takes_aggregates(self) -> bool {
        matches!(self, Self::Select | Self::Having | Self::Qualify | Self::OrderBy | Self::WindowPart)
    }

    pub(super) fn takes_windows(self) -> bool {
        matches!(self, Self::Select | Self::Qualify | Self::OrderBy)
    }

    /// Whether a name could refer to a column or an entry of the select list, with neither taking precedence.
    pub(super) fn is_ambiguous_name_allowed(self) -> bool {
        matches!(self, Self::GroupBy | Self::Having | Self::Qualify | Self::OrderBy)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Select => "SELECT",
            Self::Where => "WHERE",
            Self::Join => "ON",
            Self::GroupBy => "GROUP BY",
            Self::Having => "HAVING",
            Self::Qualify => "QUALIFY",
            Self::OrderBy => "ORDER BY",
            Self::GroupArgument => "an aggregate function",
            Self::WindowPart => "OVER",
            Self::Values => "VALUES",
        }
    }
}

/// The grouping expressions of a query.
#[derive(Debug, Clone, Default)]
pub(super) struct GroupKeys {
    /// The expressions as they were written.
    pub(super) written: Vec<String>,
    /// The columns among them.
    pub(super) columns: Vec<String>,
}

/// The names that an expression can use.
#[derive(Debug, Clone)]
pub(super) struct NameScope<'p> {
    pub(super) relations: Vec<ScopeTable>,
    pub(super) parent: Option<&'p Self>,
    pub(super) clause: QueryClause,
    /// The named entries of the select list.
    pub(super) aliases: Vec<(String, Expr)>,
    /// The grouping of the query, if only grouping expressions can be used.
    pub(super) groups: Option<GroupKeys>,
    pub(super) windows: Vec<NamedWindowDefinition>,
}

impl<'p> NameScope<'p> {
    pub(super) fn new(relations: Vec<ScopeTable>, parent: Option<&'p Self>) -> Self {
        let clause = QueryClause::Select;
        Self { relations, parent, clause, aliases: Vec::new(), groups: None, windows: Vec::new() }
    }

    /// The same names in another clause of the query.
    pub(super) fn in_clause(&self, clause: QueryClause) -> Self {
        Self { clause, ..self.clone() }
    }

    /// The same names, with all columns of each row.
    pub(super) fn ungrouped(&self, clause: QueryClause) -> Self {
        Self { clause, groups: None, ..self.clone() }
    }

    /// Whether all rows of the query are one group. Within another query it may be computed for each of its rows,
    /// which are then the groups.
    pub(super) fn is_one_group(&self) -> bool {
        self.parent.is_none() && self.groups.as_ref().is_some_and(|keys| keys.written.is_empty())
    }

    /// The columns that a name can refer to.
    pub(super) fn columns(&self, name: &str) -> Vec<&ScopeColumn> {
        let columns = self.relations.iter().flat_map(|relation| &relation.columns);
        columns.filter(|column| !column.is_hidden && column.name.eq_ignore_ascii_case(name)).collect()
    }

    /// The table with this name.
    pub(super) fn relation(&self, name: &str) -> Option<&ScopeTable> {
        let named = |relation: &&ScopeTable| {
            relation.name.as_ref().is_some_and(|known| known.eq_ignore_ascii_case(name))
        };
        self.relations.iter().find(named)
    }

    pub(super) fn alias(&self, name: &str) -> Option<&(String, Expr)> {
        self.aliases.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name))
    }

    /// The names of all columns, for messages.
    pub(super) fn column_names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self
            .relations
            .iter()
            .flat_map(|relation| &relation.columns)
            .map(|column| column.name.as_str())
            .collect();
        if let Some(parent) = self.parent {
            names.extend(parent.column_names());
        }
        names.dedup();
        names
    }
}

impl ScopeTable {
    pub(super) fn column(&self, name: &str) -> Option<&ScopeColumn> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }
}

/// The text of a qualified name.
pub(super) fn dotted_name(parts: &[Ident]) -> String {
    parts.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join(".")
}
