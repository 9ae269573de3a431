//! Sets up the workers of a batch.

use std::sync::Arc;

use rowmill_engine::{Answers, Casting};
use rowmill_types::Problem;

use super::builder::{Chosen, Encode};
use super::choose::Chooser;
use super::crew::{Ready, Scene, function_crew};
use super::function::FunctionModel;
use super::go::nobody;
use super::ledger::Speaker;
use super::settings::Settings;
use super::shelf::Shelf;
use crate::answers::cached;
use crate::control::Control;
use crate::inputs::warnings;

/// The workers of a batch, after setup.
pub(super) enum Staff<T, A, U> {
    Same(Ready),
    Each(Arc<Chooser<T, A, U>>),
}

impl<T: Send + Sync, A: Send, U: Send> Staff<T, A, U> {
    pub(super) fn casting(&self) -> Casting
    where
        T: 'static,
        A: 'static,
        U: 'static,
    {
        match self {
            Self::Same(ready) => Casting::Same(Arc::clone(&ready.crew)),
            Self::Each(chooser) => Casting::Each(Arc::clone(chooser) as _),
        }
    }

    pub(super) fn speaker(&self, schema: Option<String>) -> Speaker {
        let (name, identity) = match self {
            Self::Same(ready) => (ready.name.clone(), ready.identity.clone()),
            Self::Each(_) => ("a worker for every item".to_owned(), String::new()),
        };
        Speaker { name, identity, schema }
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Same(ready) => ready.close().await,
            Self::Each(chooser) => chooser.close().await,
        }
    }
}

impl<T, A, U> Staff<T, A, U>
where
    T: Send + Sync + 'static,
    A: Send + 'static,
    U: Send + 'static,
{
    /// Sets up the chosen worker. Answers of a function are encoded if they are stored.
    pub(super) async fn of(
        chosen: Chosen<T, A>,
        shelf: &Arc<Shelf<T, A, U>>,
        encode: Option<Encode<A>>,
        scene: impl FnOnce() -> Scene,
    ) -> Result<Self, Problem> {
        Ok(match chosen {
            Chosen::Function(work) => {
                let model = FunctionModel { work, shelf: Arc::clone(shelf), encode, runner: Arc::default() };
                let crew = Arc::new(function_crew(Arc::new(model), encode.is_some())?);
                let name = "function".to_owned();
                Self::Same(Ready { crew, name, identity: String::new(), given: Vec::new() })
            }
            Chosen::Same(worker) => Self::Same(scene().ready(&worker).await?),
            Chosen::Each(choose) => Self::Each(Arc::new(Chooser::new(choose, Arc::clone(shelf), scene()))),
            Chosen::Nobody => return Err(nobody()),
        })
    }

    /// Opens the answer cache, if one is set.
    pub(super) fn answers(&self, settings: &Settings, control: &Control) -> Result<Option<Answers>, Problem> {
        match (&settings.work.cache, self) {
            (Some(folder), Self::Same(ready)) => {
                cached(folder, ready.identity.clone(), warnings(control)).map(Some)
            }
            _ => Ok(None),
        }
    }
}
