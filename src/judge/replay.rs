//! replay.
/// Stand-in until merged.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaySpec {}
impl ReplaySpec {
    /// Builds.
    ///
    /// # Errors
    /// Always.
    pub fn build(&self, _: &super::BuildContext) -> Result<super::BoxedJudge, super::BuildError> {
        Err(super::BuildError::invalid("kind", "not merged"))
    }
}
impl ReplaySpec {
    /// Default judge.
    #[must_use]
    pub fn with_default_judge(self, _: &str) -> Self {
        self
    }
}
