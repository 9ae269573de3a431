//! Routes to the models of a row worker.

use std::sync::Arc;

use crate::{Crew, Gate, Lane};

impl Crew {
    pub(crate) fn lanes(&self, voice: usize) -> &[Arc<Lane>] {
        self.voices.get(voice).map(|voice| voice.lanes.as_slice()).unwrap_or_default()
    }

    /// The model that a turn is sent to first: the first one that is not down.
    pub(crate) fn route(&self, voice: usize) -> usize {
        self.lanes(voice).iter().position(|lane| !lane.gate.is_down()).unwrap_or(0)
    }

    pub(crate) fn lane(&self, voice: usize, index: usize) -> Option<&Arc<Lane>> {
        self.lanes(voice).get(index)
    }

    pub(crate) fn is_up(&self, voice: usize, index: usize) -> bool {
        self.lane(voice, index).is_some_and(|lane| !lane.gate.is_down())
    }

    /// The next model after this one that is up.
    pub(crate) fn next_up(&self, voice: usize, index: usize) -> Option<usize> {
        (index + 1..self.lanes(voice).len()).find(|&next| self.is_up(voice, next))
    }

    /// Whether another model than this one can be asked.
    pub(crate) fn has_other(&self, voice: usize, index: usize) -> bool {
        (0..self.lanes(voice).len()).any(|other| other != index && self.is_up(voice, other))
    }

    /// The call gates of all models, each once: model roles may share them.
    pub(crate) fn gates(&self) -> Vec<Arc<Gate>> {
        let mut gates: Vec<Arc<Gate>> = Vec::new();
        for lane in self.voices.iter().flat_map(|voice| &voice.lanes) {
            if !gates.iter().any(|gate| Arc::ptr_eq(gate, &lane.gate)) {
                gates.push(Arc::clone(&lane.gate));
            }
        }
        gates
    }
}
