//! stub
use super::*;
use crate::secret::Secret;
/// x
pub struct OpenAiConfig {
    /// x
    pub base_url: String,
    /// x
    pub api_key: Option<Secret>,
    /// x
    pub model: String,
    /// x
    pub timeout: Duration,
    /// x
    pub attempts: u32,
}
/// x
pub struct OpenAi(OpenAiConfig);
impl OpenAi {
    /// x
    /// # Errors
    /// x
    pub fn new(c: OpenAiConfig) -> Result<Self, std::io::Error> {
        Ok(Self(c))
    }
}
impl ChatModel for OpenAi {
    fn provider(&self) -> &'static str {
        "openai"
    }
    fn model(&self) -> &str {
        &self.0.model
    }
    fn ask<'a>(
        &'a self,
        _request: &'a ChatRequest,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<ChatReply, ProviderError>> {
        Box::pin(std::future::pending())
    }
}
