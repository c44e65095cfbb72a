//! rule.
/// Stand-in until merged.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleSpec {}
impl RuleSpec {
    /// Builds.
    ///
    /// # Errors
    /// Always.
    pub fn build(
        &self,
        _: &crate::judge::BuildContext,
    ) -> Result<crate::judge::BoxedJudge, crate::judge::BuildError> {
        Err(crate::judge::BuildError::invalid("kind", "not merged"))
    }
}
