//! script.
/// Stand-in until merged.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptSpec {}
impl ScriptSpec {
    /// Builds.
    ///
    /// # Errors
    /// Always.
    pub fn build(&self, _: &super::BuildContext) -> Result<super::BoxedJudge, super::BuildError> {
        Err(super::BuildError::invalid("kind", "not merged"))
    }
}
