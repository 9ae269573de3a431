//! How the batch lane gets at providers.

use std::fmt;
use std::sync::Arc;

use rowmill_core::ports::{BatchApi, Model};
use rowmill_http::HttpClient;
use rowmill_models::{BatchLimitOverrides, ModelSetup, build_batch_api, build_model};
use rowmill_types::Problem;

type BuildBatchApi = dyn Fn(&ModelSetup, &BatchLimitOverrides, &HttpClient) -> Result<Arc<dyn BatchApi>, Problem>
    + Send
    + Sync;
type BuildModel = dyn Fn(ModelSetup, &HttpClient) -> Result<Arc<dyn Model>, Problem> + Send + Sync;

/// Makes what a model needs in the batch lane. Tests have providers in memory.
pub(crate) struct LaneAdapters {
    /// Makes the batch API of a model.
    pub(crate) batch_api: Box<BuildBatchApi>,
    /// Makes a model for live calls.
    pub(crate) model: Box<BuildModel>,
}

impl Default for LaneAdapters {
    fn default() -> Self {
        Self { batch_api: Box::new(build_batch_api), model: Box::new(build_model) }
    }
}

impl fmt::Debug for LaneAdapters {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("LaneAdapters")
    }
}
