//! Callbacks of a batch, and its settings for providers.

use std::collections::BTreeMap;
use std::sync::Arc;

use rowmill_core::ports::{Observer, RunEvent};
use rowmill_models::{AliasConfig, PriceConfig, ProviderConfig};

use super::builder::Batch;
use super::progress::BatchProgress;
use crate::config::ConfigFile;
use crate::control::RunNotice;

/// An observer that is a function.
struct EventObserver<F>(F);

impl<F: Fn(&RunEvent<'_>) + Send + Sync> Observer for EventObserver<F> {
    fn observe(&self, event: &RunEvent<'_>) {
        (self.0)(event);
    }
}

/// Callbacks, and settings for providers.
impl<T, A, U, P> Batch<T, A, U, P> {
    /// Sets a callback for every event. It is called from the loop that drives the batch, so it must
    /// return quickly.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use rowmill::{Batch, RunEvent};
    ///
    /// static ENDED: AtomicU64 = AtomicU64::new(0);
    /// let batch = Batch::over(["a"; 3]).prompt(|item| *item).worker("passthrough").on_event(|event| {
    ///     if let RunEvent::Ended { error: None, .. } = event {
    ///         ENDED.fetch_add(1, Ordering::Relaxed);
    ///     }
    /// });
    /// batch.run_blocking()?;
    /// assert_eq!(ENDED.load(Ordering::Relaxed), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_event<F>(mut self, hear: F) -> Self
    where
        F: Fn(&RunEvent<'_>) + Send + Sync + 'static,
    {
        self.settings.hooks.events = Some(Arc::new(EventObserver(hear)));
        self
    }

    /// Sets a callback for progress, which is called whenever an item has ended. It is called from the
    /// loop that drives the batch, so it must return quickly.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use rowmill::Batch;
    ///
    /// static DONE: AtomicU64 = AtomicU64::new(0);
    /// let batch = Batch::over(0..10).worker_fn(|item| async move { Ok(*item) });
    /// batch.on_progress(|progress| DONE.store(progress.done(), Ordering::Relaxed)).run_blocking()?;
    /// assert_eq!(DONE.load(Ordering::Relaxed), 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_progress<F>(mut self, hear: F) -> Self
    where
        F: Fn(&BatchProgress) + Send + Sync + 'static,
    {
        self.settings.hooks.progress = Some(Arc::new(hear));
        self
    }

    /// Sets a callback for notices to the user, such as settings that have no effect. It may be called
    /// from the loop that drives the batch, so it must return quickly.
    #[must_use]
    pub fn on_notice<F>(mut self, hear: F) -> Self
    where
        F: Fn(RunNotice) + Send + Sync + 'static,
    {
        self.settings.notice = Some(Arc::new(hear));
        self
    }

    /// Adds providers to the known ones, or overrides settings of known ones.
    #[must_use]
    pub fn providers(mut self, providers: BTreeMap<String, ProviderConfig>) -> Self {
        self.settings.work.providers = providers;
        self
    }

    /// Adds short names for models to the built-in ones.
    ///
    /// ```
    /// # use std::collections::BTreeMap;
    /// # use rowmill::{AliasConfig, Batch};
    /// let aliases = BTreeMap::from([("quick".to_owned(), "passthrough".to_owned())]);
    /// let batch = Batch::over(["a"]).prompt(|item| *item).worker("quick");
    /// let results = batch.aliases(AliasConfig { aliases, ..AliasConfig::default() }).run_blocking()?;
    /// assert_eq!(results.items, ["a"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn aliases(mut self, aliases: AliasConfig) -> Self {
        self.settings.work.aliases = aliases;
        self
    }

    /// Adds prices to the known ones, by `provider.model`.
    #[must_use]
    pub fn prices(mut self, prices: BTreeMap<String, PriceConfig>) -> Self {
        self.settings.work.prices = prices;
        self
    }

    /// Takes providers, aliases, prices and MCP servers from a configuration file.
    #[must_use]
    pub fn config(mut self, file: &ConfigFile) -> Self {
        let work = &mut self.settings.work;
        work.providers = file.config.providers.clone();
        work.aliases = file.config.alias_config();
        work.prices = file.config.prices.clone();
        work.agents.servers = file.config.mcp.servers.clone();
        work.agents.config_folder = file.folder();
        self
    }
}
