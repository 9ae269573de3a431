//! Finds the kinds of functions that an expression calls, ignoring its subqueries.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Query, Visit, Visitor};

use super::expressions::single_name;
use crate::aggregates::is_aggregate;

/// The kinds of functions that some expressions call.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct CalledFunctions {
    pub(super) of_groups: bool,
    pub(super) of_windows: bool,
    depth: usize,
}

impl CalledFunctions {
    pub(super) fn in_expressions<V: Visit>(parts: &V) -> Self {
        let mut found = Self::default();
        let _finished = parts.visit(&mut found);
        found
    }

    /// Combines two results.
    pub(super) fn union(self, other: Self) -> Self {
        let of_groups = self.of_groups || other.of_groups;
        Self { of_groups, of_windows: self.of_windows || other.of_windows, depth: 0 }
    }
}

impl Visitor for CalledFunctions {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if let (Expr::Function(function), 0) = (expression, self.depth) {
            let name = single_name(&function.name.0).map(|name| name.value.to_ascii_lowercase());
            let is_group = name.is_some_and(|name| is_aggregate(&name));
            self.of_windows |= function.over.is_some();
            self.of_groups |= is_group && function.over.is_none();
        }
        ControlFlow::Continue(())
    }
}
