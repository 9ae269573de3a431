//! Routes to the models of a row worker.

use std::sync::Arc;

use crate::{CallGate, ModelEndpoint, RowWorker};

impl RowWorker {
    pub(crate) fn endpoints(&self, model_role: usize) -> &[Arc<ModelEndpoint>] {
        self.model_roles.get(model_role).map(|model_role| model_role.endpoints.as_slice()).unwrap_or_default()
    }

    /// The model that a turn is sent to first: the first one that is not down.
    pub(crate) fn first_endpoint(&self, model_role: usize) -> usize {
        self.endpoints(model_role).iter().position(|endpoint| !endpoint.gate.is_down()).unwrap_or(0)
    }

    pub(crate) fn endpoint(&self, model_role: usize, index: usize) -> Option<&Arc<ModelEndpoint>> {
        self.endpoints(model_role).get(index)
    }

    pub(crate) fn is_available(&self, model_role: usize, index: usize) -> bool {
        self.endpoint(model_role, index).is_some_and(|endpoint| !endpoint.gate.is_down())
    }

    /// The next model after this one that is up.
    pub(crate) fn next_available(&self, model_role: usize, index: usize) -> Option<usize> {
        (index + 1..self.endpoints(model_role).len()).find(|&next| self.is_available(model_role, next))
    }

    /// Whether another model than this one can be asked.
    pub(crate) fn has_alternative(&self, model_role: usize, index: usize) -> bool {
        (0..self.endpoints(model_role).len())
            .any(|other| other != index && self.is_available(model_role, other))
    }

    /// The call gates of all models, each once: model roles may share them.
    pub(crate) fn gates(&self) -> Vec<Arc<CallGate>> {
        let mut gates: Vec<Arc<CallGate>> = Vec::new();
        for endpoint in self.model_roles.iter().flat_map(|model_role| &model_role.endpoints) {
            if !gates.iter().any(|gate| Arc::ptr_eq(gate, &endpoint.gate)) {
                gates.push(Arc::clone(&endpoint.gate));
            }
        }
        gates
    }
}
